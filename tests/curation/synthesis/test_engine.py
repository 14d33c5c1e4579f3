"""A small project becomes tasks, in real boxes: kept, refused, gone on with, made again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from practicum.curation.projects.measured import Measured
from practicum.curation.projects.project import Project
from practicum.curation.projects.reading import project_of
from practicum.curation.projects.steadiness import Sentinels, Survey, survey
from practicum.curation.projects.testbed import open_testbed
from practicum.curation.synthesis.baseline import baseline_of
from practicum.curation.synthesis.bench import Workbench
from practicum.curation.synthesis.bugs import SeveralBugs, SingleBug, bug_strategies, rebuild
from practicum.curation.synthesis.engine import Made, Order, synthesise
from practicum.curation.synthesis.instruction import bug_report
from practicum.curation.synthesis.leaks import gives_away, repaired_lines
from practicum.curation.synthesis.mutation.quarry import Quarry
from practicum.curation.synthesis.proposing import open_proposer
from practicum.curation.synthesis.strategy import Candidate, Ground, Refusal, Settings, Trial
from practicum.errors import TaskError
from practicum.records.tree import File
from practicum.sandboxes.contract import SandboxProvider
from practicum.sandboxes.provider import open_provider
from practicum.tasks.taskset import load_taskset

WORDS = """
def longest(words, least=2):
    \"\"\"The longest of `words`, of those with `least` letters or more; the first of equals.\"\"\"
    best = None
    for word in words:
        if len(word) < least:
            continue
        if best is None or len(word) > len(best):
            best = word
    return best


def initials(name, sep="."):
    if not name:
        raise ValueError("a name is needed")
    return sep.join(part[0].upper() for part in name.split())


def unused(a):
    return a + 1
"""
COUNTS = """
class Tally:
    def __init__(self):
        self.counts = {}
        self.total = 0

    def add(self, key, times=1):
        self.counts[key] = self.counts.get(key, 0) + times
        self.total += times

    def share(self, key):
        if self.total == 0:
            return 0.0
        return self.counts.get(key, 0) / self.total


def first_over(limit):
    number = 1
    while number <= limit:
        number *= 2
    return number
"""
TESTS = {
    "tests/test_words.py": (
        "import pytest\nfrom pack.words import initials, longest\n\n"
        "def test_longest_word():\n    assert longest(['ab', 'abcd', 'abc', 'wxyz']) == 'abcd'\n\n"
        "def test_short_words_are_left_out():\n    assert longest(['a']) is None\n"
        "    assert longest(['ab']) == 'ab'\n\n"
        "def test_initials():\n    assert initials('ada king') == 'A.K'\n\n"
        "def test_no_name():\n    with pytest.raises(ValueError, match='name is needed'):\n        initials('')\n"
    ),
    "tests/test_counts.py": (
        "import unittest\nfrom pack.counts import Tally, first_over\n\n"
        "class TallyTest(unittest.TestCase):\n"
        "    def test_share(self):\n        tally = Tally()\n        tally.add('a', 3)\n        tally.add('b')\n"
        "        self.assertEqual(tally.share('a'), 0.75)\n\n"
        "    def test_nothing_counted(self):\n        self.assertEqual(Tally().share('a'), 0.0)\n\n"
        "    def test_first_over(self):\n        self.assertEqual(first_over(8), 16)\n"
    ),
}
FILES = {"pyproject.toml": '[project]\nname = "pack"\nversion = "1"\nlicense = "MIT"\n', "pack/__init__.py": ""}
FILES |= {"pack/words.py": WORDS.lstrip(), "pack/counts.py": COUNTS.lstrip()} | TESTS
Boxes = tuple[asyncio.Runner, SandboxProvider]


@pytest.fixture(scope="module")
def project() -> Project:
    tree = {path: File(text.encode()) for path, text in FILES.items()}
    return project_of(tree, {}, {"kind": "folder"}, where="pack")


@pytest.fixture(scope="module")
def boxes() -> Iterator[Boxes]:
    with asyncio.Runner() as runner:
        opening = open_provider(run_id="tests-synthesis", limits_by="cgroup-or-rlimit")
        provider = runner.run(opening.__aenter__())
        try:
            yield runner, provider
        finally:
            runner.run(opening.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def ground(project: Project, boxes: Boxes) -> Ground:
    runner, provider = boxes

    async def measure() -> Ground:
        async with open_testbed(provider, project) as testbed:
            return Ground(project, baseline_of(await survey(testbed)))

    return runner.run(measure())


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tasks")


def _make(boxes: Boxes, project: Project, out: Path, count: int, **settings: int) -> Made:
    runner, provider = boxes
    order = Order(count, concurrent=2)
    return runner.run(synthesise(provider, project, bug_strategies(), Settings(**settings), order, out))


@pytest.fixture(scope="module")
def made(boxes: Boxes, project: Project, out: Path) -> Made:
    return _make(boxes, project, out, 4)


def test_tasks_stand_and_are_counted(made: Made, project: Project, out: Path) -> None:
    """As many tasks as asked for are written, each with its gold, its tests and its origin."""
    tasks = load_taskset(out)
    assert sorted(task.id for task in tasks) == sorted(made.tasks)
    assert len(made.tasks) == made.result.kept == 4
    for task in tasks:
        gold = {name.removeprefix("gold/"): file for name, file in task.solution.items() if name != "solve.sh"}
        assert {path: project.files[path] for path in gold} == gold
        assert all(task.files[path] != file for path, file in gold.items())
        assert not [path for path in task.files if path.startswith("tests/")]
        assert task.provenance["parent"] == project.digest
        assert task.provenance["license"] == "MIT"


def test_instructions_give_nothing_away(made: Made, project: Project, out: Path) -> None:
    """An instruction names no file, holds no line of the gold, and says what may be changed."""
    for task in load_taskset(out):
        broken = {path: task.files[path].data for path in project.sources}
        assert gives_away(task.instruction, repaired_lines(broken, project.files)) is None
        assert "words.py" not in task.instruction
        assert "counts.py" not in task.instruction
        assert "`pack/**`" in task.instruction


def test_a_task_is_made_again_byte_for_byte(made: Made, project: Project, out: Path) -> None:
    """Provenance and parent give the same broken files; another parent is refused."""
    for task in load_taskset(out):
        again = rebuild(project, task.provenance)
        assert {path: task.files[path].data for path in again} == again
        with pytest.raises(TaskError, match="parent"):
            rebuild(project, {**task.provenance, "parent": "0" * 64})


def test_a_second_run_goes_on(boxes: Boxes, made: Made, project: Project, out: Path) -> None:
    """A run with the same folder tries nothing again: with enough tasks nothing at all, else only what is new."""
    assert _make(boxes, project, out, 4).result.strategies == {}
    more = _make(boxes, project, out, 5)
    assert more.before == 4
    assert more.result.kept == 1
    lines = (out / ".practicum" / "synthesis.jsonl").read_text().splitlines()
    assert len(lines) == len(set(lines))
    assert len(lines) == sum(t.tried for result in (made.result, more.result) for t in result.strategies.values())


def test_what_is_made_is_not_a_matter_of_speed(boxes: Boxes, made: Made, project: Project, tmp_path: Path) -> None:
    """Another number of boxes makes the same tasks, of all strategies that can."""
    runner, provider = boxes
    alone = Order(4, concurrent=1)
    again = runner.run(synthesise(provider, project, bug_strategies(), Settings(), alone, tmp_path))
    assert again.tasks == made.tasks
    assert len({task.provenance["strategy"] for task in load_taskset(tmp_path)}) == 3


def test_sentinels_are_looked_for_once(boxes: Boxes, project: Project, tmp_path: Path) -> None:
    """Tests that get into tasks are tried under the judge, once; those that run only once are named in the task."""
    runner, provider = boxes
    once = "from pack.counts import first_over\n\nSEEN = []\n\n\ndef test_once():\n    SEEN.append(1)\n"
    once += "    if len(SEEN) > 1:\n        raise RuntimeError('run twice')\n    assert first_over(8) == 16\n"
    name = "tests/test_once.py::test_once"
    tests = {**project.tests, "tests/test_once.py": File(once.encode())}
    project = replace(project, tests=tests, test_files=(*project.test_files, "tests/test_once.py"))

    async def look() -> tuple[Survey, Survey, Survey]:
        async with open_testbed(provider, project) as testbed:
            found = await survey(testbed)
        measured = Measured(tmp_path, project.digest)
        first = await Sentinels(provider, project, found, measured).of((name, found.steady[0]))
        again = await Sentinels(provider, project, found, Measured(tmp_path, project.digest)).of((name,))
        return found, first, again

    found, first, again = runner.run(look())
    assert first.steady == tuple(sorted((name, found.steady[0])))
    assert first.unguarded == again.unguarded == (name,)
    assert len((tmp_path / ".practicum" / "baseline.jsonl").read_text().splitlines()) == 1


def test_order_depends_on_the_seed_alone(ground: Ground) -> None:
    """The same seed proposes the same candidates in the same order, another one another order."""

    def keys(seed: int) -> list[str]:
        return [each.key for each in SingleBug().candidates(ground, random.Random(seed))]

    assert keys(1) == keys(1)
    assert keys(1) != keys(2)
    assert len(set(keys(1))) == len(keys(1))


def test_a_proposer_ends_with_who_asks(ground: Ground) -> None:
    """However much it has ready, a proposer is gone at once when nobody asks any more; what was tried is left out."""
    path = "pack/words.py"
    long = File(ground.project.files[path].data + b"#" * (1 << 20) + b"\n")
    large = replace(ground, project=replace(ground.project, files={**ground.project.files, path: long}))

    async def ask() -> tuple[Candidate | None, Candidate | None]:
        async with asyncio.timeout(60), open_proposer(SingleBug(), large, 0, frozenset()) as one:
            first = (await one())[0]
            await asyncio.sleep(0.5)  # time to fill the pipe
        assert first is not None
        async with asyncio.timeout(60), open_proposer(SingleBug(), large, 0, frozenset({first.key})) as other:
            return first, (await other())[0]

    first, second = asyncio.run(ask())
    assert first is not None
    assert second is not None
    assert first.key != second.key


def test_sites_are_covered_and_spread(ground: Ground) -> None:
    """Only covered lines are changed, all functions have their turn, and no two bugs of a kind share a line."""
    places = list(Quarry(ground, random.Random(0)).draw())
    assert all(any(ground.baseline.covers(p.path, line) for line in p.site.reach) for p in places)
    assert "unused" not in {place.site.function for place in places}
    assert {"longest", "initials", "Tally.add", "Tally.share", "first_over"} <= {p.site.function for p in places[:20]}
    lines = [(place.path, place.site.line, place.site.kind) for place in places]
    assert len(set(lines)) == len(lines)
    kinds = [place.site.kind for place in places[:8]]
    assert len(set(kinds)) == 8


def test_combined_bugs_are_apart(ground: Ground) -> None:
    """Bugs of one file are in different functions, bugs of several files in different files."""
    for strategy in (SeveralBugs("same-file", apart=False), SeveralBugs("several-files", apart=True)):
        candidates = list(strategy.candidates(ground, random.Random(0)))
        assert candidates
        for candidate in candidates:
            bugs = candidate.provenance["bugs"]
            paths = {bug["path"] for bug in bugs}
            assert len(bugs) > 1
            assert len(paths) == (len(bugs) if strategy.apart else 1)
            assert strategy.apart or len({bug["function"] for bug in bugs}) == len(bugs)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("number *= 2", "number *= 1", "does not end"),
        ("return number", "return +number", "survived"),
        ("class Tally:", "class Tally(Missing):", "cannot be collected"),
        ("number = 1", "import os; os._exit(0)", "crashed"),
        ("self.counts = {}", "self.counts = None", ""),
    ],
)
def test_what_tests_say_of_a_change(boxes: Boxes, ground: Ground, old: str, new: str, reason: str) -> None:
    """A change is kept only where single tests fail by themselves: not by the clock, a crash or an import."""
    runner, provider = boxes
    changed = FILES["pack/counts.py"].replace(old, new)
    assert changed != FILES["pack/counts.py"]
    lines = {"pack/counts.py": frozenset(range(1, 40))}

    async def attempt() -> Trial | Refusal:
        async with open_testbed(provider, ground.project) as testbed:
            bench = Workbench(ground, testbed, Settings(), {})
            return await bench.trial({"pack/counts.py": changed.encode()}, lines, lines)

    found = runner.run(attempt())
    if reason:
        assert isinstance(found, Refusal)
        assert found.reason == reason
    else:
        assert isinstance(found, Trial)
        share = ("tests/test_counts.py::TallyTest::test_nothing_counted", "tests/test_counts.py::TallyTest::test_share")
        assert set(found.failing) <= set(share)
        assert len(found.failing) + len(found.passing) == 7  # those that come nowhere near it included


def test_too_much_failing_is_no_task(boxes: Boxes, ground: Ground) -> None:
    """A change that fails more of the suite than is allowed is refused."""
    runner, provider = boxes
    changes = {"pack/counts.py": FILES["pack/counts.py"].replace("return number", "return None").encode()}
    lines = {"pack/counts.py": frozenset(range(1, 40))}

    async def attempt() -> Trial | Refusal:
        async with open_testbed(provider, ground.project) as testbed:
            bench = Workbench(ground, testbed, Settings(most_failing=0.1), {})
            return await bench.trial(changes, lines, lines)

    found = runner.run(attempt())
    assert isinstance(found, Refusal)
    assert (found.reason, found.killed) == ("fails too many tests", True)


def test_visible_tests_are_cut_out(boxes: Boxes, project: Project, tmp_path: Path) -> None:
    """With `visible`, the agent has that many failing tests and none of the others."""
    _make(boxes, project, tmp_path, 1, visible=1)
    for task in load_taskset(tmp_path):
        (shown,) = task.verification.visible
        text = task.files[shown].data.decode()
        assert text.count("def test_") == 1
        assert any(name.rpartition("::")[2] in text for name in task.verification.fail_to_pass)
        assert f"pytest {shown}" in task.instruction


def _report(ground: Ground, messages: dict[str, str]) -> str | Refusal:
    bugs = [{"path": "pack/words.py", "function": "_inner", "mutator": "operator"}]
    broken = {"pack/words.py": FILES["pack/words.py"].replace("best = word", "pass").encode()}
    candidate = Candidate("single-bug", "operators", broken, {}, {"bugs": bugs})
    failing = tuple(sorted(messages))
    return bug_report(ground, candidate, Trial(failing, (), messages), (), Settings())


def test_report_keeps_the_place_to_itself(ground: Ground) -> None:
    """A message that names the changed function or file is not quoted; what it compares otherwise is."""
    text = _report(
        ground,
        {
            "tests/test_words.py::test_longest_word": "AssertionError: assert None == 'abcd'",
            "tests/test_words.py::test_initials": "TypeError: _inner() takes 1 argument",
        },
    )
    assert isinstance(text, str)
    assert "None == 'abcd'" in text
    assert "longest word" in text
    assert "_inner" not in text
    assert "`TypeError`" in text


def test_missing_names_make_no_task(ground: Ground) -> None:
    """A bug that Python itself names is refused."""
    found = _report(ground, {"tests/test_words.py::test_initials": "NameError: name 'x' is not defined"})
    assert found == Refusal("breaks by a missing name", killed=True)
