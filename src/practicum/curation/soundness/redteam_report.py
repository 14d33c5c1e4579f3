"""What an audit of the verifier has found.

Owns: `Trial`, `TaskAudit`, `Audit`, their counts and bounds, and the document made of them.
Invariant: pure; every number is counted from trials, and a trial that could not be judged is counted in none of them
but named. Must not know: how trials are made, who reads the document.

An attack is *rewarded* where its reward is above 0; *flagged* where the verdict shows what its file expects, or any
finding of tampering; *unnoticed* where its file expects something and nothing of it is there. One that just fails, and
whose file says that there is nothing to notice, is a plain failure. Wrong mutants are *accepted* and equivalents
*rejected* by whether they pass as a whole. Bounds are upper ends of exact 95 % intervals: on the share of wrong
solutions like these mutants that these tasks accept (which counts mutants that may be right after all, so it errs
upwards), and of right ones like these equivalents that they reject.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from practicum.records.task import Task
from practicum.records.verdict import Verdict
from practicum.verification.calibration.bounds import Rate
from practicum.verification.redteam.catalogue import KINDS

Role = Literal["attack", "control", "equivalent", "mutant"]
_SAYS = "says: "
_TAMPER = "tamper"


@dataclass(frozen=True, slots=True)
class Trial:
    """One submission that was judged. `work` is what was handed in: a shell script, or for variants a diff.

    `kind` and `expected` are an attack's, see `catalogue`; `shown` is how a variant differs from the gold. `fault`
    says why there is no verdict.
    """

    task_id: str
    role: Role
    name: str
    work: str
    verdict: Verdict | None
    fault: str | None = None
    kind: str = ""
    expected: tuple[str, ...] = ()
    shown: str = ""

    @property
    def decided(self) -> bool:
        return self.verdict is not None and self.verdict.reward is not None

    @property
    def passed(self) -> bool:
        return self.verdict is not None and self.verdict.passed

    @property
    def rewarded(self) -> bool:
        return self.verdict is not None and (self.verdict.reward or 0.0) > 0

    @property
    def flagged(self) -> bool:
        verdict = self.verdict
        if verdict is None:
            return False
        if any(finding.severity == _TAMPER for finding in verdict.findings):
            return True
        details = verdict.evidence.get("details", {})
        said = "\n".join(map(str, details.values())) if isinstance(details, dict) else ""
        seen = {finding.kind for finding in verdict.findings}
        return any(
            expected.removeprefix(_SAYS) in said if expected.startswith(_SAYS) else expected in seen
            for expected in self.expected
        )

    @property
    def unnoticed(self) -> bool:
        return self.decided and bool(self.expected) and not self.flagged and not self.rewarded

    @property
    def why_undecided(self) -> str | None:
        """Why there is no number; None where there is one."""
        if self.decided:
            return None
        return self.fault or (self.verdict.reason if self.verdict else None) or "no reason given"

    def document(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "task": self.task_id,
            "name": self.name,
            "kind": self.kind or self.role,
            "outcome": verdict.outcome if verdict else None,
            "reward": verdict.reward if verdict else None,
            "findings": sorted({finding.kind for finding in verdict.findings}) if verdict else [],
            "reason": self.why_undecided,
            "work": self.work,
            "differs_from_gold": self.shown or None,
        }


class _Counted:
    """Counts over `trials`, the same for one task and for all."""

    trials: Sequence[Trial]

    def of(self, role: Role) -> list[Trial]:
        """Trials of `role` that have a number."""
        return [trial for trial in self.trials if trial.role == role and trial.decided]

    @property
    def rewarded(self) -> list[Trial]:
        return [trial for trial in self.of("attack") if trial.rewarded]

    @property
    def unnoticed(self) -> list[Trial]:
        return [trial for trial in self.of("attack") if trial.unnoticed]

    @property
    def accepted(self) -> list[Trial]:
        return [trial for trial in self.of("mutant") if trial.passed]

    @property
    def rejected(self) -> list[Trial]:
        """Right solutions that did not pass, those beside something left behind included."""
        return [trial for trial in (*self.of("equivalent"), *self.of("control")) if not trial.passed]

    @property
    def undecided(self) -> list[Trial]:
        return [trial for trial in self.trials if not trial.decided]

    def counts(self) -> dict[str, Any]:
        mutants, equivalents, controls = (self.of(role) for role in ("mutant", "equivalent", "control"))
        rejected = sum(not trial.passed for trial in equivalents)
        return {
            "attacks": attack_counts(self.of("attack")),
            "wrong_mutants": {"tried": len(mutants), "accepted": len(self.accepted)},
            "equivalents": {"tried": len(equivalents), "rejected": rejected},
            "controls": {"tried": len(controls), "rejected": sum(not trial.passed for trial in controls)},
            "false_positive_bound": _bound(len(self.accepted), len(mutants)),
            "false_negative_bound": _bound(rejected, len(equivalents)),
            "undecided": len(self.undecided),
        }


def attack_counts(trials: Sequence[Trial]) -> dict[str, int]:
    """`tried` is the sum of rewarded, flagged but not rewarded, plain failures and unnoticed."""
    rewarded = sum(trial.rewarded for trial in trials)
    flagged = sum(trial.flagged for trial in trials)
    unnoticed = sum(trial.unnoticed for trial in trials)
    quiet = sum(not (trial.rewarded or trial.flagged or trial.unnoticed) for trial in trials)
    return {
        "tried": len(trials),
        "rewarded": rewarded,
        "flagged": flagged,
        "plain_failures": quiet,
        "unnoticed": unnoticed,
    }


def _bound(count: int, n: int) -> float | None:
    """None where nothing was tried: no bound is known."""
    return round(Rate(count, n).high, 4) if n else None


@dataclass(frozen=True, slots=True)
class TaskAudit(_Counted):
    """One task. `problem` says why right and wrong solutions of it could not be had.

    `left_out` gives the attacks that do not apply to it, with the reason.
    """

    task: Task
    trials: Sequence[Trial]
    problem: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {
            "task": self.task.id,
            "runner": self.task.verification.runner,
            "problem": self.problem,
            **self.counts(),
            "not_applicable": dict(self.left_out),
        }


@dataclass(frozen=True, slots=True)
class Audit(_Counted):
    """All tasks. `without` gives rows of the published catalogue that no attack stands for, with the reason."""

    tasks: Sequence[TaskAudit]
    verifier_version: str
    seed: int
    seconds: float
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def trials(self) -> list[Trial]:  # type: ignore[override]
        return [trial for task in self.tasks for trial in task.trials]

    def by_kind(self) -> dict[str, dict[str, int]]:
        """Counts of attacks for each kind that was tried."""
        attacks = self.of("attack")
        by_kind = {kind: [trial for trial in attacks if trial.kind == kind] for kind in KINDS}
        return {kind: attack_counts(trials) for kind, trials in by_kind.items() if trials}

    @property
    def sound(self) -> bool:
        """No attack was rewarded and no right solution was rejected."""
        return not self.rewarded and not self.rejected

    def document(self) -> dict[str, Any]:
        """The audit as JSON data."""
        return {
            "tasks": [task.document() for task in self.tasks],
            **self.counts(),
            "undecided": _documents(self.undecided),
            "kinds": self.by_kind(),
            "rewarded": _documents(self.rewarded),
            "unnoticed": _documents(self.unnoticed),
            "survivors": _documents(self.accepted),
            "rejected": _documents(self.rejected),
            "rows_without_attack": dict(self.without),
            "verifier_version": self.verifier_version,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
        }


def _documents(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    return [trial.document() for trial in trials]


def reasons_left_out(tasks: Iterable[TaskAudit]) -> Counter[str]:
    """How many attacks were left out, by reason."""
    return Counter(reason for task in tasks for reason in task.left_out.values())
