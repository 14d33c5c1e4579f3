"""The benchmark of decontamination, small: several processes, everything planted is found, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "decontamination.py"


@pytest.mark.slow
def test_planted_copies_are_found_among_thousands() -> None:
    """Exact, renamed and edited copies and leaks of every kind are found among some thousand tasks, none falsely."""
    command = [sys.executable, str(BENCHMARK), "--tasks", "2500", "--protected", "100", "--json"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=110)
    found = json.loads(done.stdout)
    assert set(found["planted"].values()) > {48}
    assert found["recall"] == dict.fromkeys(found["planted"], 1.0)
    assert (found["false_duplicates"], found["false_contaminated"]) == (0, 0)
