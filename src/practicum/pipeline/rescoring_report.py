"""What re-scoring found: differences by task and by kind of finding.

Owns: `Pair`, `report_of`.
Invariant: every submission that was judged again is counted once by task, and once for each kind of finding that
either verdict has (`none` where there is none). Pure.
Must not know: disks, boxes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Verdict

NONE = "none"


@dataclass(frozen=True, slots=True)
class Pair:
    """One attempt before and after."""

    phase: str
    update: int
    old: Trajectory
    new: Trajectory

    @property
    def changed(self) -> bool:
        return _decision(self.old) != _decision(self.new)

    @property
    def kinds(self) -> list[str]:
        verdicts = [each.verdict for each in (self.old, self.new) if each.verdict is not None]
        return sorted({finding.kind for verdict in verdicts for finding in verdict.findings}) or [NONE]


def report_of(pairs: Sequence[Pair], not_judged: Mapping[str, int], version: str) -> dict[str, Any]:
    """The report as JSON data. `changes` has one entry for each attempt whose status, outcome or reward differs."""
    by_task: defaultdict[str, list[Pair]] = defaultdict(list)
    by_kind: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_task[pair.old.task_id].append(pair)
        for kind in pair.kinds:
            by_kind[kind].append(pair)
    return {
        "verifier_version": version,
        "previous_versions": sorted({pair.old.verdict.verifier_version for pair in pairs if pair.old.verdict}),
        "judged": len(pairs),
        "changed": sum(pair.changed for pair in pairs),
        "unscorable": sum(_status(pair.new.verdict) == "unscorable" for pair in pairs),
        "not_judged": dict(not_judged),
        "tasks": [{"task": task, **_counts(each)} for task, each in sorted(by_task.items())],
        "findings": [{"kind": kind, **_counts(each)} for kind, each in sorted(by_kind.items())],
        "changes": [
            {
                "id": pair.old.id,
                "phase": pair.phase,
                "update": pair.update,
                "task": pair.old.task_id,
                "was": {"outcome": _outcome(pair.old), "reward": pair.old.reward},
                "now": {"outcome": _outcome(pair.new), "reward": pair.new.reward},
                "findings": pair.kinds,
            }
            for pair in pairs
            if pair.changed
        ],
    }


def _counts(pairs: Sequence[Pair]) -> dict[str, Any]:
    both = [(p.old.reward, p.new.reward) for p in pairs]
    known = [(old, new) for old, new in both if old is not None and new is not None]
    return {
        "judged": len(pairs),
        "changed": sum(pair.changed for pair in pairs),
        "raised": sum(new > old for old, new in known),
        "lowered": sum(new < old for old, new in known),
        "reward_before": sum(old for old, _ in known) / len(known) if known else None,
        "reward_after": sum(new for _, new in known) / len(known) if known else None,
    }


def _decision(trajectory: Trajectory) -> tuple[str, str | None, float | None]:
    verdict = trajectory.verdict
    return _status(verdict), verdict.outcome if verdict else None, trajectory.reward


def _status(verdict: Verdict | None) -> str:
    return verdict.status if verdict else "unscorable"


def _outcome(trajectory: Trajectory) -> str:
    verdict = trajectory.verdict
    return (verdict.outcome or verdict.status) if verdict else "unscorable"
