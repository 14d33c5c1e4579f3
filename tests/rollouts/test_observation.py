"""Observations: bounded, stable, and plain about what went wrong."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from practicum.rollouts.observation import render_result, shorten
from practicum.sandboxes.contract import CommandResult


def render(result: CommandResult) -> str:
    return render_result(result, timeout_note="timed out after 5s", max_chars=100)


def test_success_is_its_output() -> None:
    """Nothing is added to what a command that succeeded said."""
    assert render(CommandResult(0, b"a\nb\n", b"")) == "a\nb"
    assert render(CommandResult(0, b"out\n", b"err\n")) == "out\nerr"
    assert render(CommandResult(0, b"", b"")) == "[no output]"


def test_failures_are_named() -> None:
    """Exit codes, time-outs, memory and cut output are told in brackets, without durations."""
    assert render(CommandResult(1, b"", b"bad\n", wall_s=1.23)) == "bad\n[exit 1]"
    assert render(CommandResult(124, b"x", b"", timed_out=True, wall_s=5.01)) == "x\n[timed out after 5s]"
    assert render(CommandResult(137, b"", b"", oom_killed=True)) == "[out of memory]\n[exit 137]"
    assert "not whole" in render(CommandResult(0, b"x", b"", truncated=True))


@given(st.binary(), st.binary())
def test_any_bytes_become_text(stdout: bytes, stderr: bytes) -> None:
    """What a command writes is data; NUL bytes and broken UTF-8 are shown, never an error."""
    render(CommandResult(0, stdout, stderr)).encode()


@given(st.text(max_size=300), st.integers(1, 100))
def test_long_text_keeps_head_and_tail(text: str, cap: int) -> None:
    """What is left out is counted, and head and tail are those of the text."""
    short = shorten(text, cap)
    if len(text) <= cap:
        assert short == text
        return
    note = f"\n[{len(text) - cap} characters left out]\n"
    head, tail = short.split(note, 1) if short.count(note) == 1 else (text[: cap // 3], text[-(cap - cap // 3) :])
    assert len(head) + len(tail) == cap
    assert text.startswith(head)
    assert text.endswith(tail)
