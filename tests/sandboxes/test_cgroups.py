"""Values for both versions of control groups, and real groups where the host allows them."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from practicum.sandboxes.cgroups import CgroupsMissing, find_cgroups, kill_folders, limit_values, remove_folders


def test_values_of_both_versions() -> None:
    """Bytes, processes and a share of processors become the files of each version."""
    limits = {"memory_bytes": 1 << 20, "pids": 7}
    first = {file: value for _, file, value, _ in limit_values(1, cpus=0.5, **limits)}
    assert first["memory.limit_in_bytes"] == "1048576"
    assert first["pids.max"] == "7"
    assert first["cpu.cfs_quota_us"] == "50000"
    second = {file: value for _, file, value, _ in limit_values(2, cpus=2.0, **limits)}
    assert second["memory.max"] == "1048576"
    assert second["cpu.max"] == "200000 100000"
    assert second["memory.swap.max"] == "0"


def test_killed_and_removed() -> None:
    """Everything in a group, and below it, is killed; then the groups can be removed."""
    try:
        groups = find_cgroups(f"test-{os.getpid()}")
    except CgroupsMissing as error:
        pytest.skip(f"no control groups here: {error}")
    try:
        box = groups.create("box", memory_bytes=64 << 20, pids=10, cpus=1.0)
        join = "; ".join(f"echo $$ > {file}" for file in box.procs_files)
        process = subprocess.Popen(["sh", "-c", f"{join}; sleep 60 & sleep 60"])
        while len(Path(box.procs_files[0]).read_text().split()) < 3:
            time.sleep(0.01)
        assert kill_folders(box.folders)
        process.wait(timeout=5)
        assert remove_folders(box.folders) == []
        assert not any(Path(folder).exists() for folder in box.folders)
    finally:
        groups.remove()
    assert not any(Path(folder).exists() for folder in groups.folders)
