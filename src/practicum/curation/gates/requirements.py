"""Gate `requirements`: whoever reads the instruction knows by which names and words the tests ask, and is not misled.

Owns: `GATE`, `unstated`, `Unstated`.
Invariant: `unstated` is pure. What a solver cannot know is what the tests use, the gold adds, and neither the
instruction nor anything in the workspace says. A name that the tests need only by the way is not looked for, so that
what is found is worth a person's look: a task that fails here is quarantined. Must not know: boxes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from practicum.curation.gates.changes import changed_docs
from practicum.curation.gates.contract import Case, Found, Gate, NotAssessed
from practicum.curation.gates.demands import (
    Gained,
    exceptions_of,
    gained,
    patterns_of,
    poked,
    same_text,
    texts_of,
    warnings_of,
)
from practicum.curation.gates.examples import contradicted, examples_of
from practicum.curation.gates.testcode import TestCode, parsed, test_codes, test_modules
from practicum.errors import SandboxError
from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.verification.submission import judged_files

_WORD = re.compile(r"[^\W\d]\w*")
_FILE = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{0,4}")
_PATTERN_SIGNS = re.compile(r"\\[AbBdDsSwWZ]|\\?[\^$.|?*+()\[\]{}]|\.\*")
_OF_WARNINGS = re.compile(r"warn|deprecat", re.IGNORECASE)
_TESTS = re.compile(r"(?:^|/)(?:tests?/|test_|conftest)|_test\.py$")
_PROTOCOLS = {"KeyError", "IndexError", "AttributeError", "StopIteration", "StopAsyncIteration", "NotImplementedError"}
"""What the language itself wants of mappings, sequences, attributes and iterators: nobody needs to say it."""
_LEAST_WORD = 3


@dataclass(frozen=True, slots=True)
class Unstated:
    """One thing that the tests ask for and nobody says. `kind` is name, exception, warning, message or file."""

    kind: str
    what: str
    test: str


async def _assess(case: Case) -> Found:
    gold = judged_files(case.task, await case.gold())
    found = unstated(case.task, gold)
    codes = test_codes(case.task, case.task.verification.fail_to_pass)
    evidence: dict[str, Any] = {
        "tests_read": len(codes),
        "unstated": [{"kind": each.kind, "what": each.what, "test": each.test} for each in found],
        "added_by_the_gold": sorted(_added(case.task.files, gold))[:50],
    }
    examples = examples_of(case.task.instruction, gold)
    evidence["examples"] = len(examples)
    if examples:
        async with case.turn():
            try:
                wrong = await contradicted(case.bench.workshop.provider, case.task, gold, examples)
            except SandboxError as error:
                raise NotAssessed(f"no box could be had: {error.message}", fault=True) from error
        evidence["contradicted"] = wrong
        if wrong:
            return Found(False, f"the instruction says otherwise than the gold does: {wrong[0]}", evidence)
    if found:
        first = found[0]
        return Found(False, f"the tests ask for the {first.kind} {first.what!r}, which nothing states", evidence)
    return Found(
        True, "all that the tests ask for by name is stated, or was there before, and its examples hold", evidence
    )


def unstated(task: Task, gold: Tree) -> list[Unstated]:
    """What tests of fail_to_pass use, `gold` (the whole repaired workspace) adds and nothing states."""
    check = task.verification
    stated = _Stated(task, gold)
    found: list[Unstated] = []
    if check.plain is not None:
        words = check.plain.entry.replace(":", ".").split(".")
        found += [Unstated("name", word, "entry") for word in words if not stated.word(word) and not stated.path(word)]
    codes = test_codes(task, check.fail_to_pass)
    added, modules = _added(task.files, gold), test_modules(task)
    more = gained(task.files, gold)
    new_files = {path for path in gold if path not in task.files}
    for code in codes:
        imports = _imports(modules[code.file]) if code.file in modules else set()
        for name in sorted((_used(code.reached) | imports) & added):
            if not stated.word(name):
                found.append(Unstated("name", name, code.id))
        found += [Unstated(kind, what, code.id) for kind, what in _demands(code, modules.get(code.file), more, stated)]
        for text in _strings(code.reached):
            if text in new_files and not stated.word(text) and not stated.path(text):
                found.append(Unstated("file", text, code.id))
    return list({(each.kind, each.what): each for each in reversed(found)}.values())[::-1]


class _Stated:
    """What the instruction and the workspace say, each part read when it is first asked for."""

    def __init__(self, task: Task, gold: Tree) -> None:
        self.task, self.gold = task, gold

    @cached_property
    def _said(self) -> str:
        files = [file.data.decode("utf-8", "replace") for file in self.task.files.values() if len(file.data) < 1 << 20]
        return "\n".join([self.task.instruction, *files])

    @cached_property
    def text(self) -> str:
        return _flat(self._said)

    @cached_property
    def words(self) -> set[str]:
        return set(_WORD.findall(self._said))

    @cached_property
    def told(self) -> str:
        visible = [f.data.decode("utf-8", "replace") for path, f in self.task.files.items() if _TESTS.search(path)]
        return "\n".join([self.task.instruction, *visible])

    @cached_property
    def notes(self) -> str:
        return changed_docs(self.task.files, self.gold)

    @cached_property
    def paths(self) -> set[str]:
        every = self.task.files
        return {part for p in every for part in (p, *p.split("/"), p.rpartition("/")[2].partition(".")[0])}

    def word(self, word: str) -> bool:
        return word in self.words if word.isidentifier() else _flat(word) in self.text

    def told_of_exception(self, kind: str) -> bool:
        """Whether the instruction, a test in the workspace or notes on what is to change speak of it."""
        return kind in self.told or kind in self.notes

    def told_of_warning(self, category: str) -> bool:
        """Whether the instruction or a test in the workspace speaks of it, or of warnings at all: that code elsewhere
        warns says nothing of where else to."""
        return category in self.told or _OF_WARNINGS.search(self.told) is not None

    def path(self, word: str) -> bool:
        return word in self.paths

    def message(self, text: str) -> bool:
        """Whether all of it that is no pattern, number or value stands there, as it is or word by word."""
        for part in re.split(r"[\d'\"`]+", _PATTERN_SIGNS.sub("\0", text).replace("\0", '"')):
            words = [word for word in _WORD.findall(part) if len(word) >= _LEAST_WORD]
            if words and _flat(part).strip() not in self.text and not all(word in self.words for word in words):
                return False
        return True


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()


def _added(start: Tree, gold: Tree) -> set[str]:
    """Names for others to use that only the repaired workspace defines: functions, classes, parameters, fields."""
    found: set[str] = set()
    for path, file in gold.items():
        if not path.endswith(".py") or start.get(path) == file:
            continue
        tree, before = parsed(file.data), parsed(start[path].data) if path in start else None
        if tree is not None:
            found |= set(_defined(tree)) - (set(_defined(before)) if before is not None else set())
        if path not in start:
            found.add(path.rpartition("/")[2].removesuffix(".py"))
    return {name for name in found if not name.startswith("_")}


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else ()
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _used(reached: Iterable[ast.AST]) -> set[str]:
    """Names by which code of tests reaches into what it tests."""
    found: set[str] = set()
    for root in reached:
        for node in ast.walk(root):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.keyword) and node.arg:
                found.add(node.arg)
            elif isinstance(node, ast.ImportFrom):
                found |= {alias.name for alias in node.names} | set((node.module or "").split("."))
            elif isinstance(node, ast.Import):
                found |= {part for alias in node.names for part in alias.name.split(".")}
    return found


def _imports(tree: ast.Module) -> set[str]:
    return _used(node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))


def _demands(code: TestCode, module: ast.Module | None, more: Gained, stated: _Stated) -> Iterator[tuple[str, str]]:
    """What the test wants of messages, exceptions, warnings and attributes, and nothing states."""
    for kinds in exceptions_of(code):
        untold = any(kind in more.raised - _PROTOCOLS for kind in kinds) and not any(
            map(stated.told_of_exception, kinds)
        )
        if untold or not any(stated.word(kind) for kind in kinds):
            yield "exception", " or ".join(kinds)
    for category in sorted(warnings_of(code) & more.names):
        if not stated.told_of_warning(category):
            yield "warning", category
    for text in patterns_of(code, module):
        if not stated.message(text):
            yield "message", text
    for text in sorted(set(texts_of(code, module))):
        if not stated.message(text) and same_text(text, more.texts):
            yield "message", text
    for name in sorted(poked(code) & more.names):
        if not stated.word(name):
            yield "name", name


def _strings(reached: Iterable[ast.AST]) -> set[str]:
    return {
        node.value
        for root in reached
        for node in ast.walk(root)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _FILE.fullmatch(node.value)
    }


GATE = Gate("requirements", "4", "one box", "quarantined", _assess, needs=("gold",))
