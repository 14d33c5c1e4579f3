"""Verdicts that a person looks at, and what rulings do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from practicum.config import RunConfig
from practicum.curation.soundness.noise import read_noise
from practicum.errors import ConfigError
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.spotchecks import (
    ESTIMATES_FILE,
    Checkable,
    checkable,
    rule,
    ruled_estimates,
    rulings,
    save_estimates,
)
from practicum.records.trajectory import Fault, Trajectory
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission, Verdict

PASSED, FAILED = Verdict("valid", "passed", 1.0), Verdict("valid", "failed", -0.2)


def attempt(name: str, verdict: Verdict, text: bytes, fault: Fault | None = None) -> Trajectory:
    work = Submission((Change("a.py", "add", File(text)),))
    return Trajectory(name, "g", "t", "digest", (), "submitted", fault, work, verdict)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder.create(tmp_path, RunConfig()) as made:
        right = [attempt(f"p{n}", PASSED, b"good %d" % n) for n in range(8)]
        wrong = [attempt(f"f{n}", FAILED, b"bad %d" % n) for n in range(8)]
        made.store.append("rl", 1, [*right, *wrong, attempt("again", PASSED, b"good 0")])
        made.store.append("rl", 2, [attempt("lost", PASSED, b"lost", Fault("SandboxDied", "gone"))])
        made.store.append("admission", 0, [attempt("gold", PASSED, b"gold")])
        yield made


def by_rulings(folder: RunFolder, found: dict[tuple[str, str], Checkable], ruling: str) -> float:
    for number in range(4):
        rule(folder, found, f"p{number}", ruling, reason="read it", who="kim")  # type: ignore[arg-type]
    (made,) = ruled_estimates(folder, found)
    return made.false_positive.value


def test_what_can_be_checked(folder: RunFolder) -> None:
    """Each distinct submission of a policy with a valid verdict once; not faults, and not admission's."""
    found = checkable(folder)
    assert len(found) == 16
    assert sorted(sum((each.attempts for each in found.values()), ()))[0] == "again"
    assert {each.phase for each in found.values()} == {"rl"}


def test_rulings_move_the_estimate(folder: RunFolder) -> None:
    """Accepted submissions that a person finds wrong raise the task's rate of false positives, and taking it back
    lowers it: the last ruling counts, and the log keeps all of them."""
    found = checkable(folder)
    high = by_rulings(folder, found, "wrong")
    low = by_rulings(folder, found, "right")
    assert high > low + 0.1
    assert len(rulings(folder)) == 4
    assert len((folder.path / "spotchecks.jsonl").read_bytes().splitlines()) == 8
    assert folder.verify_audit() == 9
    (made,) = ruled_estimates(folder, found)
    assert (made.evidence.passed, made.evidence.failed, made.evidence.rulings.passed_right) == (8, 8, 4)
    save_estimates(folder, [made])
    assert read_noise(folder.path / ESTIMATES_FILE) == {"digest": made}


def test_any_attempt_names_its_submission(folder: RunFolder) -> None:
    """A ruling on one of two equal submissions is a ruling on both."""
    found = checkable(folder)
    rule(folder, found, "p0", "wrong", reason="hard-coded", who="kim")
    entry = rule(folder, found, "again", "right", reason="looked closer", who="lee")
    ((_, counted),) = rulings(folder).items()
    assert counted == entry


def test_no_ruling_without_reason(folder: RunFolder) -> None:
    """An unknown attempt, and a ruling without reason or reviewer, are refused and leave nothing."""
    found = checkable(folder)
    with pytest.raises(ConfigError, match="under 'lost'"):
        rule(folder, found, "lost", "right", reason="x", who="kim")
    for reason, who in (("", "kim"), ("x", " ")):
        with pytest.raises(ConfigError, match="needs its reason"):
            rule(folder, found, "p0", "right", reason=reason, who=who)
    assert rulings(folder) == {}
