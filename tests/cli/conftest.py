"""The real command, run as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Done:
    """How one run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


Cli = Callable[..., Done]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs `practicum ARGUMENTS` in a folder of its own, with a terminal 80 columns wide."""

    def run(*arguments: str | Path, cwd: Path = tmp_path, timeout_s: float = 60, **env: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "practicum", *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "COLUMNS": "80", **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
