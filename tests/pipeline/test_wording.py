"""What a model says is shown, and cannot act."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.pipeline.wording import duration, faults_text, number, percent, points, shares, visible


@given(st.text(st.characters(), max_size=40))
def test_visible_text_is_harmless(text: str) -> None:
    """No control, direction or surrogate character is left but tab and line break, and UTF-8 can hold the rest."""
    shown = visible(text)
    shown.encode()
    assert [c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n"] == []
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200f")


def test_plain_text_is_untouched() -> None:
    """Ordinary text of any script, tabs and line breaks stay as they are."""
    text = "def f():\n\treturn 'ä – 日本語 😀'\n"
    assert visible(text) == text
    assert visible("a\0\x1b[31m\x7f\x9b\ud800") == "a␀␛[31m␡\\u009b\\ud800"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (percent(0.125), "12.5 %"),
        (percent(None), "–"),
        (percent(0.994, 0), "99 %"),
        (points(-0.05), "−5.0"),
        (duration(3.21), "3.2 s"),
        (duration(252), "4 min 12 s"),
        (duration(3725), "1 h 02 min"),
        (number(-0.2, sign=True), "−0.20"),
        (number(None), "–"),
    ],
)
def test_numbers(said: str, expected: str) -> None:
    """Numbers read the same everywhere, and what was not measured is a dash."""
    assert said == expected


def test_shares() -> None:
    """Stages are parts of their sum, and nothing measured is no stage."""
    assert shares({"act": 3.0, "update": 1.0}) == [("act", 0.75), ("update", 0.25)]
    assert shares({}) == shares(None) == shares({"act": 0.0}) == []


def test_faults_text() -> None:
    """Faults are counted by kind with how they were handled."""
    assert faults_text({}, {}) == "none"
    assert faults_text({"SandboxDied": 3}, {"SandboxDied": {"retried": 2, "masked": 1}}) == (
        "3 SandboxDied (1 masked, 2 retried)"
    )
