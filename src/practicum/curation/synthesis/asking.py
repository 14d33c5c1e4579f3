"""What a task asks for, held against what the gates will ask of it: nothing unsaid, nothing given away.

Owns: `told_in_full`.
Invariant: pure. What tests ask for and nothing states, as the gate `requirements` sees it, is added to the instruction
in plain words; a task that cannot say it without giving the answer away, or whose answer stands elsewhere in its
workspace, is none.
Must not know: strategies, boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from practicum.curation.gates.requirements import Unstated, unstated
from practicum.curation.synthesis.leaks import copied_in, gives_away, repaired_lines
from practicum.curation.synthesis.strategy import Changes, Refusal
from practicum.records.task import Task
from practicum.records.tree import Tree

_SAID: Mapping[str, str] = {
    "exception": "an error of the type `{}`",
    "warning": "a warning of the category `{}`",
    "message": "a message that says `{}`",
    "name": "the name `{}`",
    "file": "the file `{}`",
}


def told_in_full(task: Task, changes: Changes, gold: Tree) -> Task | Refusal:
    """`task`, with all said that its tests ask for; `changes` are what `gold`, the whole project, repairs."""
    if (path := copied_in(task.files, changes, gold)) is not None:
        return Refusal("its answer stands elsewhere in the project", path, killed=True)
    right = {**task.files, **{path: gold[path] for path in changes}}
    missing = unstated(task, right)
    if not missing:
        return task
    more = replace(task, instruction=f"{task.instruction}\n{_said(missing)}\n")
    if left := unstated(more, right):
        return Refusal("nothing states what its tests ask for", f"{left[0].kind} {left[0].what}", killed=True)
    if gives_away(more.instruction, repaired_lines(changes, gold)) is not None:
        return Refusal("its instruction would give the answer away", killed=True)
    return more


def _said(missing: Iterable[Unstated]) -> str:
    """A sentence that names all of it."""
    words = [_SAID[each.kind].format(each.what.replace("`", "'").replace(" or ", "` or `")) for each in missing]
    listed = f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
    return f"Among what the tests ask for: {listed}."
