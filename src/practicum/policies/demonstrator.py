"""A noisy demonstrator: knows the repair, gives it only some of the time, makes plausible mistakes otherwise.

Owns: what a demonstration of the built-in family looks like.
Invariant: same task and seed, same demonstration; its mistakes are edits that apply.
Must not know: models, boxes, training.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

from practicum.policies.local.tokenizer import split_pieces
from practicum.policies.protocol import format_action
from practicum.records.task import Task
from practicum.records.trajectory import Action

# What a hasty person confuses with what. Each key is looked for in a line as it stands here.
CONFUSIONS: dict[str, tuple[str, ...]] = {
    " < ": (" > ", " <= "), " > ": (" < ", " >= "), " <= ": (" < ", " >= "), " >= ": (" > ", " <= "),
    " == ": (" != ", " > "), " != ": (" == ", " < "),
    " + ": (" - ", " * "), " - ": (" + ", " * "), " * ": (" + ", " - "), " // ": (" * ", " % "), " % ": (" // ", " + "),
    " += ": (" -= ", " *= "), " -= ": (" += ",), " *= ": (" += ",),
    " and ": (" or ",), " or ": (" and ",),
    "[0]": ("[-1]",), "[-1]": ("[0]",),
    "sum(": ("max(", "min("), "max(": ("min(", "sum("), "min(": ("max(", "sum("),
    "all(": ("any(",), "any(": ("all(",), "upper(": ("lower(", "title("), "lower(": ("upper(",), "title(": ("upper(",),
    "True": ("False",), "False": ("True",),
    "break": ("continue", "pass"), "continue": ("break",), "pass": ("break", "continue"),
    "-1": ("0", "1"), "0": ("1", "-1"), "1": ("0", "2"), "2": ("1", "0"),
}  # fmt: skip


MISTAKEN = 0.5
"""Share of the demonstrations that go wrong by a mistaken edit; the others give up without one."""


@dataclass(frozen=True, slots=True)
class _Edit:
    line: int
    old: str
    new: str


def _mistakes(source: str) -> list[_Edit]:
    """Every confusion of something that stands once in `source`, in reading order."""
    found: list[_Edit] = []
    for number, line in enumerate(source.splitlines(), start=1):
        for old, news in CONFUSIONS.items():
            once = old in line and source.count(old) == 1
            if once and not (old[-1:].isdigit() and re.search(rf"(?:\w|-){old}", line)):
                found += [_Edit(number, old, new) for new in news]
    return found


def demonstration(task: Task, *, seed: int, correct_rate: float, retry_rate: float = 0.5) -> list[str]:
    """The assistant texts of one demonstration, in order, ending with a submission.

    The first repair is right with probability `correct_rate`, otherwise any confusion that applies. After a wrong
    one in the right place, it is corrected with probability `retry_rate`, where that takes no more context. Where the
    instruction shows what is to repair, the one action is the repair.
    """
    rng = random.Random(f"demonstration-{task.id}-{seed}")
    repair: dict[str, Any] = task.provenance["edit"]
    path = str(repair["path"])
    right = _Edit(int(repair["line"]), str(repair["old"]), str(repair["new"]))
    check = format_action(Action("bash", {"command": "python3 check.py"}))
    texts = [format_action(Action("bash", {"command": f"cat {path}; python3 check.py"}))]
    source = task.files[path].data.decode()
    edit = right
    luck = rng.random()
    shown = bool(task.provenance.get("shown"))
    if luck >= correct_rate + (1 - correct_rate) * MISTAKEN:
        return [*([] if shown else texts), format_action(Action("submit"))]
    if luck >= correct_rate:
        options = [mistake for mistake in _mistakes(source) if mistake != right]
        edit = rng.choice(options) if options else right
    if shown:
        return [_text(path, source, edit)]
    texts += [_text(path, source, edit), check]
    if edit != right and edit.old == right.old and rng.random() < retry_rate:
        applied = _applied(source, edit)
        if applied.count(edit.new) == 1:
            texts += [_text(path, applied, _Edit(right.line, edit.new, right.new)), check]
    return [*texts, format_action(Action("submit"))]


def _applied(source: str, edit: _Edit) -> str:
    lines = source.splitlines(keepends=True)
    lines[edit.line - 1] = lines[edit.line - 1].replace(edit.old, edit.new, 1)
    return "".join(lines)


def _text(path: str, source: str, edit: _Edit) -> str:
    """The edit, quoting as much of the text to its left as makes it unique in the file."""
    lines = source.splitlines(keepends=True)
    place = sum(map(len, lines[: edit.line - 1])) + lines[edit.line - 1].index(edit.old)
    left = ""
    for piece in reversed(split_pieces(source[:place])):
        if source.count(left + edit.old) == 1:
            break
        left = piece + left
    arguments = {"path": path, "old": left + edit.old, "new": left + edit.new}
    return format_action(Action("edit", arguments))
