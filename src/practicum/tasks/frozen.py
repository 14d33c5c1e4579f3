"""A repository's own tests as frozen tests.

Owns: `freeze`, `Frozen`, `PLACE`.
Invariant: frozen tests lie below a folder of their own, so that an honest change to the repository's tests is no
attempt to plant one; ids are the repository's, behind that folder's name. Pure.
Must not know: where repositories are, formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from practicum.errors import TaskError
from practicum.records.tree import File, Tree
from practicum.tasks.suites import read_suite

PLACE = "frozen/"
_FOLDERS = ("tests", "test", "testing")
_ID = re.compile(r"([^:\s][^:]*\.py)(::.+)", re.DOTALL)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Frozen:
    """Frozen tests for the runner `pytest`: `files` are those with expected tests, `ids` the runner's, in order."""

    tests: Mapping[str, File]
    files: tuple[str, ...]
    ids: tuple[str, ...]


def freeze(after: Tree, ids: Sequence[str], *, also: Iterable[str] = ()) -> Frozen:
    """The tests `ids` of the tree `after`, with all that lies in their test folders, conftest.py above, and `also`.

    Raises `TaskError` naming ids that are not of the form `path/test_file.py::test`, and files that are not there.
    """
    odd = [name for name in ids if not _ID.fullmatch(name)]
    if odd:
        raise TaskError(
            f"{_some(odd)} cannot be mapped to a test that can be run here",
            fix="ids of pytest, such as tests/test_a.py::test_b, can",
        )
    files = list(dict.fromkeys(name.partition("::")[0] for name in ids))
    lost = [name for name in files if name not in after]
    if lost:
        raise TaskError(f"the tests name {_some(lost)}, which is not there")
    folders = {folder for name in files if (folder := _test_folder(name)) is not None}
    kept = {name for name in after if any(name.startswith(folder) for folder in folders)}
    above = {f"{part}conftest.py" for name in files for part in _parents(name)}
    kept |= set(files) | (above & after.keys()) | (set(also) & after.keys())
    return Frozen(
        tests={PLACE + name: after[name] for name in sorted(kept)},
        files=tuple(PLACE + name for name in files),
        ids=tuple(PLACE + name for name in ids),
    )


def expand(after: Tree, names: Sequence[str]) -> tuple[str, ...]:
    """Ids of pytest, where each name of a whole file stands for the tests that it is read to hold."""
    found: list[str] = []
    for name in names:
        if "::" in name or not name.endswith(".py") or name not in after:
            found.append(name)
            continue
        try:
            suite = read_suite(after[name].data.decode(), name)
        except UnicodeDecodeError:
            raise TaskError(f"{name} is not UTF-8 text") from None
        if not suite.tests:
            raise TaskError(f"{name} holds no test")
        found += ["::".join(filter(None, (name, owner, test))) for owner, test in suite.tests]
    return tuple(dict.fromkeys(found))


def row_id(name: str) -> str:
    """An id of the runner as the repository's own."""
    return name.removeprefix(PLACE)


def is_test(path: str) -> bool:
    """Whether `path` is a test or lies among tests, by pytest's conventions."""
    folder, _, name = path.rpartition("/")
    named = name == "conftest.py" or (name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py")))
    return named or bool(set(folder.split("/")) & set(_FOLDERS))


def _test_folder(path: str) -> str | None:
    """The topmost folder of tests above `path`, with a slash."""
    parts = path.split("/")[:-1]
    first = next((number for number, part in enumerate(parts) if part in _FOLDERS), None)
    return None if first is None else "/".join(parts[: first + 1]) + "/"


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["", *("/".join(parts[: number + 1]) + "/" for number in range(len(parts)))]


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
