"""Training runs of the smallest size that learns, started as a person starts them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Few tasks, learnt almost by heart, so that some attempts of a group pass and others do not.
SMALL = """
name = "small"
seed = 3
[tasks]
family = "quickstart"
train = 4
validation = 2
test = 2
[policy]
width = 96
heads = 4
[rollout]
group_size = 4
tasks_per_update = 4
max_staleness = {staleness}
[sft]
demonstrations = 16
correct_rate = 0.9
steps = 70
batch_size = 8
rename_rate = 0.0
threads = 1
[rl]
updates = 3
minibatches = 2
[evaluation]
every = 2
"""


class Lab:
    """A place for runs whose boxes can be told from any others."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cache = root / "cache"
        self.config = root / "small.toml"
        self.configure()
        self.environment = os.environ | {"PRACTICUM_CACHE": str(self.cache)}

    def configure(self, *changes: tuple[str, str], staleness: int = 1) -> None:
        """Write the configuration, each `(old, new)` text replaced in it."""
        text = SMALL.format(staleness=staleness)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        self.config.write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "practicum", "train", *arguments, "--json"]
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def train(self, *arguments: str) -> dict[str, Any]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err.decode()
        summary: dict[str, Any] = json.loads(out)
        return summary

    def fail(self, *arguments: str) -> tuple[int, dict[str, Any], str]:
        """Exit code, the error's document and what was said of a run that does not end well."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=240)
        assert process.returncode != 0
        document: dict[str, Any] = json.loads(out)["error"]
        return process.returncode, document, err.decode()

    def run_folder(self) -> Path:
        """The one run folder there is."""
        (folder,) = (self.root / "runs").iterdir()
        return folder

    def begun(self) -> Path:
        """The one run folder, once a run has made it."""
        assert self.eventually(lambda: any(self.root.glob("runs/*/config.toml")), 60)
        return self.run_folder()

    @staticmethod
    def eventually(condition: Callable[[], bool], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def left(self) -> list[str]:
        """Processes and ownership records that still exist of runs here."""
        mark = str(self.root).encode()
        found = [str(path) for path in self.cache.glob("state/owners/*")]
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    line = (entry / "cmdline").read_bytes()
                except (FileNotFoundError, ProcessLookupError):
                    continue
                found += [f"process {entry.name}: {line!r}"] * (mark in line)
        return found


@pytest.fixture
def lab() -> Iterator[Lab]:
    # Not pytest's tmp_path: that is closed to other users, and the sandbox's user must get at the layers.
    root = Path(tempfile.mkdtemp(prefix="practicum-test-"))
    root.chmod(0o755)
    yield Lab(root)
    shutil.rmtree(root)
