"""Pacing: when the next batch may be collected, so that nothing that was collected is too old to train.

Owns: `StalenessGate`.
Invariant: a batch that was let through is never staler than `max_staleness` when it is trained on, provided
batches are trained on in order, one update each.
Must not know: what a batch is, clocks, queues. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StalenessGate:
    """Batch k (from 0) is trained on by the update that makes version k + 1 out of version k.

    Dispatched while the trainer stands at version v, it is k − v versions old by then; so it may go while
    k ≤ v + `max_staleness`. 0 means strictly on-policy.
    """

    max_staleness: int

    def __post_init__(self) -> None:
        if self.max_staleness < 0:
            raise ValueError(f"max_staleness is {self.max_staleness}; it counts versions and cannot be negative")

    def may_dispatch(self, batch: int, trainer_version: int) -> bool:
        """Whether batch number `batch` may be dispatched while the trainer stands at `trainer_version`."""
        return batch <= trainer_version + self.max_staleness

    def needed_version(self, batch: int) -> int:
        """The lowest trainer version at which `batch` may be dispatched."""
        return max(0, batch - self.max_staleness)
