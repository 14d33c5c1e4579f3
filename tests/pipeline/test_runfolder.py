"""The run folder through kills, resumes, second writers and tampering."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from practicum.config import RunConfig, load_config
from practicum.errors import ConfigError, StoreError
from practicum.pipeline.runfolder import RunFolder, list_runs
from practicum.records.trajectory import Trajectory

CONFIG = RunConfig(name="demo", seed=3)


def update_row(update: int) -> dict[str, object]:
    return {"kind": "update", "update": update, "success": 0.5}


def status_of(folder: RunFolder) -> str:
    return folder.status


def attempt(name: str) -> Trajectory:
    return Trajectory(name, "g", "task", "digest", (), "submitted")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs", CONFIG)


def test_create_lays_out_the_folder(folder: RunFolder) -> None:
    """A new run holds its resolved configuration and its name, and counts as running."""
    assert folder.id.startswith("demo-")
    assert folder.config == CONFIG
    assert load_config(folder.path / "config.toml") == CONFIG
    assert status_of(folder) == "running"
    assert status_of(RunFolder.open(folder.path)) == "running"
    assert folder.verify_audit() == 1


def test_two_runs_never_share_a_folder(folder: RunFolder, tmp_path: Path) -> None:
    """A second writer is refused with the pid of the first; a run of the same second gets its own folder."""
    with pytest.raises(StoreError, match=f"pid {os.getpid()}"):
        RunFolder.open(folder.path, write=True)
    with RunFolder.create(tmp_path / "runs", CONFIG) as other:
        assert other.path != folder.path


def test_status(folder: RunFolder) -> None:
    """A run without a lock is interrupted until it has a summary, then finished."""
    folder.close()
    assert status_of(folder) == "interrupted"
    with RunFolder.open(folder.path, write=True) as again:
        again.write_summary({"updates": 1, "path": again.path, "loss": math.nan})
        assert status_of(again) == "running"
    assert status_of(folder) == "finished"
    summary = folder.summary()
    assert summary is not None
    assert (summary["updates"], summary["path"], summary["loss"]) == (1, str(folder.path), None)
    assert folder.verify_audit() == 2


def test_metrics_are_json_whatever_they_hold(folder: RunFolder) -> None:
    """Numbers of numpy, numbers that are not finite and text with surrogates are each one valid JSON line."""
    folder.append_metric(
        {"kind": "x", "a": np.float32(0.5), "b": np.int64(2), "c": math.inf, "d": "\ud800\n", "e": (1,)}
    )
    assert folder.metrics() == [{"kind": "x", "a": 0.5, "b": 2, "c": None, "d": "\ud800\n", "e": [1]}]
    with pytest.raises(TypeError):
        folder.append_metric({"kind": object()})


def test_torn_last_line(folder: RunFolder) -> None:
    """A line torn by a kill is left out by readers and cut off by the next writer."""
    folder.append_metric(update_row(1))
    with folder.metrics_path.open("ab") as file:
        file.write(b'{"kind": "upd')
    assert folder.metrics() == [update_row(1)]
    folder.close()
    with RunFolder.open(folder.path, write=True) as again:
        again.append_metric(update_row(2))
        assert again.metrics() == [update_row(1), update_row(2)]


def test_damage_in_the_middle_is_named(folder: RunFolder) -> None:
    """A whole line that is no JSON object is an error with its number, not a gap."""
    folder.metrics_path.write_bytes(b'{"kind": "a"}\nnonsense\n{"kind": "b"}\n')
    with pytest.raises(StoreError, match="line 2"):
        folder.metrics()


WRITER = """
import sys, time
from pathlib import Path
from practicum.pipeline.runfolder import RunFolder
folder = RunFolder.open(Path(sys.argv[1]), write=True)
n = 0
while True:
    n += 1
    folder.append_metric({"kind": "update", "update": n, "padding": "x" * 50_000})
    if n == 5:
        print("going", flush=True)
"""


def test_kill_9_while_writing(folder: RunFolder) -> None:
    """After kill -9 of a writer the lock is free, the run is interrupted, and no row has a gap before it."""
    folder.close()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, folder.path], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert status_of(folder) == "running"
        with pytest.raises(StoreError, match=f"pid {writer.pid}"):
            RunFolder.open(folder.path, write=True)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout and writer.stdout.close()
    assert status_of(folder) == "interrupted"
    with RunFolder.open(folder.path, write=True) as again:
        updates = [row["update"] for row in again.metrics()]
    assert updates == list(range(1, len(updates) + 1))
    assert len(updates) >= 5


def test_truncate_then_continue_equals_unbroken(tmp_path: Path) -> None:
    """What a resume from update 2 leaves, continued, has the same rows and records as a run never broken."""

    def write(folder: RunFolder, updates: range) -> None:
        for update in updates:
            folder.store.append("rl", update, [attempt(f"r{update}")])
            folder.append_metric(update_row(update))
            folder.append_metric({"kind": "evaluation", "split": "validation", "update": update, "rate": 0.5})

    def record(folder: RunFolder) -> object:
        files = sorted(path.name for path in (folder.path / "trajectories").iterdir())
        return folder.metrics(), list(folder.store.read()), files

    with RunFolder.create(tmp_path, CONFIG) as unbroken, RunFolder.create(tmp_path, CONFIG) as broken:
        for folder in (unbroken, broken):
            folder.append_metric({"kind": "sft", "step": 1})
        write(unbroken, range(1, 6))
        write(broken, range(1, 5))
        broken.store.append("rl", 5, [attempt("half")])
        broken.write_summary({})
        broken.truncate_after(2)
        broken.truncate_after(2)
        assert broken.summary() is None
        write(broken, range(3, 6))
        assert record(broken) == record(unbroken)
        assert [path.name for path in (broken.path / "aside").iterdir()] == ["000"]
        assert len((broken.path / "aside/000/metrics.jsonl").read_text().splitlines()) == 4

        assert broken.verify_audit() == 3


def test_truncate_before_any_checkpoint(folder: RunFolder) -> None:
    """With no checkpoint at all the record starts anew, the warm start included."""
    folder.append_metric({"kind": "sft", "step": 1})
    folder.store.append("test", 0, [attempt("t")])
    folder.truncate_after(0)
    assert (len(folder.metrics()), len(folder.store.batches())) == (1, 1)
    folder.truncate_after(-1)
    assert (folder.metrics(), folder.store.batches()) == ([], [])


@pytest.mark.parametrize("harm", ["alter", "remove", "swap", "insert"])
def test_audit_trail_shows_tampering(folder: RunFolder, harm: str) -> None:
    """Altering, removing, swapping or inserting a line breaks the chain at a named line."""
    for number in range(4):
        folder.audit("admitted", task=f"t{number}")
    assert folder.verify_audit() == 5
    lines = folder.audit_path.read_text().splitlines()
    if harm == "alter":
        lines[2] = lines[2].replace("t1", "tX")
    elif harm == "remove":
        del lines[2]
    elif harm == "swap":
        lines[2], lines[3] = lines[3], lines[2]
    else:
        lines.insert(2, lines[1])
    folder.audit_path.write_text("\n".join(lines) + "\n")
    with pytest.raises(StoreError, match=r"broken at line [34]"):
        folder.verify_audit()


def test_audit_trail_shows_a_missing_end(folder: RunFolder) -> None:
    """Once the run has finished, entries cut from the end are noticed too."""
    folder.write_summary({})
    lines = folder.audit_path.read_text().splitlines()
    folder.audit_path.write_text(lines[0] + "\n")
    with pytest.raises(StoreError, match="cut short"):
        folder.verify_audit()


def test_list_runs(tmp_path: Path) -> None:
    """Runs are listed oldest first with their status; a damaged one is listed with its problem."""
    root = tmp_path / "runs"
    assert list_runs(root) == []
    first = RunFolder.create(root, CONFIG.model_copy(update={"name": "first"}))
    first.append_metric(update_row(1))
    first.write_summary({"updates": 1})
    first.close()
    time.sleep(0.02)
    with RunFolder.create(root, CONFIG.model_copy(update={"name": "second"})) as second:
        second.metrics_path.write_text("nonsense\n")
        (root / "stray").mkdir()
        runs = list_runs(root)
    assert [(run.id.split("-")[0], run.status, run.updates) for run in runs] == [
        ("first", "finished", 1),
        ("second", "interrupted", 0),
    ]
    assert runs[1].problem is not None
    assert "line 1" in runs[1].problem


def test_open_what_is_no_run(tmp_path: Path) -> None:
    """A folder that is no run is refused by name."""
    with pytest.raises(ConfigError, match="not a run folder"):
        RunFolder.open(tmp_path)


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A root that is a file is one clear message, and nothing is left behind."""
    (tmp_path / "runs").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        RunFolder.create(tmp_path / "runs", CONFIG)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.mark.parametrize("room", [0, 100])
def test_full_disk_at_the_start(tmp_path: Path, room: int) -> None:
    """A run that does not fit from the beginning leaves no folder behind and says what to free."""
    code = """
import resource, sys
from pathlib import Path
from practicum.config import RunConfig
from practicum.errors import StoreError
from practicum.pipeline.runfolder import RunFolder
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    RunFolder.create(Path(sys.argv[1]), RunConfig())
except StoreError as error:
    sys.exit(str(error))
"""
    command = [sys.executable, "-c", code, str(tmp_path), str(room)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "no room for" in child.stderr
    assert list(tmp_path.iterdir()) == []


def test_full_disk_keeps_the_metrics_whole(folder: RunFolder) -> None:
    """A row that does not fit is a `StoreError`, and the file still ends with the row before it."""
    folder.append_metric(update_row(1))
    folder.close()
    code = """
import resource, sys
from pathlib import Path
from practicum.errors import StoreError
from practicum.pipeline.runfolder import RunFolder
folder = RunFolder.open(Path(sys.argv[1]), write=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    folder.append_metric({"kind": "update", "padding": "x" * 8000})
except StoreError as error:
    sys.exit(str(error))
"""
    child = subprocess.run([sys.executable, "-c", code, folder.path], capture_output=True, text=True, check=False)
    assert "no room for" in child.stderr
    assert folder.metrics_path.read_text() == json.dumps(update_row(1)) + "\n"


def test_drafts_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    """What kill -9 left half-written, file or folder, is gone once the run is opened to be continued."""
    with RunFolder.create(tmp_path, load_config("quickstart")) as folder:
        path = folder.path
    (path / ".tmp-tasks" / "train-0000").mkdir(parents=True)
    (path / "checkpoints" / ".tmp-00003").mkdir()
    (path / ".tmp-summary.json").write_text("{")
    with RunFolder.open(path, write=True):
        assert [left.name for left in path.rglob(".tmp-*")] == []
