"""Reports of suites are read as hostile text: only exact, single, complete evidence is a pass."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.verification.runners.suites import Read, read_reports
from practicum.verification.sentinels.reading import Bits

PHASES = ("setup", "call", "teardown")
GOOD = [["t", phase, "passed"] for phase in PHASES] + [["", "end", "0"]]


def lines(rows: Sequence[Sequence[object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_all_phases_passed_is_a_pass() -> None:
    """Each phase once, each passed, and an exit status announced."""
    assert read_reports(lines(GOOD), ["t", "u"], PHASES) == Read({"t": "passed"}, [], 0)


def test_what_was_asked_is_read_with_its_test() -> None:
    """Each assertion's row, once, by test and tag."""
    asked = ["t", "asked", [["x", "10", 1, 2, "why"], ["y", "1", 1, 1, ""]]]
    read = read_reports(lines([asked, *GOOD]), ["t"], PHASES)
    assert read.asked == {"t": {"x": Bits("10", 1, 2, "why"), "y": Bits("1", 1, 1)}}
    assert read.findings == []


def test_a_changed_framework_is_a_note() -> None:
    """It is told, and does not speak against the whole."""
    read = read_reports(lines([*GOOD, ["", "changed", "x.y"]]), ["t"], PHASES)
    assert (read.findings, [note.kind for note in read.notes]) == ([], ["framework_changed"])


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (GOOD[1:], None),
        ([["t", "call", "failed"], *GOOD[:1], *GOOD[2:]], None),
        ([*GOOD, ["t", "call", "passed"]], "report_repeated"),
        ([*GOOD, ["other", "call", "passed"]], "report_unexpected"),
        ([*GOOD, ["t", "extra", "passed"]], "report_unexpected"),
        ([*GOOD, [1, 2, 3]], "report_unexpected"),
        ([*GOOD, ["t"]], "report_unreadable"),
        ([*GOOD, ["t", "asked", [["x", "12", 1, 2, ""]]]], "report_unexpected"),
        ([*GOOD, ["t", "asked", [["x", "11", 1, 2, ""]]]], "report_unexpected"),
        ([*GOOD, ["t", "asked", [["x", "1", True, 1, ""]]]], "report_unexpected"),
        ([*GOOD, *[["t", "asked", [["x", "1", 1, 1, ""]]]] * 2], "report_unexpected"),
    ],
)
def test_anything_else_is_none(rows: list[list[object]], kind: str | None) -> None:
    """A missing or failed phase fails the test; a repeated, unexpected or odd line speaks against the whole."""
    read = read_reports(lines(rows), ["t"], PHASES)
    assert read.statuses["t"] == "failed" if kind is None else kind in {finding.kind for finding in read.findings}


@given(st.text() | st.lists(st.lists(st.text() | st.integers() | st.none(), max_size=4)).map(lines))
def test_any_text_is_borne(text: str) -> None:
    """No text makes the judge fail, and none that lacks the evidence passes."""
    read = read_reports(text, ["t"], PHASES)
    assert read.statuses.get("t") != "passed"
    assert all(finding.severity == "note" for finding in (*read.findings, *read.notes))
