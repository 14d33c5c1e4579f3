"""Work on many tasks in parts, here and in several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from practicum.curation.similarity.parts import in_parts
from practicum.sandboxes.ownership import children, process_start

SURVEY = """
import time
from practicum.curation.similarity.parts import in_parts
if __name__ == "__main__":
    parts = in_parts(range, 5250, processes=2)
    print(next(parts), flush=True)
    time.sleep(3600)
"""


def whose(start: int, stop: int) -> tuple[int, range]:
    """Who does it, and what."""
    return os.getpid(), range(start, stop)


@pytest.mark.parametrize(("count", "processes"), [(0, 2), (1, 2), (1999, 2), (5250, 1)])
def test_in_this_process(count: int, processes: int) -> None:
    """Every task is in one part, in order; few tasks are not worth a process."""
    parts = list(in_parts(whose, count, processes=processes))
    assert [number for _, part in parts for number in part] == list(range(count))
    assert {pid for pid, _ in parts} <= {os.getpid()}


@pytest.mark.slow
def test_in_others() -> None:
    """What several processes work on comes back in order too, more parts than are begun at once."""
    parts = list(in_parts(range, 5250, processes=2))
    assert [number for part in parts for number in part] == list(range(5250))
    assert len(parts) > 5


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nobody_is_left_when_the_survey_is_killed(end: signal.Signals) -> None:
    """However the process that asked ends, those that helped it are gone soon after, though they wait for work."""
    with subprocess.Popen([sys.executable, "-c", SURVEY], stdout=subprocess.PIPE) as survey:
        assert survey.stdout is not None
        assert survey.stdout.readline() == b"range(0, 500)\n"
        helpers = {pid: process_start(pid) for pid in children(survey.pid)}
        survey.send_signal(end)
        survey.wait(60)
    assert len(helpers) >= 2
    deadline = time.monotonic() + 60
    while left := [pid for pid, start in helpers.items() if process_start(pid) == start]:
        assert time.monotonic() < deadline, f"{left} outlived the survey"
        time.sleep(0.05)
