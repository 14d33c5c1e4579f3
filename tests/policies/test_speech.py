"""Ways of acting: what is read, what is written, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.policies.speech import FENCE, HERMES, LLAMA, SPEECHES, Speech
from practicum.records.trajectory import Action

LINE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
CODE = st.lists(LINE.filter(lambda line: not line.startswith("```")), max_size=4).map(
    lambda ls: "".join(f"{x}\n" for x in ls)
)


@given(LINE.filter(str.strip), LINE, LINE, st.sampled_from([HERMES, LLAMA]))
def test_tool_calls_there_and_back(command: str, old: str, new: str, speech: Speech) -> None:
    """What can be said is read as what was said."""
    actions = [Action("edit", {"path": "a.py", "old": old, "new": new}), Action("submit")]
    if "</bash>" not in command and not command.startswith("<"):
        actions.append(Action("bash", {"command": command}))
    for action in actions:
        assert speech.read(speech.say(action)) == action


@given(CODE)
def test_code_there_and_back(code: str) -> None:
    """A block's content is what stands between its fences, to the byte."""
    assert FENCE.read(f"Here it is:\n```python\n{code}```\nDone.") == Action("write", {"content": code})
    assert FENCE.read(FENCE.say(Action("write", {"content": code}))) == Action("write", {"content": code})


@given(st.text(max_size=80), st.sampled_from(sorted(SPEECHES)))
def test_reading_never_raises(text: str, name: str) -> None:
    """Whatever a model says is an action, if only an invalid one with a reason."""
    action = SPEECHES[name].read(text)
    assert action.tool != "invalid" or action.arguments["reason"]


@pytest.mark.parametrize(
    ("speech", "text", "reason"),
    [
        (FENCE, "no code", "no code block"),
        (FENCE, "```python\nx = 1\n", "not closed"),
        (FENCE, "```python\na\n```\n```python\nb\n```", "more than one code block"),
        (FENCE, "```python\n\0\n```", "NUL"),
        (HERMES, "I will call", "no tool call"),
        (HERMES, "<tool_call>{}</tool_call><tool_call>{}</tool_call>", "more than one"),
        (HERMES, "<tool_call>{not json}</tool_call>", "not JSON"),
        (HERMES, "<tool_call>[1]</tool_call>", "an object"),
        (HERMES, '<tool_call>{"name": "rm", "arguments": {}}</tool_call>', "no tool 'rm'"),
        (HERMES, '<tool_call>{"name": "bash", "arguments": {"cmd": "ls"}}</tool_call>', "bash takes command"),
        (HERMES, '<tool_call>{"name": "bash", "arguments": {"command": 3}}</tool_call>', "as text"),
        (HERMES, '<tool_call>{"name": "bash", "arguments": {"command": "a</bash>b"}}</tool_call>', "cannot contain"),
        (LLAMA, 'Sure! {"name": "submit", "parameters": {}}', "not JSON"),
    ],
)
def test_what_is_no_action(speech: Speech, text: str, reason: str) -> None:
    """The model is told what was wrong with what it said."""
    action = speech.read(text)
    assert action.tool == "invalid"
    assert reason in action.arguments["reason"]


def test_what_cannot_be_said() -> None:
    """An action that a way of acting has no form for is refused."""
    for speech, action in [
        (FENCE, Action("submit")),
        (FENCE, Action("write", {"content": "```\n"})),
        (HERMES, Action("write", {"content": "x"})),
        (LLAMA, Action("edit", {"path": "a", "line": "1", "old": "", "new": ""})),
    ]:
        with pytest.raises(ValueError, match=r"no tool call|cannot carry"):
            speech.say(action)
