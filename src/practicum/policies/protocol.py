"""The action protocol: how an assistant's text names the one thing it wants done.

Owns: the grammar (`parse_action`, `format_action`), the meaning of an edit (`apply_edit`) and the text that
explains both to a general chat model (`SYSTEM_PROMPT`).
Invariant: whatever a policy says is data. Parsing never raises; what is not an action is an `invalid` action
with a reason. `parse_action(format_action(a)) == a` for every action that `format_action` accepts.
Must not know: boxes, ids, models. No I/O.

    <bash>COMMAND</bash>
    <edit>PATH[:LINE]<old>OLD<new>NEW</edit>
    <submit>

COMMAND, OLD and NEW are literal: there is no escaping, so a command cannot contain `</bash>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from practicum.records.trajectory import Action

MAX_COMMAND_BYTES = 100_000  # Linux takes at most 128 KiB in one argument
MAX_EDIT_BYTES = 1_000_000

_OPENING = re.compile(r"<(bash|edit|submit)/?>")
_FENCE_OPENINGS = frozenset({"```bash", "```sh", "```shell"})

SYSTEM_PROMPT = """\
You repair software in a sandboxed workspace. Each of your turns holds exactly one action; you then see its output.

Run a shell command in the workspace:
<bash>COMMAND</bash>

Replace text in a file. OLD must occur exactly once in the file, or, when a line number is given, exactly once in \
that line. OLD and NEW are taken literally, white space and line breaks included. An empty OLD with a path that does \
not exist creates the file:
<edit>PATH<old>OLD<new>NEW</edit>
<edit>PATH:LINE<old>OLD<new>NEW</edit>

Finish, once the work is done and checked. What the workspace holds then is judged by tests that you cannot see:
<submit>

You may think before the action. Do not write more than one action in a turn. There is no network. Every command \
starts in the workspace, so `cd` and variables do not carry over.
"""


@dataclass(frozen=True, slots=True)
class EditProblem:
    """Why an edit could not be made; `text` is what the policy is shown."""

    text: str


def parse_action(text: str) -> Action:
    """The one action in `text`, or `Action("invalid", {"reason": …})`. Never raises.

    Reasoning in a leading `<think>…</think>` block is skipped. Where no tag occurs, a single fenced `bash`
    block counts as a command, since general chat models write those whatever they are told.
    """
    body = _without_reasoning(text)
    match = _OPENING.search(body)
    if match is None:
        return _fenced(body)
    action, end = _read_action(body, match)
    if action.tool != "invalid" and _OPENING.search(body, end):
        return _invalid("more than one action in a turn")
    return action


def format_action(action: Action) -> str:
    """`action` in the protocol's words.

    Raises `ValueError` where the protocol cannot carry it, for example a command that contains `</bash>`.
    """
    arguments = action.arguments
    if action.tool == "bash":
        text = f"<bash>{arguments['command']}</bash>"
    elif action.tool == "edit":
        where = f"{arguments['path']}:{arguments['line']}" if "line" in arguments else arguments["path"]
        text = f"<edit>{where}<old>{arguments['old']}<new>{arguments['new']}</edit>"
    elif action.tool == "submit":
        text = "<submit>"
    else:
        raise ValueError(f"an action of tool {action.tool!r} has no form in the protocol")
    if parse_action(text) != action:
        raise ValueError(f"the protocol cannot carry this {action.tool} action: {text[:200]!r}")
    return text


def apply_edit(content: bytes | None, arguments: Mapping[str, str]) -> bytes | EditProblem:
    """`content` (None: there is no such file) after the edit `arguments` (`old`, `new`, and perhaps `line`).

    Pure. Lines end at LF and are counted from 1. An ambiguous edit is a problem, never a guess.
    """
    old, new, line = arguments["old"].encode(), arguments["new"].encode(), arguments.get("line")
    if content is None:
        if old or line is not None:
            return EditProblem("no such file")
        return new
    if line is None:
        if not old:
            return EditProblem("OLD is empty, and the file exists") if content else new
        start, end = 0, len(content)
    else:
        bounds = _line_bounds(content, int(line))
        if bounds is None:
            return EditProblem(f"there is no line {int(line)}: the file has {content.count(_LF) + 1} lines")
        start, end = bounds
    where = f"line {int(line)}" if line is not None else "the file"
    region = content[start:end]
    at = region.find(old)
    if at < 0:
        return EditProblem(f"OLD does not occur in {where}")
    # Overlapping occurrences count too: "aa" in "aaa" is ambiguous.
    if region.find(old, at + 1) >= 0:
        return EditProblem(f"OLD occurs more than once in {where}")
    if old == new:
        return EditProblem("OLD and NEW are the same")
    at += start
    return content[:at] + new + content[at + len(old) :]


_LF = b"\n"


def _line_bounds(content: bytes, line: int) -> tuple[int, int] | None:
    """Start and end of the 1-based `line`, its line feed left out; None where there is none."""
    start = 0
    for _ in range(line - 1):
        at = content.find(_LF, start)
        if at < 0:
            return None
        start = at + 1
    if line < 1:
        return None
    end = content.find(_LF, start)
    return start, len(content) if end < 0 else end


def _invalid(reason: str) -> Action:
    return Action("invalid", {"reason": reason})


def _without_reasoning(text: str) -> str:
    if text.lstrip().startswith("<think>"):
        _, closing, rest = text.partition("</think>")
        return rest if closing else ""
    return text


def _fenced(body: str) -> Action:
    """The command of the one fenced shell block. Line by line: a pattern would go over open fences again and again."""
    commands: list[str] = []
    block: list[str] | None = None
    for line in body.split("\n"):
        if block is None:
            block = [] if line.rstrip() in _FENCE_OPENINGS else None
        elif line.rstrip() == "```":
            commands.append("".join(block))
            block = None
        else:
            block.append(line + "\n")
    if len(commands) > 1:
        return _invalid("more than one action in a turn")
    return _bash(commands[0]) if commands else _invalid("no action in the text")


def _read_action(body: str, match: re.Match[str]) -> tuple[Action, int]:
    """The action that opens at `match`, and where it ends."""
    tool = match[1]
    if tool == "submit":
        return Action("submit"), match.end()
    if match[0].endswith("/>"):
        return _invalid(f"empty {tool} action"), match.end()
    closing = f"</{tool}>"
    at = body.find(closing, match.end())
    if at < 0:
        return _invalid(f"no {closing} after <{tool}>"), len(body)
    inner = body[match.end() : at]
    return (_bash(inner) if tool == "bash" else _edit(inner)), at + len(closing)


def _bash(command: str) -> Action:
    problem = _text_problem(command, MAX_COMMAND_BYTES)
    if problem:
        return _invalid(f"the command {problem}")
    return Action("bash", {"command": command}) if command.strip() else _invalid("the command is empty")


def _edit(inner: str) -> Action:
    problem = _text_problem(inner, MAX_EDIT_BYTES)
    if problem:
        return _invalid(f"the edit {problem}")
    where, old_tag, rest = inner.partition("<old>")
    old, new_tag, new = rest.partition("<new>")
    if not old_tag or not new_tag:
        return _invalid("an edit needs <old> and <new>")
    if old.rstrip().endswith("</old>") and new.rstrip().endswith("</new>"):
        # Chat models like to close what they open.
        old, new = old.rstrip().removesuffix("</old>"), new.rstrip().removesuffix("</new>")
    path, colon, line = where.strip().rpartition(":")
    arguments = {"path": where.strip()}
    if colon and line.isascii() and line.isdigit():
        if len(line) > 9:
            return _invalid("the line number is too large")
        arguments = {"path": path, "line": line}
    if not arguments["path"] or "\n" in arguments["path"]:
        return _invalid("an edit needs a path")
    return Action("edit", {**arguments, "old": old, "new": new})


def _text_problem(text: str, max_bytes: int) -> str | None:
    if "\0" in text:
        return "holds a NUL byte"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "is not valid text"
    return f"is longer than {max_bytes} bytes" if size > max_bytes else None
