"""Whether tests are strong enough to judge a repair, in real boxes."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Mapping

import pytest

from practicum.curation.gates.contract import Settings as Asked
from practicum.curation.projects.reading import project_of
from practicum.curation.projects.steadiness import survey
from practicum.curation.projects.testbed import open_testbed
from practicum.curation.synthesis.baseline import baseline_of
from practicum.curation.synthesis.bench import Workbench
from practicum.curation.synthesis.strategy import Candidate, Ground, Refusal, Settings
from practicum.curation.synthesis.strength import WrongVariant, is_killed, weakness, wrong_variants_of
from practicum.records.tree import File
from practicum.sandboxes.provider import open_provider
from practicum.verification.redteam.mutants import mutants_of
from practicum.verification.redteam.variants import Source

GRADES = '''"""Grades."""

SCALE = 10


class Book:
    # of one pupil
    @staticmethod
    def grade(points, most=100):
        """A to F; ValueError beyond the scale."""
        if points < 0 or points > most:
            raise ValueError(points)
        share = SCALE * points // most
        if share >= 9:
            return "A"
        return "B" if share >= 7 else "F"


def rank(points, others):
    place = 1
    for other in others:
        if other > points:
            place += 1
    return place


def half(points):
    return points
'''
TESTS = """import pytest
from grades import Book, rank


def test_grade():
    assert [Book.grade(n) for n in (0, 69, 70, 89, 90, 100)] == ["F", "F", "B", "B", "A", "A"]
    assert Book.grade(5, 10) == "F"
    for points in (-1, 101):
        with pytest.raises(ValueError):
            Book.grade(points)


def test_grade_is_text():
    assert isinstance(Book.grade(50), str)


def test_rank():
    assert rank(3, []) is not None
"""
FILES = {"pyproject.toml": '[project]\nname = "grades"\nversion = "1"\nlicense = "MIT"\n', "grades.py": GRADES}
TREE = {path: File(text.encode()) for path, text in (FILES | {"tests/test_grades.py": TESTS}).items()}
WANTED: Mapping[str, tuple[str, str, str]] = {
    "strong": ("share >= 9", "share > 9", ""),
    "weak": ("place += 1", "place += 2", "wrong variants fail"),
    "hardly code": ("return points\n", "return +points\n", "can be made"),
    "no function": ("SCALE = 10", "SCALE = 9", "can be made"),
}


@pytest.fixture(scope="module")
def found() -> Mapping[str, Refusal | None]:
    """What is said of each change to the project, judged by all of its tests."""
    project = project_of(TREE, {}, {"kind": "folder"}, where="grades")

    async def ask() -> dict[str, Refusal | None]:
        said = {}
        async with (
            open_provider(run_id="tests-strength", limits_by="cgroup-or-rlimit") as provider,
            open_testbed(provider, project) as testbed,
        ):
            ground = Ground(project, baseline_of(await survey(testbed)))
            bench = Workbench(ground, testbed, Settings(), {})
            for name, (old, new, _) in WANTED.items():
                changes = {"grades.py": GRADES.replace(old, new).encode()}
                candidate = Candidate("single-bug", name, changes, {}, {})
                said[name] = await weakness(bench, candidate, sorted(ground.baseline.steady))
        return said

    return asyncio.run(ask())


@pytest.mark.parametrize("name", WANTED)
def test_weak_tests_make_no_task(found: Mapping[str, Refusal | None], name: str) -> None:
    """Tests that let most wrong variants of a function pass, or functions without such, make no task; others do."""
    said, why = found[name], WANTED[name][2]
    if not why:
        assert said is None
    else:
        assert said is not None
        assert (said.reason, said.killed) == ("tests too weak", True)
        assert why in said.detail


async def _is_killed(text: str) -> bool:
    project = project_of(TREE, {}, {"kind": "folder"}, where="grades")
    async with (
        open_provider(run_id="tests-strength", limits_by="cgroup-or-rlimit") as provider,
        open_testbed(provider, project) as testbed,
    ):
        ground = Ground(project, baseline_of(await survey(testbed)))
        bench = Workbench(ground, testbed, Settings(), {})
        wrong = WrongVariant("by hand", "grades.py", text.encode(), range(8, 17))
        return await is_killed(bench, wrong, sorted(ground.baseline.steady))


@pytest.mark.parametrize(
    ("start", "killed"),
    [
        ("import time; time.sleep(60)", False),
        ("if most == 100: import time; time.sleep(60)", False),
        (
            "if points == 5: return 'F'\n        elif points == 50: import time; time.sleep(60)\n        return 'A'",
            True,
        ),
        ("import os; os._exit(1)", True),
    ],
)
def test_no_clock_kills(start: str, killed: bool) -> None:
    """Who is out of time twice lives, unless a test had failed before; a crash is no matter of time."""
    text = GRADES.replace("        if points < 0", f"        {start}\n        if points < 0")
    assert asyncio.run(_is_killed(text)) == killed


def test_the_draw_is_that_of_the_gate() -> None:
    """Variants are those that the gate's own function draws, each with the lines of the function that it is about."""
    source = Source(GRADES, ("Book.grade", "rank"))
    count = Asked().mutants
    wrong = list(wrong_variants_of("grades.py", source, count, "seed"))
    drawn = mutants_of(source, count, "seed")
    assert [(each.name, each.data.decode()) for each in wrong] == [(each.name, each.text) for each in drawn]
    places = {"rank": range(19, 25), "grade": range(8, 17)}
    for each in wrong:
        changed = {place for place, lines in places.items() if each.lines == lines}
        right, now = (
            {node.name: ast.dump(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
            for text in (GRADES, each.data)
        )
        assert {name for name in right if right[name] != now[name]} == changed


def test_any_change_has_its_function() -> None:
    """A change to a decorator, or to a case of `match`, belongs to a function as well."""
    text = "@mark(7)\ndef f(a):\n    match a:\n        case 1:\n            a = 2\n            return a\n"
    wrong = list(wrong_variants_of("f.py", Source(text, ("f",)), 50, "seed"))
    assert {"constant: 7 to 8", "removed: a = 2"} <= {each.name for each in wrong}
    assert {each.lines for each in wrong} == {range(1, 7)}
