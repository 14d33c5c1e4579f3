"""What was found out about a task, and what was decided: frozen data for gates, ledger, reviews and releases.

Owns: `GateResult`, `Assessment`, `Decision`, `Stage`.
Invariant: a gate that was not assessed has not passed; a decision names the gate and the reason that it rests on.
Must not know: how gates work, where results are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Decision = Literal["admitted", "quarantined", "rejected"]
"""admitted: may train. rejected: the task itself is at fault. quarantined: doubtful, or it could not be found out."""

Stage = Literal["candidate", "admitted", "quarantined", "rejected", "retired"]


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate's finding on one task. JSON-able `evidence` says what was seen, enough to see why it passed or not.

    `assessed` is False where it could not be found out (a fault of the host, a missing reference); then `passed` is
    False too. `version` changes with whatever decides the finding beside the task; `seconds` are of wall clock.
    """

    gate: str
    passed: bool
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    assessed: bool = True
    version: str = "1"
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.passed and not (self.assessed and self.evidence):
            raise ValueError(f"gate {self.gate!r} cannot have passed without having been assessed, with evidence")


@dataclass(frozen=True, slots=True)
class Assessment:
    """All gates of one task and the decision on it. `digest` is the task's, `content` also covers gold and origin."""

    task: str
    digest: str
    content: str
    decision: Decision
    reason: str
    gates: Mapping[str, GateResult]
