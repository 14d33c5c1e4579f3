"""What need not stand in a rewritten file, since nothing of it is run.

Owns: `shortened`, `prune`, `spoken`, `apart`, `nodes`.
Invariant: only whole functions of tests go, undecorated ones that are not asked for and that nothing in the file names,
a decorated function of the same name included, which may be the abstract method that it makes real:
what runs while the file is loaded, and what the other tests can reach, stays as it was. Must not know: questions, lots.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Set
from functools import lru_cache

from practicum.records.tree import Tree

_LOOKS_AROUND = frozenset(
    [
        *("globals", "locals", "vars", "dir", "getmembers", "modules", "load_tests", "__dict__", "__globals__"),
        *("getattr", "attrgetter", "methodcaller", "eval", "exec", "getsource", "getsourcelines", "_getframe"),
        *("getTestCaseNames", "TestLoader", "defaultTestLoader", "makeSuite", "findTestCases"),
    ]
)


def nodes(root: ast.AST) -> Iterator[ast.AST]:
    """`root` and all below it, in no order: `ast.walk` takes three times as long, and this is most of a rewriting."""
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                todo.append(value)
            elif isinstance(value, list):
                todo += [item for item in value if isinstance(item, ast.AST)]


@lru_cache(maxsize=32)
def shortened(source: str, names: frozenset[str] | None) -> tuple[str, frozenset[str]]:
    """The file without the tests that `prune` takes out of it for `names`, if any, and all names that it speaks of.

    Every line keeps its number. Kept: a task's files are rewritten again and again, and reading them whole takes most
    of that. Raises as `ast.parse` does.
    """
    module = ast.parse(source)
    named = frozenset(spoken(module))
    gone = prune(module, names, named) if names is not None else []
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # no other sign ends a line for Python
    for node, alone in gone:
        assert node.end_lineno is not None
        first = lines[node.lineno - 1]
        lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
        if alone:
            lines[node.lineno - 1] = f"{first[: len(first) - len(first.lstrip())]}pass"
    return "\n".join(lines), named


def prune(module: ast.Module, names: Collection[str], named: Set[str]) -> list[tuple[ast.stmt, bool]]:
    """Take out of `module`, which speaks of `named`, the tests that are called otherwise than `names`.

    Returns them, each with whether `pass` has taken its place, where nothing else was left.
    """
    if named.isdisjoint(_LOOKS_AROUND):  # else a test could count the others
        return _prune(module, frozenset(names) | named | _decorated(module))
    return []


def _decorated(module: ast.Module) -> set[str]:
    functions = (node for node in nodes(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return {function.name for function in functions if function.decorator_list}


def _prune(owner: ast.Module | ast.ClassDef, kept: frozenset[str]) -> list[tuple[ast.stmt, bool]]:
    gone = [pair for node in owner.body if isinstance(node, ast.ClassDef) for pair in _prune(node, kept)]
    left = [node for node in owner.body if not _is_test(node, kept)]
    gone += [(node, not left and node is owner.body[0]) for node in owner.body if _is_test(node, kept)]
    owner.body = left or [ast.Pass()]
    return gone


def _is_test(node: ast.stmt, kept: frozenset[str]) -> bool:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.decorator_list:
        return False
    return node.name.startswith("test") and node.name not in kept


def spoken(module: ast.Module) -> set[str]:
    """Every name that the file speaks of: a function that is called or named by others cannot be renamed."""
    found = set[str]()
    for node in nodes(module):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name.rpartition(".")[2])
        elif isinstance(node, ast.FunctionDef) and node.name == "load_tests":
            found.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def apart(file: str, tests: Tree) -> bool:
    """Whether no other file of `tests` speaks of `file`, and so may use what is in it, or has abstract methods."""
    module = file.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2].encode()
    signs = [module, b"abstractmethod"]
    if file.endswith("__init__.py"):
        signs.append(b"from .")
    others = [other.data for name, other in tests.items() if name != file and name.endswith(".py")]
    return not any(sign in data for data in others for sign in signs)
