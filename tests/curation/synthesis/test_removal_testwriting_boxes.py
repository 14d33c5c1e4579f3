"""Features removed and tests asked for, from a small project, in real boxes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from practicum.curation.admission import check_tasks
from practicum.curation.projects.reading import read_project
from practicum.curation.synthesis.engine import Order, synthesise
from practicum.curation.synthesis.removal import FeatureRemoval
from practicum.curation.synthesis.strategy import Settings, Strategy
from practicum.curation.synthesis.testwriting import TARGET, TestWriting
from practicum.pipeline.execute import open_workshop
from practicum.records.task import Task
from practicum.records.tree import File
from practicum.tasks.taskset import load_taskset
from practicum.verification.submission import submission_from_workspace

SHAPES = '''"""Shapes."""


def area(width, height, scale=1) -> float:
    """The area of a rectangle, scaled; ValueError for what is negative."""
    # nobody wants less than nothing
    if width < 0 or height < 0:
        raise ValueError("negative")
    total = width * height
    return total * scale


def between(number, low, high):
    """Whether number lies between low and high, ends included."""
    if number < low:
        return False
    if number > high:
        return False
    return True


class Pile:
    """Things on top of each other."""

    def __init__(self, things=()):
        self.things = list(things)

    def top(self, count=1):
        """The topmost things, highest first."""
        if count > len(self.things):
            raise IndexError(count)
        found = self.things[::-1]
        return found[:count]
'''
TESTS = """import pytest

from shapes import Pile, area, between


def test_area_of_a_rectangle():
    assert area(2, 3) == 6
    assert area(2, 3, 10) == 60


@pytest.mark.parametrize(("width", "height"), [(-1, 2), (2, -1)])
def test_area_of_nothing(width, height):
    with pytest.raises(ValueError):
        area(width, height)
    assert area(0, 4) == 0
    assert area(4, 0) == 0


def test_between():
    assert [between(n, 2, 4) for n in range(1, 6)] == [False, True, True, True, False]


def test_top():
    assert Pile("abc").top(2) == ["c", "b"]
    assert Pile("abc").top(3) == ["c", "b", "a"]
    assert Pile("ab").top() == ["b"]
    with pytest.raises(IndexError):
        Pile("a").top(2)
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "shapes-1.0"
    (folder / "tests").mkdir(parents=True)
    (folder / "shapes.py").write_text(SHAPES)
    (folder / "tests" / "test_shapes.py").write_text(TESTS)
    (folder / "LICENSE").write_text("MIT License\n\nPermission is hereby granted, free of charge, to any person ...\n")
    (folder / "pyproject.toml").write_text('[project]\nname = "shapes"\nversion = "1.0"\nlicense = "MIT"\n')
    return folder


def made(repo: Path, out: Path, strategy: Strategy, count: int) -> tuple[list[Task], list[str | None], list[bool]]:
    """Tasks, why they were not admitted, and whether cheats passed."""

    async def go() -> tuple[list[Task], list[str | None], list[bool]]:
        async with open_workshop() as shop:
            result = await synthesise(
                shop.provider, read_project(repo), (strategy,), Settings(most_failing=0.9), Order(count, 90.0, 2), out
            )
            assert result.tasks, result.result.to_json()
            tasks = load_taskset(out)
            passed = []
            for task in tasks if strategy.name == "test-writing" else []:
                for text in CHEATS.values():
                    files = dict(task.files) | {TARGET: File(text.encode())}
                    verdict = await shop.verifier.verify(task, submission_from_workspace(task, files))
                    passed.append(verdict.passed)
            return tasks, [a.reason for a in await check_tasks(shop, tasks)], passed

    return asyncio.run(go())


READ = "import inspect, pathlib, shapes\nTEXT = pathlib.Path(shapes.__file__).read_text()\n"
CHEATS = {
    "same text": READ + f"\ndef test(): assert TEXT == {SHAPES!r}\n",
    "same pieces": READ + "\ndef test(): assert 'width < 0 or height < 0' in TEXT and 'number < low' in TEXT\n",
    "same signature": READ + "\ndef test(): assert str(inspect.signature(shapes.between)) == '(number, low, high)'\n",
    "same constants": READ + "\ndef test(): assert 10 not in shapes.area.__code__.co_consts\n",
    "same operators": READ + f"\ndef test(): assert TEXT.count('<') == {SHAPES.count('<')}\n",
}


def test_a_removed_feature_is_a_task(repo: Path, tmp_path: Path) -> None:
    """Only the body goes, the gold is the original, and the instruction holds none of the code."""
    tasks, refused, _ = made(repo, tmp_path / "out", FeatureRemoval(), 2)
    assert len(tasks) == 2
    assert refused == [None, None]
    for task in tasks:
        left = task.files["shapes.py"].data.decode()
        assert left.count("raise NotImplementedError") == 1
        assert task.solution["gold/shapes.py"].data.decode() == SHAPES
        assert task.provenance["function"].rpartition(".")[2] in task.instruction
        assert "smallest" not in task.instruction
        assert ("-> float:" in task.instruction) == (task.provenance["function"] == "area")
        assert "nobody wants less" not in left + task.instruction or task.provenance["function"] != "area"


def test_tests_are_asked_for(repo: Path, tmp_path: Path) -> None:
    """Gold is the project's own tests, no-op fails, and tests that look at text instead of behaviour do not pass."""
    tasks, refused, passed = made(repo, tmp_path / "out", TestWriting(), 2)
    assert refused == [None] * len(tasks)
    assert not any(passed)
    for task in tasks:
        assert task.verification.runner == "variants"
        assert not [path for path in task.files if "test" in path]
        assert sum(name.startswith("mutant") for name in task.verification.fail_to_pass) >= 4
        mutants = task.provenance["mutants"]
        assert 2 * sum("return: nothing" in name for name in mutants) <= len(mutants)
        assert "may use pytest and the standard library" in task.instruction
