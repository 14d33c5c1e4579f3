"""The tools of the built-in agent loop: what `bash`, `edit` and `write` do in a box.

Owns: `Tool`, `Workplace`, `run_bash`, `run_edit`, `run_write`, `only_file`, `DEFAULT_TOOLS`.
Invariant: whatever an action asks for ends as an observation; only a box that fails raises (`SandboxError`).
Must not know: policies, sessions, verdicts.
"""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from practicum.errors import BoxPathError
from practicum.policies.protocol import EditProblem, apply_edit
from practicum.records.task import Limits, Task
from practicum.rollouts.observation import Observation, render_result
from practicum.sandboxes.contract import Sandbox


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a tool works. `left_s` is what remains of the episode's time, `max_chars` bounds observations.

    `target` is the one file that the task is about, for an action that names none; None where there is no such file.
    `action` names what is being done, so that the box does it once.
    """

    box: Sandbox
    workspace: str
    limits: Limits
    left_s: float
    max_chars: int
    target: str | None = None
    action: str | None = None


Tool = Callable[[Workplace, Mapping[str, str]], Awaitable[Observation]]


async def run_bash(place: Workplace, arguments: Mapping[str, str]) -> Observation:
    """Run `command` in a new shell in the workspace, for at most `limits.command_s` seconds."""
    limit_s = place.limits.command_s
    timeout_s, note = limit_s, f"timed out after {limit_s:g}s"
    if place.left_s < limit_s:
        timeout_s, note = place.left_s, "stopped: the time of this attempt is over"
    try:
        command = ["bash", "-c", arguments["command"]]
        result = await place.box.run(command, timeout_s=timeout_s, cwd=place.workspace, action=place.action)
    except BoxPathError as error:
        # The workspace itself is gone: the policy removed it.
        return Observation(f"[{error.message}]", changed=True, failed=True)
    text = render_result(result, timeout_note=note, max_chars=place.max_chars)
    failed = result.timed_out or result.oom_killed or result.exit_code != 0
    return Observation(text, changed=True, failed=failed)


async def run_edit(place: Workplace, arguments: Mapping[str, str]) -> Observation:
    """Apply an edit to a file in the workspace, keeping its mode."""
    path = _inside(arguments["path"], place.workspace)
    if path is None:
        return Observation(f"[edit: {arguments['path']} is not a file in {place.workspace}]", failed=True)
    try:
        # A listing gives content, mode and kind at once, with one meaning for every provider.
        listing = await place.box.list_tree(place.workspace, max_bytes=2 * place.limits.disk_bytes)
        if path in listing.irregular or any(name.startswith(f"{path}/") for name in listing.files):
            return Observation(f"[edit: {path} is not a regular file]", failed=True)
        before = listing.files.get(path)
        after = apply_edit(before.data if before else None, arguments)
        if isinstance(after, EditProblem):
            return Observation(f"[edit: {path}: {after.text}]", failed=True)
        mode = before.mode if before else 0o644
        await place.box.write(posixpath.join(place.workspace, path), after, mode=mode)
    except BoxPathError as error:
        return Observation(f"[edit: {error.message}]", changed=True, failed=True)
    return Observation("[edited]", changed=True)


async def run_write(place: Workplace, arguments: Mapping[str, str]) -> Observation:
    """Replace the whole text of the file at `path`, or of the one file that the task is about."""
    named = arguments.get("path", place.target)
    if named is None:
        return Observation("[write: it is not plain which file is meant]", failed=True)
    path = _inside(named, place.workspace)
    if path is None:
        return Observation(f"[write: {named} is not a file in {place.workspace}]", failed=True)
    try:
        await place.box.write(posixpath.join(place.workspace, path), arguments["content"].encode())
    except BoxPathError as error:
        return Observation(f"[write: {error.message}]", changed=True, failed=True)
    return Observation(f"[wrote {path}]", changed=True)


DEFAULT_TOOLS: Mapping[str, Tool] = {"bash": run_bash, "edit": run_edit, "write": run_write}


def only_file(task: Task) -> str | None:
    """The one file that may be edited in `task`, where that is named and is one."""
    name = task.editable[0] if len(task.editable) == 1 else ""
    return name if name and not set(name) & set("*?[") else None


def _inside(path: str, workspace: str) -> str | None:
    """`path` relative to `workspace`, normalised; None where it leaves it or is the workspace itself."""
    full = posixpath.normpath(posixpath.join(workspace, path))
    prefix = workspace.rstrip("/") + "/"
    return full[len(prefix) :] if full.startswith(prefix) else None
