"""Exercism's Python exercises as tasks: a track's checkout, or the folder of one exercise.

Owns: `read_exercises`, `licence_texts`.
Invariant: `.meta/` and the tests never reach the workspace; which file is what is said by `.meta/config.json` alone.
An exercise that cannot be a task is refused by name. Nothing is run here, so every test is expected to fail before.
Must not know: how tasks are judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from practicum.errors import SubmissionError, TaskError
from practicum.records.task import Limits, Task, Verification
from practicum.records.tree import Change, File, check_path
from practicum.tasks.folders import file_mode
from practicum.tasks.importing import NO_LICENCE_FIX, Imported, Item, Licences, collect
from practicum.tasks.solutions import solution_of
from practicum.tasks.suites import read_suite

_KINDS = ("practice", "concept")
_CONFIG = Path(".meta/config.json")
_TEXTS = ("introduction.md", "instructions.md", "instructions.append.md")
_LICENCE_FILES = ("LICENSE", "LICENSE.md", "LICENSE.txt", "COPYING")
_TIMEOUT_S = 30.0
_INSTRUCTION = """\
{text}

Write your solution in {solution}, where {it_is} begun; keep the names that are there.{editor} It is judged by tests in
{tests}, which you do not see: call tests of your own something else.
"""


@dataclass(frozen=True, slots=True)
class _Track:
    """What the checkout says of all exercises: its licence, and difficulties from 1 to 10 by slug."""

    licence: str | None
    difficulties: Mapping[str, int]


def read_exercises(source: Path | str, licence_of: Licences, *, allow_unlicensed: bool = False) -> Imported:
    """The tasks of a track (`exercises/practice`, `exercises/concept`) or of one exercise; and why others are none.

    What was refused is keyed by the exercise's slug. Raises `TaskError` where `source` is neither.
    """
    root = Path(source)
    if (root / _CONFIG).is_file():
        folders, top = [root.resolve()], _top_of(root.resolve())
    else:
        folders = [
            folder
            for kind in _KINDS
            for folder in sorted((root / "exercises" / kind).glob("*"))
            if folder.is_dir() and not folder.is_symlink()
        ]
        top = root
    if not folders:
        raise TaskError(
            f"{root} holds no exercise of Exercism",
            fix="name a track's checkout, which holds exercises/practice, or the folder of one exercise",
        )
    track = _read_track(top, licence_of({name: File(data) for name, data in licence_texts(root).items()}))
    if track.licence is None and not allow_unlicensed:
        raise TaskError(f"{top} carries no licence that is known", fix=NO_LICENCE_FIX)
    return collect(_items(folders, track))


def licence_texts(source: Path | str) -> dict[str, bytes]:
    """The licence files of the checkout that `source` is or lies in, by name."""
    root = Path(source).resolve()
    top = _top_of(root) if (root / _CONFIG).is_file() else root
    return {name: _data(top / name) for name in _LICENCE_FILES if (top / name).is_file()}


def _items(folders: list[Path], track: _Track) -> Iterator[Item]:
    for folder in folders:
        yield folder.name, partial(_task, folder, track)


def _top_of(exercise: Path) -> Path:
    """The checkout that holds an exercise's folder, or that folder where it stands alone."""
    inside = len(exercise.parents) > 2 and exercise.parent.name in _KINDS and exercise.parents[1].name == "exercises"
    return exercise.parents[2] if inside else exercise


def _read_track(top: Path, licence: str | None) -> _Track:
    difficulties: dict[str, int] = {}
    config = top / "config.json"
    if config.is_file():
        told = _json(config)
        listed = told.get("exercises")
        practice = listed.get("practice", []) if isinstance(listed, dict) else []
        for each in practice if isinstance(practice, list) else []:
            if isinstance(each, dict) and type(each.get("difficulty")) is int:
                difficulties[str(each.get("slug"))] = each["difficulty"]
    return _Track(licence, difficulties)


def _task(folder: Path, track: _Track) -> Task:
    slug = folder.name
    config = _json(folder / _CONFIG)
    solution, tests, editor, golds = (_names(config, key) for key in ("solution", "test", "editor", "example"))
    golds = golds or _names(config, "exemplar")
    if not solution or not tests or not golds:
        lacking = "solution" if not solution else "test" if not tests else "example or exemplar"
        raise TaskError(f"{_CONFIG} names no file under `files.{lacking}`")
    stub, shown = _files(folder, solution), _files(folder, editor)
    frozen = _files(folder, tests) | _support(folder, {*solution, *tests, *editor})
    changes = _gold(_files(folder, golds), stub)
    verification = _verification(tests, frozen, shown)
    level = track.difficulties.get(slug)
    several = len(solution) > 1
    return Task(
        id=f"exercism-{slug}",
        instruction=_INSTRUCTION.format(
            text=_text(folder),
            solution=_listed(solution),
            it_is="they are" if several else "it is",
            editor=f" Read {_listed(editor)}, and leave what is there as it is." if editor else "",
            tests=_listed(tests),
        ),
        files=stub | shown,
        verification=verification,
        editable=tuple(solution),
        limits=Limits(),
        solution=solution_of(changes),
        split="test",
        domain="implementation",
        difficulty=None if level is None else "easy" if level <= 3 else "medium" if level <= 7 else "hard",
        provenance={
            "source": "Exercism, Python track",
            "license": track.licence or "unknown",
            "slug": slug,
            "exercise": folder.parent.name if folder.parent.name in _KINDS else "practice",
            **({} if level is None else {"level": level}),
            "config": json.dumps(config),
        },
    )


def _verification(tests: list[str], frozen: dict[str, File], shown: dict[str, File]) -> Verification:
    suites = {name: read_suite(_decoded(frozen[name].data, name), name) for name in tests if name.endswith(".py")}
    suites = {name: suite for name, suite in suites.items() if suite.tests}
    if not suites:
        raise TaskError(f"{', '.join(tests)} holds no test")
    runners = {suite.runner for suite in suites.values()}
    if len(runners) > 1:
        raise TaskError("some of its test files need pytest and others are unittest's")
    return Verification(
        runner=runners.pop(),
        tests=frozen | shown,
        files=tuple(suites),
        visible=tuple(shown),
        fail_to_pass=tuple(each for name, suite in suites.items() for each in suite.ids(name)),
        timeout_s=_TIMEOUT_S,
    )


def _gold(golds: dict[str, File], stub: dict[str, File]) -> list[Change]:
    """Each reference file at the place of the stub it belongs to: the one of its name, or else of its order."""
    by_name = {Path(name).name: file for name, file in golds.items()}
    if all(Path(name).name in by_name for name in stub):
        placed = {name: by_name[Path(name).name] for name in stub}
    elif len(golds) == len(stub):
        placed = dict(zip(stub, golds.values(), strict=True))
    else:
        raise TaskError(f"{', '.join(golds)} cannot be told to belong to {', '.join(stub)}")
    changes = [Change(name, "edit", file) for name, file in placed.items() if file.data != stub[name].data]
    if not changes:
        raise TaskError("the reference is the stub itself")
    return changes


def _support(folder: Path, named: set[str]) -> dict[str, File]:
    """Files beside the tests that nothing names, such as helpers of the tests: they go with the tests."""
    others = [path.name for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
    return _files(folder, [name for name in others if name not in named])


def _text(folder: Path) -> str:
    parts = [folder / ".docs" / name for name in _TEXTS]
    texts = [_decoded(_data(path), f".docs/{path.name}").strip() for path in parts if path.is_file()]
    if not (folder / ".docs" / "instructions.md").is_file() or not "".join(texts):
        raise TaskError(".docs/instructions.md is missing or empty")
    return "\n\n".join(text for text in texts if text)


def _listed(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _names(config: Mapping[str, Any], key: str) -> list[str]:
    files = config.get("files")
    names = files.get(key, []) if isinstance(files, dict) else []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TaskError(f"{_CONFIG}: `files.{key}` is not a list of names")
    for name in names:
        try:
            check_path(name)
        except SubmissionError as error:
            raise TaskError(f"{_CONFIG}: `files.{key}`: {error.message}") from None
    return names


def _files(folder: Path, names: list[str]) -> dict[str, File]:
    return {name: File(_data(folder / name), file_mode((folder / name).stat().st_mode)) for name in names}


def _json(path: Path) -> dict[str, Any]:
    name = f"{path.parent.name}/{path.name}"
    try:
        value: Any = json.loads(_decoded(_data(path), name))
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{name} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise TaskError(f"{name} is not a JSON object")
    return value


def _data(path: Path) -> bytes:
    name = f"{path.parent.name}/{path.name}"
    if path.is_symlink():
        raise TaskError(f"{name} is a symbolic link", fix="put the file itself there")
    try:
        return path.read_bytes()
    except OSError as error:
        raise TaskError(f"{name} cannot be read: {error.strerror}") from None


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise TaskError(f"{name} is not UTF-8 text") from None
