"""What was measured is there again after a stop, for the same project only."""

from __future__ import annotations

from pathlib import Path

import pytest

from practicum.curation.projects.measured import NAME, Measured
from practicum.curation.projects.suiterun import SuiteRun
from practicum.errors import StoreError

RUN = SuiteRun(
    {"t.py::a": "passed", "t.py::b": "failed"},
    {"t.py::a": 0.25},
    {"t.py::b": "AssertionError: ü\u2028"},
    {"t.py::a": {"src/a.py": frozenset({1, 3})}, "": {"src/a.py": frozenset({2})}},
    uncollected=("u.py",),
    log="end",
    seconds_all=1.5,
)


def test_a_run_is_read_again(tmp_path: Path) -> None:
    """A run comes back as it was; another project sees nothing of it; a torn line is dropped."""
    first = Measured(tmp_path, "p")
    assert first.run("one") is None
    first.put_run("one", RUN)
    first.put("sentinels", {"t.py::a": "guarded"})
    with (tmp_path / ".practicum" / NAME).open("a") as file:
        file.write('[1, "p", "tw')
    again = Measured(tmp_path, "p")
    assert again.run("one") == RUN
    assert again.get("sentinels") == {"t.py::a": "guarded"}
    assert Measured(tmp_path, "q").run("one") is None


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    """A line that cannot be read is an error with its place."""
    Measured(tmp_path, "p").put("x", 1)
    path = tmp_path / ".practicum" / NAME
    path.write_text(path.read_text() + "nonsense\n")
    with pytest.raises(StoreError, match=f"{NAME}:2"):
        Measured(tmp_path, "p")
