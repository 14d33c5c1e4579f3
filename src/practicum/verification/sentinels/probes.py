"""What a judgement knows about the tests that it rewrote.

Owns: `Lot`, `Place`, `Asked`, `Probe`. Invariant: all of it stays on the host. Must not know: syntax, reports.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a test stands in its file, classes first, and what its id holds around the function's name."""

    path: tuple[str, ...]
    head: str
    tail: str


@dataclass(frozen=True, slots=True)
class Lot:
    """What chance decides in one judgement.

    A later `turn` keeps the first one's lots, takes other constants and runs the variants in reversed order, so that
    what a test leaves behind for the next cannot look twice like two answers to one question.
    `module` is where the rewritten file gets its checks from.
    """

    nonce: str
    turn: int
    module: str

    def chance(self, what: str, *, kept: bool = False) -> random.Random:
        """Random numbers for `what`; the same at every turn where `kept`."""
        return random.Random(f"{self.nonce}:{'' if kept else self.turn}:{what}")


@dataclass(frozen=True, slots=True)
class Asked:
    """One assertion of a test, variant by variant.

    `tags` name it in the reports; `options` say which alternative it holds, 0 being the author's; `texts` are the
    alternatives, so that those of two judgements can be compared. `strong`: they are written down in one way; then
    nobody can tell the author's, unless it is `readable`. `many`: nor guess it, as there are many more than were drawn.
    `shown`: the file itself shows which is the author's, which is else hidden `among` so many. `sure`: a test that ends
    has come by it. An assertion on a loop's items is one for each item.
    """

    tags: tuple[str, ...]
    options: tuple[int, ...]
    texts: tuple[str, ...]
    strong: bool
    many: bool
    readable: bool
    shown: bool
    among: int
    sure: bool
    line: int


@dataclass(frozen=True, slots=True)
class Probe:
    """A test as it is run: the ids of its variants in the box, and what they ask."""

    ids: tuple[str, ...]
    asked: tuple[Asked, ...]

    @property
    def strong(self) -> bool:
        """Whether there is a question in it of which nobody can tell the author's alternative."""
        return any(one.strong and not one.readable for one in self.asked)

    @property
    def choices(self) -> Mapping[tuple[str, ...], int]:
        """What could be picked from, where the file does not show the author's, and among how many.

        Who follows a rule picks the same wherever the same constants were drawn, so these count once.
        """
        found: dict[tuple[str, ...], int] = {}
        for one in self.asked:
            texts = tuple(sorted(set(one.texts)))
            if not one.shown:
                drawn = one.strong and len(texts) > 2
                # A zero tells on itself, but not to those who pick by place or at random.
                among = max(2, min(one.among, len(texts)))
                found[texts if drawn else (self.ids[0], str(one.line), *texts)] = among
        return found
