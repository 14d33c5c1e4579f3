"""The action protocol: anything is data, an ambiguous edit is refused, what is formatted parses back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.policies.protocol import (
    MAX_COMMAND_BYTES,
    SYSTEM_PROMPT,
    EditProblem,
    apply_edit,
    format_action,
    parse_action,
)
from practicum.records.trajectory import Action

TAGS = ["<bash>", "</bash>", "<edit>", "</edit>", "<old>", "<new>", "</old>", "</new>", "<submit>", "<submit/>"]
TAGS += ["<think>", "</think>", "```bash\n", "\n```", "\0", "\ud800", ":1", ":" + "9" * 5000, "<bash/>", " ", "\n", "a"]
soup = st.lists(st.sampled_from(TAGS) | st.text(max_size=5), max_size=20).map("".join)


def reason(text: str) -> str:
    action = parse_action(text)
    assert action.tool == "invalid"
    return action.arguments["reason"]


@given(soup)
def test_no_text_makes_the_parser_raise(text: str) -> None:
    """Whatever a policy says ends as an action of a known tool whose arguments can be stored as UTF-8."""
    action = parse_action(text)
    assert action.tool in {"bash", "edit", "submit", "invalid"}
    for value in action.arguments.values():
        value.encode()


@given(soup)
def test_what_parses_can_be_formatted_or_is_refused(text: str) -> None:
    """An action read from any text either round-trips or is refused by name."""
    action = parse_action(text)
    try:
        formatted = format_action(action)
    except ValueError:
        return
    assert parse_action(formatted) == action


plain = st.text(st.characters(exclude_characters="<`\0", exclude_categories=["Cs"]), max_size=30)


@given(plain.filter(str.strip))
def test_commands_round_trip(command: str) -> None:
    """A command without tags survives formatting and parsing, line breaks included."""
    action = Action("bash", {"command": command})
    assert parse_action(format_action(action)) == action


@given(st.sampled_from(["a.py", "src/b c.py"]), st.none() | st.integers(1, 999), plain, plain)
def test_edits_round_trip(path: str, line: int | None, old: str, new: str) -> None:
    """An edit survives formatting and parsing, with and without a line."""
    arguments = {"path": path, **({"line": str(line)} if line else {}), "old": old, "new": new}
    action = Action("edit", arguments)
    assert parse_action(format_action(action)) == action


def test_a_command_with_a_closing_tag_is_refused_when_formatted() -> None:
    """What the protocol cannot carry is an error for whoever writes it, never another command."""
    with pytest.raises(ValueError, match="cannot carry"):
        format_action(Action("bash", {"command": "echo '</bash>'"}))


def test_an_action_may_follow_prose_and_reasoning() -> None:
    """General chat models think aloud; tags inside a leading think block do not count."""
    text = "<think>maybe <submit>?</think>\nLet me look.\n<bash>ls -l</bash>\nDone soon."
    assert parse_action(text) == Action("bash", {"command": "ls -l"})


def test_a_fenced_block_counts_as_a_command() -> None:
    """One fenced bash block is a command; two are not one action."""
    assert parse_action("Look:\n```bash\nls\npwd\n```\n") == Action("bash", {"command": "ls\npwd\n"})
    assert "more than one" in reason("```bash\nls\n```\n```sh\npwd\n```\n")


def test_two_actions_in_a_turn_are_invalid() -> None:
    """Nothing is run where it is unclear what was meant."""
    assert "more than one" in reason("<bash>a</bash><submit>")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no action"),
        ("hello", "no action"),
        ("<bash>ls", "no </bash>"),
        ("<bash>  </bash>", "empty"),
        ("<bash>a\0b</bash>", "NUL"),
        ("<bash>\ud800</bash>", "valid text"),
        (f"<bash>{'x' * (MAX_COMMAND_BYTES + 1)}</bash>", "longer"),
        ("<edit>a.py</edit>", "<old>"),
        ("<edit>a.py<new>x<old>y</edit>", "<new>"),
        ("<edit><old>x<new>y</edit>", "path"),
        ("<edit>a:99999999999<old>x<new>y</edit>", "line number"),
        ("<think>for ever <bash>ls</bash>", "no action"),
    ],
)
def test_broken_actions_say_why(text: str, why: str) -> None:
    """Each kind of broken text comes back with its reason."""
    assert why in reason(text)


def test_a_huge_text_is_read_quickly() -> None:
    """Megabytes of half-open tags cost one pass, not a pass a tag."""
    for unit in ("<bash>", "<edit><old>", "```bash\n", "<think>", "</bash>"):
        assert parse_action(unit * (2_000_000 // len(unit))).tool in {"invalid", "bash"}


def test_chat_models_may_close_old_and_new() -> None:
    """Closing tags that nobody asked for are not taken for content."""
    action = parse_action("<edit>a.py<old>x</old>\n<new>y</new>\n</edit>")
    assert action.arguments == {"path": "a.py", "old": "x", "new": "y"}


def edit(content: bytes | None, old: str, new: str, line: int | None = None) -> bytes | EditProblem:
    return apply_edit(content, {"old": old, "new": new, **({"line": str(line)} if line is not None else {})})


def test_an_edit_replaces_the_one_occurrence() -> None:
    """Without a line OLD is looked for in the whole file and may span lines; with one, in that line only."""
    assert edit(b"a\nb\nc\n", "a\nb", "x") == b"x\nc\n"
    assert edit(b"a = 1\nb = 1\n", "1", "2", 2) == b"a = 1\nb = 2\n"
    assert edit(b"x\r\ny", "x", "\xe9", 1) == "\xe9\r\ny".encode()
    assert edit(None, "", "new\n") == b"new\n"
    assert edit(b"a\n\nb", "", "x", 2) == b"a\nx\nb"
    assert edit(b"", "", "x") == b"x"


@pytest.mark.parametrize(
    ("content", "old", "line", "why"),
    [
        (None, "a", None, "no such file"),
        (None, "", 1, "no such file"),
        (b"a\n", "b", None, "does not occur in the file"),
        (b"aaa\n", "aa", None, "more than once"),
        (b"a\na\n", "a", None, "more than once"),
        (b"a\nb\n", "b", 1, "does not occur in line 1"),
        (b"a\nb\n", "a\nb", 1, "does not occur in line 1"),
        (b"a\n", "a", 0, "no line 0"),
        (b"a\n", "a", 9, "no line 9"),
        (b"a\n", "", None, "the file exists"),
        (b"a\n", "new", 1, "does not occur"),
    ],
)
def test_an_edit_that_is_not_clear_is_a_problem(content: bytes | None, old: str, line: int | None, why: str) -> None:
    """An edit that could mean several things, or nothing, changes nothing and says why."""
    problem = edit(content, old, "new", line)
    assert isinstance(problem, EditProblem)
    assert why in problem.text


@given(st.binary(max_size=40), st.text(max_size=4), st.text(max_size=4), st.none() | st.integers(0, 5))
def test_an_edit_changes_exactly_its_occurrence(content: bytes, old: str, new: str, line: int | None) -> None:
    """Any content can be edited, and undoing the replacement gives the content back."""
    if any("\ud800" <= c <= "\udfff" for c in old + new):
        return
    after = edit(content, old, new, line)
    if isinstance(after, bytes):
        o, n = old.encode(), new.encode()
        assert any(after[:i] + o + after[i + len(n) :] == content for i in range(len(after) + 1))


def test_the_system_prompt_shows_forms_that_parse() -> None:
    """The forms taught to a chat model are those that are read."""
    for tool in ("bash", "edit", "submit"):
        assert f"<{tool}>" in SYSTEM_PROMPT
    assert parse_action("<edit>PATH:3<old>OLD<new>NEW</edit>").arguments["line"] == "3"
