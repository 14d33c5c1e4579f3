"""The same tests in another order.

Owns: `reordered`, `without_pass_to_pass`.
Invariant: pure; what the tests say is left as it is. Only definitions of tests change places, and only behind all else
in their module or class, so that whatever they are made with is there before them.
Must not know: boxes, what comes of it.
"""

from __future__ import annotations

import ast
import random
import warnings
from dataclasses import replace

from practicum.records.task import Task
from practicum.records.tree import File

_Test = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def reordered(task: Task, seed: str | None = None) -> Task | None:
    """The task with the tests of each frozen pytest file, and its files, reversed, or shuffled by `seed`.

    None where there is no other order to try: unittest runs tests by name, and other runners have their own order.
    """
    check = task.verification
    if check.runner != "pytest":
        return None
    tests = dict(check.tests)
    for name in check.files:
        text = _file_reordered(tests[name].data, None if seed is None else random.Random(f"order-{seed}-{name}"))
        if text is not None:
            tests[name] = File(text.encode(), tests[name].mode)
    files = tuple(reversed(check.files))
    if tests == dict(check.tests) and files == check.files:
        return None
    return replace(task, verification=replace(check, tests=tests, files=files))


def without_pass_to_pass(task: Task) -> Task | None:
    """The task judged by the tests of fail_to_pass alone; None where there are no others."""
    check = task.verification
    if not check.pass_to_pass or check.runner == "harbor":
        return None
    files = tuple(name for name in check.files if check.runner != "command" or name in check.fail_to_pass)
    return replace(task, verification=replace(check, pass_to_pass=(), files=files))


def _file_reordered(data: bytes, rng: random.Random | None) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError):
            return None
        if not _move(tree.body, rng):
            return None
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _move(body: list[ast.stmt], rng: random.Random | None) -> bool:
    moved = [node for node in body if isinstance(node, _Test) and _is_test(node)]
    names = [node.name for node in moved]
    changed = False
    for node in moved:
        if isinstance(node, ast.ClassDef):
            changed = _move(node.body, rng) or changed
    if len(moved) < 2 or len(set(names)) < len(names):  # of two with one name only the last is run
        return changed
    rest = [node for node in body if node not in moved]
    body[:] = [*rest, *(reversed(moved) if rng is None else rng.sample(moved, len(moved)))]
    return True


def _is_test(node: _Test) -> bool:
    return node.name.startswith("Test" if isinstance(node, ast.ClassDef) else "test")
