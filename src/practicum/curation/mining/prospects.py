"""Which commits may become tasks, told from what they change.

Owns: `Prospect`, `Refused`, `looked_at`, `prospect_of`, `worth_of`.
Invariant: pure; a commit that is passed over has a reason, one of few short phrases.
Must not know: boxes, git.
"""

from __future__ import annotations

import ast
import difflib
import posixpath
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from practicum.curation.projects.project import Project
from practicum.records.tree import Tree, matches
from practicum.tasks.repositories import Commit

MOST_FILES = 8  # sources that one change may touch
MOST_LINES = 400  # lines of sources that are added or removed
_TEST_FOLDERS = frozenset(["test", "tests", "testing", "unittests"])
_ASIDE = frozenset(["doc", "docs", "example", "examples", "benchmark", "benchmarks", "tools", "scripts", "misc", "ci"])
_VERSION = re.compile(r"_*(version|version_info|release|author|copyright|year)_*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a commit became no task. `reason` is one of few short phrases, so that they can be counted."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Prospect:
    """A commit's two sides. `before` is the parent's state with the commit's tests, `gold` turns it into the commit's.

    `touched` are the test files that the commit changed or added, `earlier` the tests as they were before. Paths of
    `gold` are the project's own; None removes.
    """

    commit: Commit
    before: Project
    gold: Mapping[str, bytes | None]
    touched: tuple[str, ...]
    earlier: Tree


def looked_at(commit: Commit) -> bool | Refused:
    """Whether a commit changes both sources and tests, as far as paths tell; refused where it is too large."""
    paths = [change.path for change in commit.changes if change.path.endswith(".py")]
    tests = [change.path for change in commit.changes if change.status != "D" and _is_test(change.path)]
    sources = [path for path in paths if not _is_test(path) and not _is_aside(path)]
    if not tests or not sources or not commit.parents:
        return False
    if commit.more or len(sources) > MOST_FILES:
        return Refused("changes too many files", f"{len(sources)} sources")
    return True


def _is_test(path: str) -> bool:
    name = posixpath.basename(path)
    return path.endswith(".py") and (
        name.startswith("test_") or name.endswith("_test.py") or bool(_TEST_FOLDERS & set(path.split("/")[:-1]))
    )


def _is_aside(path: str) -> bool:
    return ("/" in path and path.partition("/")[0] in _ASIDE) or path in ("setup.py", "noxfile.py", "conf.py")


def prospect_of(commit: Commit, before: Project, after: Project) -> Prospect | Refused:
    """What a commit makes of the project `before` it; `after` is the project with it."""
    editable = tuple(sorted({*before.editable, *after.editable}))
    start = {path: file for path, file in before.files.items() if path not in after.tests}
    gold: dict[str, bytes | None] = {}
    for path in sorted(start.keys() | after.files.keys()):
        if start.get(path) != after.files.get(path) and matches(path, editable):
            gold[path] = after.files[path].data if path in after.files else None
    changed = [path for path in gold if path.endswith(".py")]
    if not changed:
        return Refused("changes no source that can be imported")
    if len(changed) > MOST_FILES:
        return Refused("changes too many files", f"{len(changed)} sources")
    lines = sum(_changed_lines(start, after.files, path) for path in changed)
    if lines > MOST_LINES:
        return Refused("changes too many lines", f"{lines} lines of sources")
    if (why := worth_of(start, after.files, changed)) is not None:
        return why
    touched = tuple(name for name in after.test_files if before.tests.get(name) != after.tests[name])
    if not touched:
        return Refused("changes no test file")
    sources = tuple(path for path in before.sources if path in start)
    state = Project(
        name=after.name,
        version=before.version,
        origin={"kind": "git", "commit": commit.sha, "parent": commit.parents[0]},
        licence=after.licence,
        files=start,
        tests=after.tests,
        test_files=after.test_files,
        roots=after.roots,
        sources=sources,
        layer=after.layer,
        notes=after.notes,
    )
    return Prospect(commit, state, gold, touched, before.tests)


def _changed_lines(before: Tree, after: Tree, path: str) -> int:
    old, new = (_text(tree, path).splitlines() for tree in (before, after))
    return sum(line[:1] in "+-" for line in difflib.ndiff(old, new)) if len(old) + len(new) < 600 else _fast(old, new)


def _fast(old: list[str], new: list[str]) -> int:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=True)
    same = sum(block.size for block in matcher.get_matching_blocks())
    return len(old) + len(new) - 2 * same


def _text(tree: Tree, path: str) -> str:
    return tree[path].data.decode("utf-8", "replace") if path in tree else ""


def worth_of(before: Tree, after: Tree, changed: list[str]) -> Refused | None:
    """Why the change of these sources is none that tests could tell: it does not parse, or means the same."""
    same = True
    for path in changed:
        sides = [_meaning(tree[path].data) if path in tree else "" for tree in (before, after)]
        if None in sides:
            return Refused("sources are of another Python", path)
        same = same and sides[0] == sides[1]
    return Refused("changes only formatting, comments or a version") if same else None


def _meaning(data: bytes) -> str | None:
    """What a source says without comments, layout, docstrings and versions; None where it does not parse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in strings that are not ours
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError, RecursionError):
            return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [each for each in body if not _is_idle(each)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_idle(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    targets = node.targets if isinstance(node, ast.Assign) else ()
    return bool(targets) and all(isinstance(each, ast.Name) and _VERSION.fullmatch(each.id) for each in targets)
