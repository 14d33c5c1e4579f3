"""Spot checks: a sample of a run's verdicts for a person, and what the person's rulings say about the judge.

Owns: `Checkable`, `checkable`, `rule`, `rulings`, `ruled_estimates`; `spotchecks.jsonl` and `estimates.json`.
Invariant: rulings are only ever added, each with who and why; of several on one submission the last counts. Equal
submissions to one task are one, for the sample and for the estimate.
Must not know: how rulings are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from practicum.curation.soundness.noise import read_noise, write_noise
from practicum.errors import ConfigError
from practicum.pipeline.metrics import read_rows
from practicum.pipeline.rewards import NOISE_FILE
from practicum.pipeline.runfolder import RunFolder
from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Submission, Verdict
from practicum.trajectories.durable import append_line
from practicum.verification.calibration.bounds import Rate
from practicum.verification.calibration.noise import Evidence, NoiseEstimate, estimate
from practicum.verification.calibration.posterior import Rulings
from practicum.verification.calibration.sampling import reliability

LOG_FILE = "spotchecks.jsonl"
ESTIMATES_FILE = "estimates.json"
PHASES = ("rl", "validation", "test")
Ruling = Literal["right", "wrong"]


@dataclass(frozen=True, slots=True)
class Checkable:
    """One valid verdict on one submission; `attempts` submitted the same, the shown `trajectory` last of them."""

    trajectory: Trajectory
    submission: Submission
    verdict: Verdict
    phase: str
    update: int
    reliability: float
    attempts: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.trajectory.task_digest, self.submission.digest


def checkable(folder: RunFolder) -> dict[tuple[str, str], Checkable]:
    """Every submission of a policy that has a valid verdict, by task and submission digest; the latest verdict each."""
    known = known_noise(folder)
    found: dict[tuple[str, str], Checkable] = {}
    for batch in folder.store.batches():
        if batch.phase not in PHASES:
            continue
        for trajectory in folder.store.load(batch):
            verdict, submission = trajectory.verdict, trajectory.submission
            if trajectory.fault is not None or verdict is None or submission is None or verdict.status != "valid":
                continue
            noise = known.get(trajectory.task_digest)
            trust = reliability(verdict, noise.youden_low if noise else None)
            made = Checkable(trajectory, submission, verdict, batch.phase, batch.update, trust, (trajectory.id,))
            earlier = found.get(made.key)
            found[made.key] = replace(made, attempts=(*earlier.attempts, trajectory.id)) if earlier else made
    return found


def known_noise(folder: RunFolder) -> dict[str, NoiseEstimate]:
    """The error rates that the run trains by, or none."""
    path = folder.path / NOISE_FILE
    return read_noise(path) if path.is_file() else {}


def rule(
    folder: RunFolder,
    found: Mapping[tuple[str, str], Checkable],
    attempt: str,
    ruling: Ruling,
    *,
    reason: str,
    who: str,
) -> dict[str, Any]:
    """Record that the verdict on `attempt` is right or wrong; returns the entry. Raises `ConfigError`, `StoreError`."""
    one = next((each for each in found.values() if attempt in each.attempts), None)
    if one is None:
        raise ConfigError(
            f"{folder.path} has no verdict to rule on under {attempt!r}",
            fix=f"`practicum verifier spot-check {folder.path}` lists them",
        )
    if not reason.strip() or not who.strip():
        raise ConfigError("a ruling needs its reason and who made it", fix="--reason TEXT --reviewer NAME")
    entry = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "id": attempt,
        "task": one.trajectory.task_id,
        "task_digest": one.key[0],
        "submission": one.key[1],
        "outcome": one.verdict.outcome,
        "reward": one.verdict.reward,
        "verifier_version": one.verdict.verifier_version,
        "reliability": one.reliability,
        "ruling": ruling,
        "reason": reason,
        "reviewer": who,
    }
    append_line(folder.path / LOG_FILE, json.dumps(entry).encode(), sync=True)
    folder.audit("ruled", id=attempt, ruling=ruling, reviewer=who)
    return entry


def rulings(folder: RunFolder) -> dict[tuple[str, str], dict[str, Any]]:
    """The ruling that counts for each submission, by task and submission digest."""
    return {(row["task_digest"], row["submission"]): row for row in read_rows(folder.path / LOG_FILE)}


def ruled_estimates(folder: RunFolder, found: Mapping[tuple[str, str], Checkable]) -> list[NoiseEstimate]:
    """Estimates of the tasks that were ruled on, from rulings and from what was known of them before."""
    known, ruled = known_noise(folder), rulings(folder)
    return [
        _estimate(digest, known.get(digest), (each for key, each in found.items() if key[0] == digest), ruled)
        for digest in sorted({key[0] for key in ruled})
    ]


def save_estimates(folder: RunFolder, ruled: Iterable[NoiseEstimate]) -> None:
    """Write `ruled`, with all others that the run knows, to `estimates.json`: a later run can train by it."""
    everything = known_noise(folder) | {each.digest: each for each in ruled}
    write_noise(folder.path / ESTIMATES_FILE, everything.values(), run=folder.id)


def _estimate(
    digest: str,
    known: NoiseEstimate | None,
    found: Iterable[Checkable],
    ruled: Mapping[tuple[str, str], Mapping[str, Any]],
) -> NoiseEstimate:
    # Admission saw the gold accepted and the untouched task rejected.
    evidence = known.evidence if known else Evidence(wrong_distinct=Rate(0, 1), right_distinct=Rate(0, 1))
    counts = dict.fromkeys(("passed_right", "passed_wrong", "failed_right", "failed_wrong"), 0)
    names = [row["task"] for key, row in ruled.items() if key[0] == digest]
    for key, row in ruled.items():
        if key[0] == digest:
            counts[f"{'passed' if row['outcome'] == 'passed' else 'failed'}_{row['ruling']}"] += 1
    outcomes = [each.verdict.passed for each in found]
    evidence = replace(evidence, passed=sum(outcomes), failed=len(outcomes) - sum(outcomes), rulings=Rulings(**counts))
    return estimate(names[-1], digest, evidence)
