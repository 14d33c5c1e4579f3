"""`practicum verifier spot-check` as a person meets it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.cli.template import template_task
from practicum.config import load_config
from practicum.pipeline.runfolder import RunFolder
from practicum.records.trajectory import Trajectory
from practicum.records.tree import Change, File
from practicum.records.verdict import Finding, Submission, Verdict
from practicum.tasks.harbor import save_task

if TYPE_CHECKING:
    from cli.conftest import Cli

TASK = template_task("t")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with a suspicious success and an honest failure, whose text tries to drive the terminal."""
    odd = Finding("startup_hook_changed", "sitecustomize.py", "add")
    passed = Verdict("valid", "passed", 1.0, findings=(odd,))
    failed = Verdict("valid", "failed", -0.2)
    attempts = [
        Trajectory(
            name, "g", "t", TASK.digest, (), "submitted",
            submission=Submission((Change("stats.py", "edit", File(text)),)), verdict=verdict,
        )
        for name, verdict, text in (("g/0", passed, b"x = 1\n"), ("g/1", failed, b"\x1b[2Jhi\n"))
    ]  # fmt: skip
    with RunFolder.create(tmp_path / "runs", load_config("quickstart")) as folder:
        folder.store.append("rl", 1, attempts)
        save_task(TASK, folder.path / "tasks" / "t")
        return folder.path


def test_the_queue_shows_what_to_look_at(cli: Cli, run: Path) -> None:
    """Task, diff, verdict and findings of each are shown, the unsure success first; looking writes nothing."""
    before = sorted(path.name for path in run.iterdir())
    shown = cli("verifier", "spot-check", run)
    assert shown.code == 0, shown.err
    for text in ("g/0", "passed, unsure", "+x = 1", "startup_hook_changed", "`mean` in `stats.py`", "2 distinct"):
        assert text in shown.out
    assert shown.out.index("g/0") < shown.out.index("g/1")
    assert "\x1b" not in shown.out
    first = cli("verifier", "spot-check", run, "--size", "1", "--json").document["queue"][0]
    assert (first["id"], first["stratum"], first["rate"]) == ("g/0", "passed, unsure", 1.0)
    assert first["findings"][0]["kind"] == "startup_hook_changed"
    assert sorted(path.name for path in run.iterdir()) == before


def test_a_ruling_is_recorded_and_counts(cli: Cli, run: Path) -> None:
    """A ruling needs reason and reviewer, is logged, leaves the queue, and gives the task an estimate with bounds."""
    nobody = cli("verifier", "spot-check", run, "--rule", "g/0=wrong", "--json")
    assert nobody.code == 2
    odd = cli("verifier", "spot-check", run, "--rule", "g/0=maybe", "--json")
    assert "ID=right" in odd.document["error"]["message"]
    why = ("--reason", "it hard-codes the answers", "--reviewer", "kim")
    done = cli("verifier", "spot-check", run, "--rule", "g/0=wrong", *why, "--json")
    assert done.code == 0, done.err
    (entry,) = done.document["rulings"]
    assert (entry["ruling"], entry["reviewer"], entry["task"]) == ("wrong", "kim", "t")
    (made,) = done.document["estimates"]
    assert made["false_positive"]["low"] <= made["false_positive"]["value"] <= made["false_positive"]["high"]
    assert made["method"] == "rulings"
    left = cli("verifier", "spot-check", run, "--json").document
    assert [each["id"] for each in left["queue"]] == ["g/1"]
    assert left["not_ruled"] == 1
    assert (run / "estimates.json").is_file()
    assert "false positives" in cli("verifier", "spot-check", run).out
