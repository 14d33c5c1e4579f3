"""Ways in which a model says what it wants done: the texts that explain them, and how they are read.

Owns: `Speech`, the ways `tags`, `hermes`, `llama` and `fence`.
Invariant: whatever a model says is data. Reading never raises, and what holds no action, or more than one, is an
`invalid` action with a reason that the model is shown; nothing is guessed.
Must not know: ids, chat templates, boxes. No I/O.

    tags     <bash>…</bash>, <edit>…</edit>, <submit>: see `protocol`
    hermes   <tool_call>{"name": …, "arguments": {…}}</tool_call>
    llama    {"name": …, "parameters": {…}} and nothing else
    fence    one fenced block of Python: the new text of the file that is to be written
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from practicum.policies.protocol import MAX_EDIT_BYTES, SYSTEM_PROMPT, format_action, parse_action
from practicum.records.trajectory import Action

_TOOLS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "bash": ("Run a shell command in the workspace.", {"command": "the command"}),
    "edit": (
        "Replace text that occurs exactly once in a file; an empty `old` creates the file.",
        {"path": "the file", "old": "the text to replace", "new": "what replaces it"},
    ),
    "submit": ("Finish; what the workspace holds is then judged by tests that you cannot see.", {}),
}
_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_FENCE = re.compile(r"^```(?:python|py)?[^\S\n]*\n(.*?)^```[^\S\n]*$", re.DOTALL | re.MULTILINE)
_OPEN = re.compile(r"^```(?:python|py)?[^\S\n]*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Speech:
    """One way: what a model is told of it (`system`, empty for nothing), how its text is read and written.

    `say` raises `ValueError` for an action that this way cannot carry. `observer` is the role under which the model is
    shown what came of its action.
    """

    name: str
    system: str
    read: Callable[[str], Action]
    say: Callable[[Action], str]
    observer: str = "user"


def read_hermes(text: str) -> Action:
    """The one call between `<tool_call>` marks."""
    calls = _CALL.findall(text)
    if len(calls) != 1:
        return _invalid("no tool call in the text" if not calls else "more than one tool call in a turn")
    return _read_call(calls[0], "arguments")


def read_llama(text: str) -> Action:
    """The call that the whole text is."""
    return _read_call(text.strip().removeprefix("<|python_tag|>"), "parameters")


def read_fence(text: str) -> Action:
    """The one fenced block as the content of the file to write; a block that was never closed holds nothing."""
    blocks = _FENCE.findall(text)
    if len(blocks) != 1:
        if blocks:
            return _invalid("more than one code block in a turn")
        return _invalid("the code block is not closed" if _OPEN.search(text) else "no code block in the text")
    if "\0" in blocks[0] or len(blocks[0].encode("utf-8", "replace")) > MAX_EDIT_BYTES:
        return _invalid("the code block holds a NUL byte or is too long")
    return Action("write", {"content": blocks[0]})


def _read_call(text: str, key: str) -> Action:
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return _invalid("the tool call is not JSON")
    name = call.get("name") if isinstance(call, dict) else None
    arguments: Any = call.get(key, {}) if isinstance(call, dict) else None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return _invalid(f'a tool call is an object with "name" and "{key}"')
    if name not in _TOOLS:
        return _invalid(f"there is no tool {name[:40]!r}; there are {', '.join(_TOOLS)}")
    wanted = _TOOLS[name][1]
    if arguments.keys() != wanted.keys() or not all(isinstance(value, str) for value in arguments.values()):
        return _invalid(f"{name} takes {', '.join(wanted) or 'nothing'}, as text")
    if name == "submit":
        return Action("submit")
    # Through the protocol's own checks: length, NUL, paths.
    checked = parse_action(f"<bash>{arguments['command']}</bash>") if name == "bash" else Action(name, arguments)
    if name == "bash" and checked.tool == "bash" and checked.arguments["command"] != arguments["command"]:
        return _invalid("a command cannot contain </bash>")
    return checked


def _say_call(action: Action, key: str) -> str:
    if action.tool not in _TOOLS or action.arguments.keys() != _TOOLS[action.tool][1].keys():
        raise ValueError(f"an action of tool {action.tool!r} with {sorted(action.arguments)} is no tool call")
    return json.dumps({"name": action.tool, key: dict(action.arguments)}, ensure_ascii=False)


def _say_fence(action: Action) -> str:
    text = f"```python\n{action.arguments.get('content', '')}```"
    if action.tool != "write" or read_fence(text) != action:
        raise ValueError(f"a code block cannot carry this {action.tool} action")
    return text


def _invalid(reason: str) -> Action:
    return Action("invalid", {"reason": reason})


def _listed() -> str:
    """The tools as the functions of the OpenAI format, a line each."""
    lines = []
    for name, (about, arguments) in _TOOLS.items():
        properties = {key: {"type": "string", "description": text} for key, text in arguments.items()}
        parameters = {"type": "object", "properties": properties, "required": list(arguments)}
        function = {"name": name, "description": about, "parameters": parameters}
        lines.append(json.dumps({"type": "function", "function": function}))
    return "\n".join(lines)


_WORK = "You repair software in a sandboxed workspace. Each of your turns holds exactly one tool call."

TAGS = Speech("tags", SYSTEM_PROMPT, parse_action, format_action)
HERMES = Speech(
    "hermes",
    f"{_WORK} You may call these functions:\n<tools>\n{_listed()}\n</tools>\n"
    'For a call, write a JSON object with its name and arguments between marks:\n<tool_call>\n{"name": '
    '<function-name>, "arguments": <arguments>}\n</tool_call>',
    read_hermes,
    lambda action: f"<tool_call>\n{_say_call(action, 'arguments')}\n</tool_call>",
    observer="tool",
)
LLAMA = Speech(
    "llama",
    f"{_WORK} You may call these functions:\n{_listed()}\n"
    'Answer with nothing but a JSON object: {"name": <function-name>, "parameters": <arguments>}',
    read_llama,
    lambda action: _say_call(action, "parameters"),
)
FENCE = Speech("fence", "", read_fence, _say_fence)
SPEECHES: Mapping[str, Speech] = {speech.name: speech for speech in (TAGS, HERMES, LLAMA, FENCE)}
