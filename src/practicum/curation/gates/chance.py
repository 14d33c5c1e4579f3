"""Where the outcome of tests may be left to chance or time, as far as the code says so.

Owns: `words_of_chance`.
Invariant: pure. Only code counts that has a part in the outcome: of the tests that are run, with their fixtures and
helpers, and of what the gold changes, with what that calls in its own file. What is not Python counts as a whole.
Must not know: what is done about it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from practicum.curation.gates.changes import changed_nodes, reached_within
from practicum.curation.gates.testcode import Function, called, named, parsed, test_codes, test_modules
from practicum.records.task import Task
from practicum.records.verdict import Submission

_SPEAKS = {
    *("random", "randint", "shuffle", "secrets", "uuid", "uuid1", "uuid4", "urandom", "sleep", "monotonic"),
    *("perf_counter", "getpid", "listdir", "scandir", "iterdir", "glob", "rglob", "asyncio", "multiprocessing"),
    *("concurrent", "mkstemp", "mkdtemp"),
}
Imported = dict[str, tuple[str, ...]]
_CALLED = {"id", "time", "time_ns", "now", "utcnow", "today", "choice", "sample", "localtime", "gmtime"}
"""Not `hash`: seeds of it are fixed in boxes, and vary with the conditions under which every gold is judged."""
_SHELL = re.compile(rb"\b(?:RANDOM|SECONDS|date|sleep|shuf|mktemp|wait)\b")


def words_of_chance(task: Task, gold: Submission) -> set[str]:
    """Words that speak of chance, time or things done at once."""
    check = task.verification
    found = {word.decode() for name in check.files for word in _SHELL.findall(_script(task, name))}
    modules = test_modules(task)
    named_tests = [*check.fail_to_pass, *check.pass_to_pass]
    codes = test_codes(task, named_tests)
    by_file: dict[str, list[ast.AST]] = {name: [] for name in check.files if name in modules}
    for code in codes:
        by_file.setdefault(code.file, []).extend(code.reached)
    known, imported = {code.id for code in codes}, _imported(modules.values())
    for name, nodes in by_file.items():
        lost = any(each.partition("[")[0] not in known and _of(each, name) for each in named_tests)
        if check.runner == "variants":
            nodes += reached_within(_named_by(gold, modules[name]), modules[name])
        whole = lost or check.runner not in ("pytest", "unittest", "variants")
        found |= _words([modules[name]] if whole else [*nodes, *_around(modules[name])], imported)
    for change in gold.changes:
        after = parsed(change.file.data) if change.file is not None and change.path.endswith(".py") else None
        if after is not None:
            before = parsed(task.files[change.path].data) if change.path in task.files else None
            found |= _words(reached_within(changed_nodes(before, after), after), _imported([after]))
    return found


def _named_by(gold: Submission, module: ast.Module) -> list[ast.stmt]:
    """What of `module`, a variant of what is to be tested, the tests of `gold` name; all of it where there is none."""
    trees = [parsed(change.file.data) for change in gold.changes if change.file is not None]
    words = {word for tree in trees if tree is not None for node in ast.walk(tree) for word in _spoken(node)}
    found = [node for node in module.body if getattr(node, "name", None) in words]
    return found or module.body


def _spoken(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Name, ast.Attribute)):
        yield named(node)
    elif isinstance(node, ast.alias):
        yield from (node.name.rpartition(".")[2], node.asname or "")
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _script(task: Task, name: str) -> bytes:
    return b"" if name.endswith(".py") else task.verification.tests[name].data


def _of(test: str, file: str) -> bool:
    return test.startswith((f"{file}::", f"{file.removesuffix('.py').replace('/', '.')}."))


def _around(module: ast.Module) -> Iterator[ast.AST]:
    """What every test of a file meets: statements of the file itself, fixtures that are used without being named."""
    for node in module.body:
        if isinstance(node, Function):
            if any(isinstance(part, ast.keyword) and part.arg == "autouse" for part in ast.walk(node)):
                yield node
        elif not isinstance(node, (ast.ClassDef, ast.Import, ast.ImportFrom)):
            yield node


def _imported(modules: Iterable[ast.Module]) -> Imported:
    return {bound: words for module in modules for bound, words in _imports(module)}


def _words(nodes: Iterable[ast.AST], imported: Imported) -> set[str]:
    found: set[str] = set()
    for node in (inner for root in nodes for inner in ast.walk(root)):
        if isinstance(node, (ast.Name, ast.Attribute)):
            words = imported.get(node.id, ()) if isinstance(node, ast.Name) else ()
            found |= {word for word in (named(node), *words) if word in _SPEAKS or word.lower().startswith("thread")}
        elif isinstance(node, ast.Call) and called(node) in _CALLED:
            found.add(f"{called(node)}(")
    return found


def _imports(module: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names that imports bind, and what they stand for."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, (*(node.module or "").split("."), alias.name)
