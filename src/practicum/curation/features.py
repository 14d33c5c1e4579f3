"""What can be seen of a task without attempting it: sizes that explain how hard it is, and never decide it.

Owns: `Features`, `features_of`, `explain`.
Invariant: pure, and source is parsed, never run; what cannot be known (no gold, source that is not Python) is None.
Must not know: boxes, policies, strata.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from practicum.records.task import Task
from practicum.records.tree import Change

_BRANCHES = (
    *(ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.comprehension),
    *(ast.match_case, ast.BoolOp),
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Features:
    """Sizes of one task. Those of the gold's change are None without a gold.

    `function_lines` and `function_branches` (one more than its decisions, after McCabe, 1976) are of the largest
    function that the gold changes; None where it changes none.
    """

    workspace_files: int
    workspace_lines: int
    statement_words: int
    tests: int
    fail_to_pass: int
    changed_files: int | None = None
    hunks: int | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    function_lines: int | None = None
    function_branches: int | None = None

    def to_json(self) -> dict[str, int | None]:
        return asdict(self)


def features_of(task: Task, gold: Sequence[Change] | None = None) -> Features:
    """The features of `task`; `gold` are the changes that its solution makes, where they are known."""
    check = task.verification
    sizes = {
        "workspace_files": len(task.files),
        "workspace_lines": sum(len(_lines(file.data)) for file in task.files.values()),
        "statement_words": len(task.instruction.split()),
        "tests": len(check.fail_to_pass) + len(check.pass_to_pass),
        "fail_to_pass": len(check.fail_to_pass),
    }
    if gold is None:
        return Features(**sizes)
    hunks = added = removed = 0
    functions: list[tuple[int, int]] = []
    for change in gold:
        before = _lines(task.files[change.path].data) if change.path in task.files else []
        after = _lines(change.file.data) if change.file is not None else []
        blocks = [
            each for each in difflib.SequenceMatcher(None, before, after, False).get_opcodes() if each[0] != "equal"
        ]
        hunks += len(blocks)
        removed += sum(high - low for _, low, high, _, _ in blocks)
        added += sum(high - low for _, _, _, low, high in blocks)
        if change.path.endswith(".py"):
            functions += _functions("\n".join(before), [(low + 1, max(low + 1, high)) for _, low, high, _, _ in blocks])
    return Features(
        **sizes,
        changed_files=len(gold),
        hunks=hunks,
        lines_added=added,
        lines_removed=removed,
        function_lines=max((lines for lines, _ in functions), default=None),
        function_branches=max((branches for _, branches in functions), default=None),
    )


def explain(rows: Iterable[tuple[Features, float]]) -> dict[str, float]:
    """Spearman's rank correlation of each feature with the success rate, over the tasks that have both.

    Features that do not vary, or are known of fewer than three tasks, are left out.
    """
    known = list(rows)
    found: dict[str, float] = {}
    for name in Features.__slots__:
        pairs = [(float(value), rate) for each, rate in known if (value := getattr(each, name)) is not None]
        left, right = _ranks([value for value, _ in pairs]), _ranks([rate for _, rate in pairs])
        if len(pairs) >= 3 and len(set(left)) > 1 and len(set(right)) > 1:
            found[name] = _correlation(left, right)
    return found


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines()


def _functions(source: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Lines and branches of the innermost functions of `source` that `spans` of lines touch."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    for low, high in spans:
        around = [node for node in functions if _first(node) <= high and low <= (node.end_lineno or node.lineno)]
        if around:
            inner = min(around, key=lambda node: (node.end_lineno or node.lineno) - _first(node))
            lines = (inner.end_lineno or inner.lineno) - _first(inner) + 1
            yield lines, 1 + sum(_decisions(node) for node in ast.walk(inner))


def _first(node: _Function) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _decisions(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    return int(isinstance(node, _BRANCHES))


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    places: Mapping[float, list[int]] = {value: [] for value in values}
    for place, value in enumerate(sorted(values), 1):
        places[value].append(place)
    return [sum(places[value]) / len(places[value]) for value in values]


def _correlation(left: Sequence[float], right: Sequence[float]) -> float:
    n = len(left)
    mean_left, mean_right = sum(left) / n, sum(right) / n
    both = sum((a - mean_left) * (b - mean_right) for a, b in zip(left, right, strict=True))
    spread = sum((a - mean_left) ** 2 for a in left) * sum((b - mean_right) ** 2 for b in right)
    return float(both / spread**0.5)
