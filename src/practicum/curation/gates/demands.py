"""What tests demand beside names: texts, warnings and exceptions, attributes that they take away or replace.

Owns: `Gained`, `gained`, `texts_of`, `patterns_of`, `same_text`, `warnings_of`, `exceptions_of`, `poked`.
Invariant: pure. A value that follows from inputs is no demand: of texts only those count that read like a sentence and
that the gold holds as well. Must not know: what the instruction says.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from practicum.curation.gates.testcode import TestCode, called, named, parsed
from practicum.records.tree import Tree

_WORD = re.compile(r"[^\W\d_]{2,}")
_SIGNS = re.compile(r"\\[AbBdDsSwWZ]|\\?[\^$.|?*+()\[\]{}%]|\\n|[\d\"'`]+")
_SENTENCE = 3
"""Words from which a text is told from a value."""
_MATCHED = {"match", "expected_regex"}
_RAISES = {"raises", "assertRaises", "assertRaisesRegex"}
_WARNS = {"warns", "assertWarns", "assertWarnsRegex"}
_ANY = {"Exception", "BaseException"}
_FILTERS = {"filterwarnings", "simplefilter", "catch_warnings", "resetwarnings"}
_POKES = {"setattr", "delattr", "hasattr", "getattr", "object"}
Node = ast.AST


@dataclass(frozen=True, slots=True)
class Gained:
    """What the repaired workspace holds beyond the start: texts in code, names that it uses, and exceptions that it
    raises, more often."""

    texts: frozenset[str]
    names: frozenset[str]
    raised: frozenset[str]


def gained(start: Tree, gold: Tree) -> Gained:
    """Of Python files that differ. A name or text that only moved from one to another is not gained."""
    changed = [path for path in {**start, **gold} if path.endswith(".py") and start.get(path) != gold.get(path)]
    before = [tree for path in changed if path in start and (tree := parsed(start[path].data)) is not None]
    after = [tree for path in changed if path in gold and (tree := parsed(gold[path].data)) is not None]
    texts = {text for tree in after for text in _code_texts(tree)} - {text for tree in before for text in _texts(tree)}
    return Gained(frozenset(texts), _more(_names, before, after), _more(_raised, before, after))


def _more(
    read: Callable[[Node], Iterator[str]], before: Iterable[ast.Module], after: Iterable[ast.Module]
) -> frozenset[str]:
    counts = Counter(name for tree in after for name in read(tree))
    counts.subtract(name for tree in before for name in read(tree))
    return frozenset(name for name, count in counts.items() if count > 0)


def texts_of(code: TestCode, module: ast.Module | None) -> Iterator[str]:
    """All texts in the code of a test, and those of constants of its file that it names; not its docstrings."""
    constants = _constants(module) if module is not None else {}
    for root in code.reached:
        yield from _code_texts(root)
        for name in _names(root):
            yield from constants.get(name, ())


def patterns_of(code: TestCode, module: ast.Module | None) -> Iterator[str]:
    """Texts that the message of an exception or warning is held against."""
    constants = _constants(module) if module is not None else {}
    for call in _calls(code, _RAISES | _WARNS):
        nodes = [word.value for word in call.keywords if word.arg in _MATCHED]
        if called(call).endswith("Regex") and len(call.args) > 1:
            nodes.append(call.args[1])
        yield from _resolved(nodes, constants)


def same_text(wanted: str, held: Iterable[str]) -> bool:
    """Whether `wanted`, a text or a pattern, and one of `held` share a run of words long enough for a sentence."""
    parts = [part for part in map(_flat, _SIGNS.split(wanted)) if _sentence(part)]
    others = [part for text in held for part in map(_flat, _SIGNS.split(text)) if _sentence(part)]
    return any(part in other or other in part for part in parts for other in others)


def exceptions_of(code: TestCode) -> Iterator[tuple[str, ...]]:
    """Exceptions and warnings that must come: one of each tuple. Where any will do, none is asked for."""
    for call in _calls(code, _RAISES | _WARNS):
        kinds = call.args[:1]
        if kinds and isinstance(kinds[0], ast.Tuple):
            kinds = kinds[0].elts
        words = tuple(named(kind) for kind in kinds)
        if words and all(word[:1].isupper() for word in words) and not _ANY.intersection(words):
            yield words


def warnings_of(code: TestCode) -> set[str]:
    """Categories of warnings that the code of a test speaks of other than to filter them."""
    found = {"DeprecationWarning" for _ in _calls(code, {"deprecated_call"})}
    todo: list[Node] = list(code.reached)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Call) and called(node) in _FILTERS:
            continue
        if isinstance(node, (ast.Name, ast.Attribute)) and named(node).endswith("Warning"):
            found.add(named(node))
        todo += ast.iter_child_nodes(node)
    return found


def poked(code: TestCode) -> set[str]:
    """Attributes, by name, that a test replaces, takes away or asks for as texts."""
    found: set[str] = set()
    for call in _calls(code, _POKES):
        texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        found |= {text.rpartition(".")[2] for text in texts[:1]}
    return {name for name in found if name.isidentifier()}


def _calls(code: TestCode, names: set[str]) -> Iterator[ast.Call]:
    for root in code.reached:
        for node in ast.walk(root):
            if isinstance(node, ast.Call) and called(node) in names:
                yield node


def _resolved(nodes: Sequence[ast.expr], constants: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Call):  # re.escape("…")
            yield from _resolved(node.args, constants)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield from constants.get(named(node), ())


def _constants(module: ast.Module) -> dict[str, list[str]]:
    """Texts of what a module and its classes assign, by name."""
    found: dict[str, list[str]] = {}
    bodies = [module.body, *(node.body for node in module.body if isinstance(node, ast.ClassDef))]
    for statement in (each for body in bodies for each in body):
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                found.setdefault(named(target), []).extend(_texts(statement.value))
    return found


def _names(root: Node) -> Iterator[str]:
    return (name for node in ast.walk(root) if isinstance(node, (ast.Name, ast.Attribute)) and (name := named(node)))


def _raised(root: Node) -> Iterator[str]:
    for node in ast.walk(root):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield called(node.exc) if isinstance(node.exc, ast.Call) else named(node.exc)


def _texts(root: Node) -> Iterator[str]:
    return (node.value for node in ast.walk(root) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _code_texts(root: Node) -> Iterator[str]:
    """Texts that code works with: those that stand alone, docstrings among them, are notes."""
    alone = {id(node.value) for node in ast.walk(root) if isinstance(node, ast.Expr)}
    for node in ast.walk(root):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold().strip(" ,.:;!-")


def _sentence(text: str) -> bool:
    return len(_WORD.findall(text)) >= _SENTENCE
