"""One task as a reviewer sees it: instruction, files, gold, frozen tests, findings of gates.

Owns: `page`, `instruction_text`, `tests_text`, `gold_text`, `file_text`, `wrapped`.
Invariant: nothing of another reviewer is shown, nor what was decided on the task; no character of a task can steer the
terminal.
Must not know: the form, where answers go.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from practicum.curation.reviewqueue import FLAGGED, Item
from practicum.curation.similarity.gold import SCRIPT, Edit, gold_edits
from practicum.curation.similarity.origin import licence_of, source_of
from practicum.pipeline.wording import visible
from practicum.records.tree import Change, File, unified_diff

if TYPE_CHECKING:
    from practicum.records.assessment import Assessment, GateResult
    from practicum.records.task import Task

_TEST_LINES, _GOLD_LINES, _FILES, _NAMES = 40, 120, 25, 8
_RULE = "─" * 78


def page(task: Task, item: Item, found: Assessment | None, place: str) -> str:
    """All of one task, long parts cut; `place` says where in the queue it stands."""
    about = (f"domain {task.domain}", f"source {source_of(task) or '–'}", f"split {task.split}")
    facts = (*about, f"licence {licence_of(task) or 'not stated'}", f"stated difficulty {task.difficulty or '–'}")
    check = task.verification
    tests = (
        f"TESTS  run by {check.runner}; must come to pass: {_names(check.fail_to_pass)}; must still pass: "
        f"{_names(check.pass_to_pass)} ('t' shows all)"
    )
    parts = [
        f"{_RULE}\n{place}  {task.id}\n{wrapped(' · '.join(facts))}",
        *([wrapped(f"FLAGGED  {item.why}")] if item.stratum == FLAGGED else []),
        f"INSTRUCTION  ('i' shows it again)\n{wrapped(_indented(task.instruction.strip()))}",
        f"FILES the agent starts from, in {task.workspace} (it may change {', '.join(task.editable)})\n{_files(task)}",
        f"GOLD  what the known solution changes ('g' shows all of it)\n{_cut(gold_text(task), _GOLD_LINES)}",
        f"{wrapped(tests)}\n{_tests_head(task)}",
        f"GATES  {wrapped(_gates(found))}",
    ]
    return visible("\n\n".join(parts)) + f"\n{_RULE}"


def wrapped(text: str) -> str:
    """`text` with lines that are wider than the terminal broken between words; blocks of code are left as they are."""
    width, lines, fenced = max(40, shutil.get_terminal_size().columns - 1), list[str](), False
    for line in text.split("\n"):
        marks = line.lstrip().startswith("```")
        fenced = fenced != marks
        if fenced or marks or len(line) <= width:
            lines.append(line)
            continue
        start = re.match(r"\s*(?:(?:[-*✓✗]|\d+\.)\s+)?", line)
        hang = " " * len(start[0] if start else "")
        own = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=hang or own,
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
        )
    end = " " if text.endswith(" ") and len(lines) > text.count("\n") + 1 else ""
    return "\n".join(lines) + end


def instruction_text(task: Task) -> str:
    """The instruction alone."""
    return visible(wrapped(_indented(task.instruction.strip())))


def tests_text(task: Task) -> str:
    """All frozen tests."""
    trees = sorted(task.verification.tests.items())
    return visible("\n".join(f"  ── tests/{name}\n{_indented(_text(file))}" for name, file in trees))


def gold_text(task: Task) -> str:
    """The gold: what it changes in the workspace as a diff, as far as its files say, and the script that does it."""
    if not task.solution:
        return "  there is no solution"
    edits = [edit for edit in gold_edits(task) if edit.path != SCRIPT]
    before = {edit.path: File(edit.before.encode()) for edit in edits if edit.before is not None}
    diff = unified_diff(before, map(_change, edits)).rstrip("\n")
    script = task.solution.get(SCRIPT, File(b""))
    parts = [_indented(diff)] if diff else []
    return visible("\n".join([*parts, f"  ── solution/{SCRIPT}", _indented(_text(script))]))


def file_text(task: Task, path: str) -> str:
    """One file of the workspace."""
    file = task.files.get(path)
    return visible(_indented(_text(file)) if file else f"  there is no {path!r} among the files")


def _change(edit: Edit) -> Change:
    if edit.after is None:
        return Change(edit.path, "delete")
    return Change(edit.path, "edit" if edit.before is not None else "add", File(edit.after.encode()))


def _files(task: Task) -> str:
    visible_tests = set(task.verification.visible)
    rows = [
        f"  {len(file.data):>9,} B  {path}{'  (visible test)' if path in visible_tests else ''}"
        for path, file in sorted(task.files.items())
    ]
    more = len(rows) - _FILES
    return "\n".join([*rows[:_FILES], *([f"  … and {more} more"] if more > 0 else [])]) or "  none"


def _tests_head(task: Task) -> str:
    check = task.verification
    first = [name for name in (*check.files, check.plain.cases if check.plain else "") if name in check.tests]
    names = [*first, *sorted(check.tests.keys() - set(first))]
    shown = [f"  ── tests/{name}\n{_cut(_indented(_text(check.tests[name])), _TEST_LINES)}" for name in names[:3]]
    return "\n".join([*shown, *([f"  … and {len(names) - 3} more files"] if len(names) > 3 else [])])


def _gates(found: Assessment | None) -> str:
    if found is None:
        return "not checked as it stands now: practicum tasks check"
    gates: Mapping[str, GateResult] = found.gates
    passed = [name for name, result in gates.items() if result.passed]
    rows = [f"  {'✓' if result.passed else '✗'} {name}: {result.reason}" for name, result in gates.items()]
    return "\n".join([f"{len(passed)} of {len(gates)} passed", *rows])


def _names(ids: Iterable[str]) -> str:
    found = list(ids)
    more = f" and {len(found) - _NAMES} more" if len(found) > _NAMES else ""
    return ", ".join(found[:_NAMES]) + more if found else "none"


def _text(file: File) -> str:
    try:
        return file.data.decode()
    except UnicodeDecodeError:
        return f"({len(file.data):,} bytes that are not text)"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.rstrip("\n").split("\n"))


def _cut(text: str, most: int) -> str:
    lines = text.split("\n")
    if len(lines) <= most:
        return text
    return "\n".join([*lines[:most], f"  … {len(lines) - most} more lines"])
