"""The texts by which one task is compared with another.

Owns: `Facets`, `facets_of`.
Invariant: pure and per task; what a task does not have is an empty text. Code is the definitions that the gold
changes, never whole files: tasks made from one file would all look the same otherwise.
Must not know: hashes, other tasks.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from functools import lru_cache

from practicum.curation.similarity.gold import Edit, gold_edits
from practicum.curation.similarity.origin import repository_of, source_of
from practicum.records.task import Task

_AROUND = 10  # lines shown of a file that has no syntax tree, on each side of a change
_Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Facets:
    """One task as texts.

    Wording is common within a `source`, code and tests within a `repository` (or source, where there is none).
    """

    task: str
    split: str
    source: str
    repository: str
    instruction: str
    code: str
    patch: str
    tests: str


def facets_of(task: Task) -> Facets:
    """The texts of `task`."""
    edits = gold_edits(task)
    visible = set(task.verification.visible)
    tests = [file.data for name, file in sorted(task.verification.tests.items()) if name not in visible]
    return Facets(
        task=task.id,
        split=task.split,
        source=source_of(task),
        repository=repository_of(task),
        instruction=task.instruction,
        code="\n\n".join(_definitions(edit) for edit in edits),
        patch="\n".join(line for edit in edits for line in (*edit.removed(), *edit.added())),
        tests="\n\n".join(data.decode("utf-8", "replace") for data in tests if b"\0" not in data[:8192]),
    )


def _definitions(edit: Edit) -> str:
    """What the edit leaves of the places that it changes: whole functions, or statements beside them."""
    if edit.after is None:
        return ""
    lines = edit.after.splitlines()
    units = _units(edit.after) if edit.path.endswith(".py") else ()
    chosen: set[_Span] = set()
    for _, _, start, end in edit.blocks():
        hit = [unit for unit in units if unit[0] < max(end, start + 1) and start < unit[1]]
        chosen.update(hit if units else [(max(0, start - _AROUND), end + _AROUND)])
    parts: list[str] = []
    done = 0
    for start, end in sorted(chosen):
        if end > done:  # neighbours may overlap
            parts.append("\n".join(lines[max(start, done) : end]))
            done = end
    return "\n".join(parts)


@lru_cache(maxsize=64)
def _units(text: str) -> tuple[_Span, ...]:
    """Line ranges of the functions, of classes' other members and of other top-level statements; none if not Python.

    A function within a function belongs to the outer one.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: list[_Span] = []
    todo: list[ast.stmt] = list(tree.body)
    while todo:
        node = todo.pop()
        first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))]) - 1
        if isinstance(node, ast.ClassDef) and node.body:
            found.append((first, max(first + 1, node.body[0].lineno - 1)))
            todo += node.body
        else:
            found.append((first, node.end_lineno or node.lineno))
    return tuple(sorted(found))
