"""What was seen of a submission in one box, or that it could not be seen.

Owns: `Seen`, `BoxesLost`, `lost_to_the_host`. Invariant: a loss that something in the box could have caused is never
taken for one from outside. Must not know: how boxes are run, verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from practicum.errors import BoxOutOfMemory, SandboxDied, WarmEnded
from practicum.sandboxes.contract import CommandResult
from practicum.verification.runners.report import Report


@dataclass(frozen=True, slots=True)
class Seen:
    """One box's story: the build that failed, or the runner's report."""

    build: CommandResult | None
    report: Report | None
    seconds: Mapping[str, float]


class BoxesLost(Exception):
    """Every attempt ended by a fault of its box or driver.

    `out_of_memory`: the last box used up its memory. `from_outside`: a box was ended by what does not run in it.
    """

    def __init__(self, faults: list[str], *, out_of_memory: bool = False, from_outside: bool = False) -> None:
        super().__init__("; ".join(faults))
        self.out_of_memory = out_of_memory
        self.from_outside = from_outside


def lost_to_the_host(error: BaseException) -> bool:
    """Whether what ran in the box cannot have caused `error`: nothing in a box can end its first process.

    Memory that ran out, and the end of what is kept warm beside that process, have errors of their own.
    """
    return isinstance(error, SandboxDied) and not isinstance(error, (BoxOutOfMemory, WarmEnded))
