"""`kill -9` at every step of the journal of a run: another process ends it as if nothing had happened."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from practicum.sandboxes.janitor import reconcile
from practicum.sandboxes.layers import LayerCache

SWEEPER = Path(__file__).with_name("sweeper.py")


@pytest.fixture
def cache() -> Iterator[LayerCache]:
    # Not pytest's tmp_path: that is closed to other users, and the sandbox's user must get at the layers.
    root = Path(tempfile.mkdtemp(prefix="practicum-test-"))
    root.chmod(0o755)
    yield LayerCache(root)
    shutil.rmtree(root)


def left(cache: LayerCache, owners: set[int]) -> list[str]:
    """Processes, mounts, control groups and records of the boxes of `owners`."""
    found = [str(path) for path in (cache.state / "owners").glob("*")]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if cache.root.name in line]
    names = tuple(f"practicum-{pid}-" for pid in owners)
    found += [place for place, _, _ in os.walk("/sys/fs/cgroup") if Path(place).name.startswith(names)]
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if cache.root.name.encode() in (entry / "cmdline").read_bytes() + (entry / "mountinfo").read_bytes():
                found.append(f"process {entry.name}")
        except OSError:  # it has ended
            continue
    return found


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_run_killed_at_every_step_of_its_journal_ends_the_same(cache: LayerCache, tmp_path: Path) -> None:
    """Ids, texts, observations, snapshots, verdicts and seeds are those of an unbroken run; each attempt is reported
    once and each action counts once; no step makes an episode begin anew; nothing is left behind."""
    env = {"CACHE": str(cache.root), "WORK": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(SWEEPER)], env=os.environ | env, capture_output=True, text=True, timeout=2900, check=False
    )
    assert done.returncode == 0, done.stderr
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    ended = [fact for fact in facts if "status" in fact]
    statuses = {(fact["number"], fact["stop_at"] > 0): fact["status"] for fact in ended}
    steps = next(fact["steps"] for fact in facts if fact.get("number") == 0 and "steps" in fact)
    numbers = range(2, steps + 1)
    assert {statuses[number, True] for number in numbers} == {-9}, done.stderr
    assert {statuses[number, False] for number in numbers} == {0}, done.stderr
    whole = reports(tmp_path / "0000")
    assert len(whole) == 4
    for report in whole.values():
        assert (report["verdict"]["outcome"], report["stop_reason"], report["restarts"]) == ("passed", "turn_limit", 0)
        assert report["turns"][-1]["observation"].splitlines()[:2] == ["first", report["id"]]
        assert report["turns"][-1]["observation"].count("# seen") == 2
    for number in numbers:
        assert reports(tmp_path / f"{number:04d}") == whole, number
    deadline = time.monotonic() + 20
    for path in (cache.state / "owners").glob("*"):
        if path.stat().st_size == 0:  # one that names no owner is given a minute to do so
            os.utime(path, (0, 0))
    reconcile(cache.state)
    owners = {fact["pid"] for fact in ended}
    while (found := left(cache, owners)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == []


def reports(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_text()) for path in folder.glob("group-*-?")}
