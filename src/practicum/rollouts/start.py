"""Where an episode goes on: recorded turns, and the saved workspace that belongs to them.

Owns: `Start`, `check_start`, `spent_s`.
Invariant: an episode goes on only from turns and a workspace that agree; what disagrees is refused, never mended.
Must not know: policies, how boxes are leased, who asks (a resume, a branch, what was parked).

What lies outside the workspace (`/tmp`, a home), folders without a file, and processes that were left running are no
part of a saved workspace, and are not there in the box in which an episode goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from practicum.errors import StartRefused, StoreError
from practicum.records.task import Task
from practicum.records.trajectory import Turn
from practicum.sandboxes.contract import SnapshotStore


@dataclass(frozen=True, slots=True)
class Start:
    """Go on after `turns`.

    `pending` is a turn that was sampled and whose action has no result: it is carried out, not sampled again. `lives`
    boxes have died before, and `cost` is what was spent beside the turns. `seed` is the one that the episode was begun
    with; None where it goes on with another (a branch). Where `strict`, an episode that cannot go on is a fault, else
    it begins anew.
    """

    task_digest: str
    turns: tuple[Turn, ...] = ()
    pending: Turn | None = None
    lives: int = 0
    cost: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None
    strict: bool = False

    @property
    def workspace(self) -> str | None:
        """Digest of the workspace to go on in; None where that of the untouched task will do, "" where none was saved.

        The workspace that a sampled turn was sampled in is the one its action is carried out in.
        """
        if self.turns:
            return self.turns[-1].snapshot_after
        return self.pending.snapshot_before if self.pending else None


def spent_s(turns: Sequence[Turn]) -> float:
    """Seconds of an episode that its actions took; waiting for the policy is none of them."""
    return sum(turn.timing["act"] for turn in turns)


def check_start(start: Start, task: Task, seed: int, snapshots: SnapshotStore) -> None:
    """Raises `StartRefused`, naming what disagrees, where no episode can go on from `start`.

    Whether the renderer agrees is for `Session` to say, which has it; whether the box holds the workspace, for who has
    the box.
    """
    if start.task_digest != task.digest:
        raise StartRefused(f"the turns were made at another task: {start.task_digest[:12]}, not {task.digest[:12]}")
    if start.seed is not None and start.seed != seed:
        raise StartRefused(f"the turns were sampled with seed {start.seed}, not {seed}")
    turns = [*start.turns, *([start.pending] if start.pending else [])]
    for position, turn in enumerate(turns):
        if turn.index != position:
            raise StartRefused(f"turn {position} is missing: the one in its place says that it is turn {turn.index}")
        if not turn.sampled_ids or len(turn.sampled_ids) != len(turn.logprobs):
            raise StartRefused(f"turn {position} has {len(turn.sampled_ids)} ids, {len(turn.logprobs)} probabilities")
    for turn, later in pairwise(turns):
        if turn.snapshot_after != later.snapshot_before:
            raise StartRefused(f"turn {later.index} does not begin with the workspace that turn {turn.index} left")
    if start.workspace == "":
        raise StartRefused(f"the workspace that turn {turns[-1].index} left, or began with, could not be saved")
    if start.workspace:
        try:
            snapshots.get(start.workspace)
        except StoreError as error:
            raise StartRefused(f"the workspace of turn {turns[-1].index} is not there: {error.message}") from error
