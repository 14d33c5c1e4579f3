"""A run is read from the driver's lines as the judge would read it, whatever else stands there."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.curation.projects.suiterun import SuiteRun, plain, read_run


def _run(lines: list[list[Any]], ids: list[str] | None = None, **fields: Any) -> SuiteRun:
    return read_run({"how": "ended", "status": 0, "reports": "\n".join(map(json.dumps, lines))} | fields, ids)


def _phases(name: str, *outcomes: str) -> list[list[Any]]:
    return [["test", name, p, o, 0.5, ""] for p, o in zip(("setup", "call", "teardown"), outcomes, strict=False)]


def test_outcomes() -> None:
    """A pass needs each phase once and plainly passed."""
    lines = [
        ["ids", ["a", "b", "c", "d", "e", "f"]],
        *_phases("a", "passed", "passed", "passed"),
        *_phases("b", "passed", "failed", "passed"),
        *_phases("c", "failed"),
        *_phases("d", "skipped"),
        *_phases("e", "passed", "passed", "passed"),
        ["test", "e", "call", "passed", 0.5, ""],
        ["end", 1],
    ]
    run = _run(lines)
    assert run.outcomes == {"a": "passed", "b": "failed", "c": "error", "d": "skipped", "e": "error", "f": "error"}
    assert run.ended == "done"
    assert (set(run.passed), set(run.failed)) == ({"a"}, {"b", "c", "e", "f"})
    assert run.seconds["a"] == 1.5
    assert "more than one outcome" in run.messages["e"]


def test_a_run_that_was_cut_off() -> None:
    """What was running is named, and what had not run is no pass."""
    lines: list[list[Any]] = [
        ["ids", ["t::a", "t::b", "t::c"]],
        ["start", "t::a"],
        *_phases("t::a", "passed", "passed", "passed"),
    ]
    run = _run([*lines, ["start", "t::b"]], how="timeout", status=9)
    assert (run.ended, run.hung) == ("timeout", "t::b")
    assert run.outcomes == {"t::a": "passed", "t::b": "error", "t::c": "error"}
    assert "did not end in time" in run.messages["t::b"]
    assert _run(lines, status=139).ended == "crashed"
    assert _run(lines).ended == "crashed"  # it left without saying how it ended


def test_a_file_that_is_not_collected() -> None:
    """All tests of such a file have its message, and so have others that were to run beside it."""
    run = _run([["collect", "t.py", "ImportError: x"], ["ids", []], ["end", 2]], ["t.py::a", "u.py::b"])
    assert run.uncollected == ("t.py",)
    assert set(run.messages.values()) == {"ImportError: x"}


VALUES = st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["test", "a", "call", "passed", "end"])


@settings(max_examples=60)
@given(st.lists(st.text(max_size=20) | st.lists(VALUES, max_size=6).map(json.dumps), max_size=6))
def test_any_lines_are_borne(lines: list[str]) -> None:
    """A test may write what it likes to the pipe: no id passes by that but one that is reported in full."""
    run = read_run({"how": "ended", "status": 0, "reports": "\n".join(lines)}, ["a"])
    assert run.outcomes == {"a": "error"}


def test_messages_without_places() -> None:
    """Folders of the box and addresses do not stand in what is told."""
    assert plain("at /app/src/x.py and /tests/t.py: <A at 0x7F00AB12>") == "at src/x.py and t.py: <A at 0x…>"
    assert plain("/apple /home/app/x") == "/apple /home/app/x"
