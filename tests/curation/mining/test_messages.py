"""Of a commit's message, what is wrong or wanted is kept; references, people and the fix are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.mining.messages import cleaned
from practicum.curation.mining.withholding import Withheld
from practicum.records.tree import File

BEFORE = {"a.py": File(b"def first(items):\n    return items[1]\n")}
FIX = Withheld.of(BEFORE, {"a.py": b"def first(items):\n    return items[0] if items else None\n"})
NONE = Withheld.of({}, {})


@pytest.mark.parametrize(
    ("subject", "wanted"),
    [
        ("Fix the sum (#12)", "Fix the sum"),
        ("fix parsing of dates, closes #4, #5", "Fix parsing of dates"),
        ("[core] Handle empty input. See https://example.org/x/1", "Handle empty input"),
        ("Handle names, follow-up on https://example.org/x/1", "Handle names"),
        ("lint", ""),
        ("respond to comments", ""),
        ("Handle names (issue601)", "Handle names"),
        ("Merge: undo 1a2b3c4d5e", "Merge: undo"),
        ("wip", ""),
        ("fixed tests", ""),
        ("Use return items[0] if items else None", ""),
    ],
)
def test_titles(subject: str, wanted: str) -> None:
    """A title without references; one that says nothing, or the fix, is none."""
    assert cleaned(subject, "", FIX)[0] == wanted


def test_a_body() -> None:
    """Sentences about the work, code of the fix and trailers go; what was observed stays, with its examples."""
    body = """The first item was taken from the wrong place since 1a2b3c4d,
as ann@example.org saw (see #12), with `@cached`. Now we use items[0].

Before:

    >>> first("ab")
    'b'

    return items[0] if items else None

- empty lists raised IndexError in #7 too
- use a condition

This commit adds tests.

Fixes #12
Workstream-Id: 77
Co-authored-by: Bob <bob@example.org>"""
    title, text = cleaned("Take the first item", body, FIX)
    assert title == "Take the first item"
    assert text == (
        "The first item was taken from the wrong place, with `@cached`."
        "\n\nBefore:\n\n    >>> first(\"ab\")\n    'b'"
        "\n\n- empty lists raised IndexError too"
    )


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_reference_survives(subject: str, body: str) -> None:
    """Whatever a message is, cleaning ends, and is done after the first time as far as hashes and addresses go."""
    title, text = cleaned(subject, f"{body}\nsee https://example.org/{body[:5]} and 0123abcdef", NONE)
    assert "https://" not in title + text
    assert "0123abcdef" not in text


def test_prose_is_not_taken_for_the_fix() -> None:
    """Words that also stand in the fix do not give it away; a run of its code does."""
    assert not FIX.told_by("first returns items in the wrong order, or None")
    assert FIX.told_by("so: items[0] if items else None")
    assert not FIX.told_by("return items[1]")


def test_noise_of_squashed_commits_is_dropped() -> None:
    """Lines that tell of the work's own course say nothing to who is to do it again."""
    text = cleaned(
        "Round up", "* Sums were rounded down\n* lint\n* respond to comments\n* Fix lint.\n* PR feedback", NONE
    )[1]
    assert text == "* Sums were rounded down"


def test_a_pasted_definition_is_withheld() -> None:
    """A paragraph that defines a function goes, however little of it is new; what is said beside it stays."""
    fixed = "def clamp(value, low, high):\n    if value > high:\n        return high\n    return value"
    body = f"Values above the bound come back unchanged.\n\n{fixed}\n\nSeen with integers."
    _, text = cleaned("Clamp does not clamp", body, Withheld.of({}, {}))
    assert text == "Values above the bound come back unchanged.\n\nSeen with integers."
