"""What the gold changes, read from the solution without running it.

Owns: `Edit`, `gold_edits`.
Invariant: nothing is executed; a solution that is a program of its own, and not files, here-documents or patches, is
taken as the Python that it hands to an interpreter, and else as the text that it is.
Must not know: what the edits are compared for.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from practicum.errors import SubmissionError
from practicum.records.patches import apply_patch
from practicum.records.task import Task
from practicum.records.tree import File, Tree

SCRIPT = "solve.sh"
_HEREDOC = re.compile(
    r"""^(?P<head>[^\n#]*\bcat\b[^\n]*?)<<-?\s*(?P<q>['"]?)(?P<word>\w+)(?P=q)(?P<rest>[^\n]*)\n(?P<body>.*?)^\t*(?P=word)$""",
    re.MULTILINE | re.DOTALL,
)
_PROGRAM = re.compile(
    r"""^[^\n#]*\bpython3?\b[^\n]*?<<-?\s*(?P<q>['"]?)(?P<word>\w+)(?P=q)[^\n]*\n(?P<body>.*?)^\t*(?P=word)$"""
    r"""|\bpython3?\s+-c\s+(?P<quote>['"])(?P<line>.*?)(?<!\\)(?P=quote)""",
    re.MULTILINE | re.DOTALL,
)
_INTO = re.compile(r">\s*([^\s;&|]+)")
_LARGEST = 512 * 1024  # bytes of one file that are looked at
_MOST = 4000  # lines between which single edits are told apart; beyond, all of it counts as changed


@dataclass(frozen=True, slots=True)
class Edit:
    """One file before and after the gold, as text; None where it is not there."""

    path: str
    before: str | None
    after: str | None

    def blocks(self) -> list[tuple[int, int, int, int]]:
        """The changed places: lines [a, b) of `before` become lines [c, d) of `after`, counted from 0."""
        old, new = (self.before or "").splitlines(), (self.after or "").splitlines()
        start = 0
        while start < len(old) and start < len(new) and old[start] == new[start]:
            start += 1
        end = 0
        while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
            end += 1
        middle, other = old[start : len(old) - end], new[start : len(new) - end]
        if not middle and not other:
            return []
        if not middle or not other or len(middle) + len(other) > _MOST:
            return [(start, len(old) - end, start, len(new) - end)]
        steps = SequenceMatcher(None, middle, other, autojunk=False).get_opcodes()
        return [(a + start, b + start, c + start, d + start) for tag, a, b, c, d in steps if tag != "equal"]

    def removed(self) -> list[str]:
        lines = (self.before or "").splitlines()
        return [line for a, b, _, _ in self.blocks() for line in lines[a:b]]

    def added(self) -> list[str]:
        lines = (self.after or "").splitlines()
        return [line for _, _, c, d in self.blocks() for line in lines[c:d]]


def gold_edits(task: Task) -> list[Edit]:
    """What the gold does to the workspace, by path; empty where there is no solution or it changes nothing."""
    if not task.solution:
        return []
    after: dict[str, File] = dict(task.files)
    script = _text(task.solution.get(SCRIPT)) or ""
    placed = dict(_placed(task, script))
    loose: list[Edit] = []
    for name, file in task.solution.items():
        if name == SCRIPT:
            continue
        if name.endswith((".patch", ".diff")):
            text, reverse = _text(file) or "", _reversed(script, name)
            patched = None if reverse else _patched(after, text)
            if patched is None:
                loose.append(_lines_of_patch(name, text, reverse=reverse))
            else:
                after = patched
        else:
            after[placed.get(name) or _target(name, task.files)] = file
    for path in _removed(task, script):
        after.pop(path, None)
    for path, body in _heredocs(script):
        after[_inside(path, task.workspace)] = File(body.encode())
    changed = sorted(path for path in after.keys() | task.files.keys() if after.get(path) != task.files.get(path))
    edits = [Edit(path, _text(task.files.get(path)), _text(after.get(path))) for path in changed] + loose
    edits = [edit for edit in edits if edit.before is not None or edit.after is not None]
    programs = [found["body"] or found["line"] or "" for found in _PROGRAM.finditer(script)]
    edits = edits or [Edit(f"{SCRIPT}:{number}.py", None, text) for number, text in enumerate(programs, 1)]
    return edits or ([Edit(SCRIPT, None, script)] if script else [])


def _placed(task: Task, script: str) -> Iterator[tuple[str, str]]:
    """Where `solve.sh` copies the solution's files, as far as plain `cp` lines say."""
    for words in _commands(script, "cp", "install", "mv"):
        *sources, target = words or [""]
        for source in sources:
            name = posixpath.normpath(source).removeprefix("/solution").strip("/")
            place = _inside(target, task.workspace)
            if name in task.solution:
                folder = (
                    target.endswith("/") or place in ("", ".") or any(p.startswith(f"{place}/") for p in task.files)
                )
                yield name, posixpath.normpath(posixpath.join(place, posixpath.basename(name))) if folder else place
            else:  # a folder, copied with what is in it
                for inner in task.solution:
                    if inner != SCRIPT and (not name or inner.startswith(f"{name}/")):
                        rest = inner.removeprefix(f"{name}/") if name else inner
                        yield inner, posixpath.normpath(posixpath.join(place, rest))


def _removed(task: Task, script: str) -> Iterator[str]:
    for words in _commands(script, "rm"):
        yield from (_inside(word, task.workspace) for word in words)


def _commands(script: str, *names: str) -> Iterator[list[str]]:
    """The operands of each line of `script` that is one of these commands."""
    for line in script.split("\n"):
        if line.strip().partition(" ")[0] in names:
            try:
                yield [word for word in shlex.split(line, comments=True)[1:] if not word.startswith("-")]
            except ValueError:  # a quotation that goes on in the next line
                continue


def _target(name: str, files: Tree) -> str:
    """The workspace file that a solution file most likely stands for: the longest common end of the paths."""
    parts = name.split("/")
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        found = [path for path in files if path == tail or path.endswith(f"/{tail}")]
        if len(found) == 1:
            return found[0]
    return name


def _patched(tree: dict[str, File], text: str) -> dict[str, File] | None:
    try:
        return apply_patch(tree, text)
    except SubmissionError:
        return None


def _lines_of_patch(name: str, text: str, *, reverse: bool) -> Edit:
    """A patch that cannot be applied, as an edit of its own: the lines that it names say much."""
    lines = [line for line in text.split("\n") if line.startswith(("+", "-")) and line[:3] not in ("+++", "---")]
    old, new = ("\n".join(line[1:] for line in lines if line[0] == sign) for sign in ("+-" if reverse else "-+"))
    return Edit(name, old, new)


def _reversed(script: str, name: str) -> bool:
    return any(
        re.search(r"\s(-R|--reverse)\b", line) for line in script.split("\n") if posixpath.basename(name) in line
    )


def _heredocs(script: str) -> Iterator[tuple[str, str]]:
    for found in _HEREDOC.finditer(script):
        if into := _INTO.search(found["rest"]) or _INTO.search(found["head"]):
            yield into[1].strip("'\""), found["body"]


def _inside(path: str, workspace: str) -> str:
    """`path` of a script that runs in the workspace, relative to it."""
    plain = posixpath.normpath(path)
    return posixpath.relpath(plain, workspace) if plain.startswith(f"{workspace}/") else plain.removeprefix(workspace)


def _text(file: File | None) -> str | None:
    """The text of a file; None for what is not text."""
    if file is None or b"\0" in file.data[:8192]:
        return None
    return file.data[:_LARGEST].decode("utf-8", "replace")
