"""Which files of a project are tests, which are sources, and which are neither.

Owns: `Layout`, `layout_of`.
Invariant: every path is test, source or other, never two of them. Pure.
Must not know: where files come from, licences.
"""

from __future__ import annotations

import keyword
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from practicum.curation.projects.metadata import Metadata
from practicum.records.tree import Tree

_PYTHON_FILES = ("test_*.py", "*_test.py")
_TEST_FOLDERS = frozenset(["test", "tests", "testing", "unittests", "unit_tests"])
# Folders at the top that hold something else than what the project is.
_ASIDE = frozenset(
    [
        *("doc", "docs", "example", "examples", "samples", "demo", "demos", "benchmark", "benchmarks", "bench", "misc"),
        *("script", "scripts", "tools", "ci", "contrib", "build", "dist", "extras", "requirements", "packaging", "etc"),
        *_TEST_FOLDERS,
    ]
)
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
_ASIDE_MODULES = frozenset(["setup.py", "conftest.py", "noxfile.py", "tasks.py", "fabfile.py", "conf.py", "dodo.py"])


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths by what they are. `tests` are all paths of tests, `test_files` those that pytest collects.

    `odd` maps Python files that cannot be sources or test files to why.
    """

    tests: tuple[str, ...]
    test_files: tuple[str, ...]
    roots: tuple[str, ...]
    sources: tuple[str, ...]
    odd: Mapping[str, str]


def layout_of(tree: Tree, metadata: Metadata) -> Layout:
    """What is what in `tree`, by pytest's conventions and the project's own configuration of it."""
    odd = {path: "not UTF-8" for path in tree if path.endswith(".py") and not _is_text(tree[path].data)}
    python = sorted(path for path in tree if path.endswith(".py") and path not in odd)
    patterns = metadata.python_files or _PYTHON_FILES
    below = tuple(posixpath.normpath(path) for path in metadata.testpaths)
    root = "src" if any(path.startswith("src/") and path.endswith(".py") for path in python) else ""
    candidates = [path for path in python if _is_test_name(path, patterns)]
    test_files = [path for path in candidates if _within(path, below)]
    if not test_files:  # as pytest does where none of `testpaths` is there
        test_files = candidates
    test_files = [path for path in test_files if not _is_aside(path)]
    folders = _test_folders(test_files, below, python, root)
    tests = set(test_files) | {path for path in tree if posixpath.basename(path) == "conftest.py"}
    tests |= {path for path in tree if any(path.startswith(f"{folder}/") for folder in folders)}
    wanted = _imported(tree, test_files)
    sources = [path for path in python if path not in tests and _is_source(path, root, tree, wanted)]
    return Layout(
        tests=tuple(sorted(tests)),
        test_files=tuple(sorted(test_files)),
        roots=(root,),
        sources=tuple(sources),
        odd=odd,
    )


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _is_test_name(path: str, patterns: Iterable[str]) -> bool:
    name = posixpath.basename(path)
    return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in patterns)


def _within(path: str, folders: tuple[str, ...]) -> bool:
    return not folders or any(
        folder == "." or path == folder or path.startswith(f"{folder}/") or fnmatchcase(path, f"{folder}/*")
        for folder in folders
    )


def _is_aside(path: str) -> bool:
    """Whether a file with a test's name stands where no tests of the project are."""
    top, slash, _ = path.partition("/")
    return bool(slash) and top in _ASIDE - _TEST_FOLDERS and not _TEST_FOLDERS & set(path.split("/"))


def _test_folders(test_files: Iterable[str], below: tuple[str, ...], python: list[str], root: str) -> set[str]:
    """Folders that hold nothing but tests: those named so, and those that pytest is told to look in."""
    found: set[str] = set()
    for path in test_files:
        parts = path.split("/")[:-1]
        named = next((i for i, part in enumerate(parts) if part in _TEST_FOLDERS), None)
        if named is not None:
            found.add("/".join(parts[: named + 1]))
            continue
        for folder in below:
            if folder not in (".", "", root) and path.startswith(f"{folder}/"):
                inside = [p for p in python if p.startswith(f"{folder}/")]
                if sum(posixpath.basename(p).startswith(("test", "conftest", "__init__")) for p in inside) > (
                    len(inside) // 2
                ):
                    found.add(folder)
    return found


def _imported(tree: Tree, test_files: Iterable[str]) -> set[str]:
    """First parts of the names of modules that tests import."""
    texts = (tree[path].data.decode("utf-8") for path in test_files)
    return {name for text in texts for name in _IMPORT.findall(text)}


def _is_source(path: str, root: str, tree: Tree, wanted: set[str]) -> bool:
    """Whether it is a module of the project. A folder at the top is a package where it says so, or where tests import
    it: a namespace package, or what holds one, has no `__init__.py`."""
    if root and not path.startswith(f"{root}/"):
        return False
    parts = path.removeprefix(f"{root}/" if root else "").split("/")
    names = [*parts[:-1], parts[-1].removesuffix(".py")]
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
        return False
    if len(parts) == 1:
        return bool(root) or parts[0] not in _ASIDE_MODULES
    if root:
        return True
    return parts[0] not in _ASIDE and (f"{parts[0]}/__init__.py" in tree or parts[0] in wanted)
