"""Right and wrong solutions made from a gold.

Owns: `sources_of`, `with_text`, `cut_short`.
Invariant: pure; each differs from the gold in one named way. One made by `cut_short` is wrong unless the gold holds
more than the work needs, which only tests tell.
Must not know: boxes, verdicts.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import replace

from practicum.records.task import Task
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission
from practicum.verification.redteam.variants import Source, same_code, source_of

_MOST_HUNKS = 4


def sources_of(task: Task, gold: Submission) -> list[tuple[Change, Source]]:
    """The Python files that the gold writes, with the functions that it is about."""
    found: list[tuple[Change, Source]] = []
    for change in gold.changes:
        if change.path.endswith(".py") and change.file is not None:
            before = task.files[change.path].data if change.path in task.files else b""
            source = source_of(before, change.file.data)
            if source is not None:
                found.append((change, source))
    return found


def with_text(gold: Submission, changed: Change, text: str) -> Submission:
    """The gold with another text in the place of one of its files."""
    assert changed.file is not None
    new = replace(changed, file=File(text.encode("utf-8", "surrogateescape"), changed.file.mode))
    return Submission(tuple(new if change is changed else change for change in gold.changes))


def cut_short(task: Task, gold: Submission) -> list[tuple[str, Submission]]:
    """The gold with a part of it missing: nothing at all, a file, a hunk, the end of a file, all of its content.

    Where the gold changes code, only what it does to code is left out: notes beside it are no part of the work.
    """
    code = [change for change in gold.changes if change.path.endswith(".py")]
    found = [("the untouched task", Submission(()))]
    for change in code or gold.changes:
        rest = tuple(other for other in gold.changes if other is not change)
        if rest:
            found.append((f"{change.path}: its change left out", Submission(rest)))
        if change.file is None:
            continue
        old = task.files[change.path].data if change.path in task.files else b""
        for what, text in _shorter(old.decode("utf-8", "surrogateescape"), change):
            found.append((f"{change.path}: {what}", with_text(gold, change, text)))
    distinct = {each.digest: (name, each) for name, each in reversed(found) if each.digest != gold.digest}
    return list(reversed(distinct.values()))


def _shorter(old: str, change: Change) -> Iterator[tuple[str, str]]:
    assert change.file is not None
    new = change.file.data.decode("utf-8", "surrogateescape")
    before, after = _lines(old), _lines(new)
    hunks = [
        op for op in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if op[0] != "equal"
    ]
    if len(hunks) > 1:
        for _, start, end, first, last in hunks[:_MOST_HUNKS]:
            text = "".join([*after[:first], *before[start:end], *after[last:]])
            if not (change.path.endswith(".py") and same_code(text, new)):
                yield f"the hunk at line {first + 1} left out", text
    if not change.path.endswith(".py") and len(after) > 1:
        yield "cut off in the middle", "".join(after[: len(after) // 2])
    if new.strip():
        yield "emptied", ""


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)
