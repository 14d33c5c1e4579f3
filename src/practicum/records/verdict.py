"""The verdict: what was decided about a submission, on what evidence.

Owns: `Verdict`, `Finding`, `Signal`, `Missing`, `Submission` and the default reward table.
Invariant: only a `valid` verdict carries a reward; a fault of the judge or of the host never does.
Must not know: how tests are run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from practicum.records.tree import Change, digest_of

Status = Literal["valid", "invalid", "unscorable"]
Outcome = Literal["passed", "partial", "failed", "build_failed", "tampered"]
TestStatus = Literal["passed", "failed", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about an attempt that a person may want to know. `severity` `tamper` vetoes."""

    kind: str
    path: str
    evidence: str
    severity: Literal["note", "tamper"] = "note"


@dataclass(frozen=True, slots=True)
class Signal:
    """One named score in [0, 1]."""

    name: str
    score: float
    weight: float = 1.0
    reliability: float = 1.0


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no score under a name. Never a 0: what is missing changes no reward."""

    reason: str


@dataclass(frozen=True, slots=True)
class Submission:
    """What leaves the agent's box: changes to editable paths, and findings about everything else."""

    changes: tuple[Change, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def digest(self) -> str:
        return digest_of(
            [[c.path, c.kind, c.file.mode if c.file else None, c.file.digest if c.file else None] for c in self.changes]
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on one submission. `tests` maps every expected id to its status."""

    status: Status
    outcome: Outcome | None
    reward: float | None
    tests: Mapping[str, TestStatus] = field(default_factory=dict)
    signals: tuple[Signal, ...] = ()
    findings: tuple[Finding, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    verifier_version: str = ""

    def __post_init__(self) -> None:
        if (self.status == "valid") != (self.reward is not None) or (self.status == "valid") != (
            self.outcome is not None
        ):
            raise ValueError(f"a {self.status} verdict cannot have outcome {self.outcome} and reward {self.reward}")

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


def default_reward(outcome: Outcome, *, newly_passed: int, total: int) -> float:
    """The default reward table.

    tampered −1.0 · build failed −0.5 · passed 1.0 · partial newly_passed/total − 0.2 · failed −0.2,
    where `total` counts the tests of the manifest that fail on the untouched task.
    """
    if outcome == "tampered":
        return -1.0
    if outcome == "build_failed":
        return -0.5
    if outcome == "passed":
        return 1.0
    if outcome == "partial":
        return newly_passed / total - 0.2
    return -0.2
