"""Tasks to write tests: what is handed in must accept what is right and catch what is wrong.

Owns: `TestWriting`, `NAME`, `TARGET`.
Invariant: each mutant of a task was caught by the project's own tests, and each right variant accepted by them, in a
file of their own; those tests are the gold. How a submission is judged, which cheats are closed to it and which are
not, says `verification.runners.variants`.
Must not know: how the runner works, how candidates are scheduled.
"""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from practicum.curation.projects.building import limits_of, solution_of, timeout_of
from practicum.curation.projects.project import Project
from practicum.curation.projects.suiterun import SuiteRun
from practicum.curation.synthesis.disguise import Wrong, right_variants, wrong_variants
from practicum.curation.synthesis.excerpts import shown_tests
from practicum.curation.synthesis.strategy import Bench, Candidate, Ground, Refusal
from practicum.records.task import Task, Verification
from practicum.records.tree import File
from practicum.verification.redteam.scopes import unsafe
from practicum.verification.redteam.variants import Source, named_functions, parse

NAME = "test-writing"
TARGET = "test_written.py"
_LEAST_LINES = 4  # of a function that is worth a test
_RIGHT, _LEAST_RIGHT = 3, 2  # equivalents; each judgement runs all tests on every variant, so there are few
_TRIED, _LEAST, _MOST = 12, 4, 6  # mutants that are tried, and of a task
_GOLD_S, _GOLD_TESTS = 0.5, 40
_START = 2.5  # times what a suite has, since each trial starts an interpreter of its own


@dataclass(frozen=True, slots=True)
class TestWriting:
    """Functions of one file to write tests for."""

    name: str = NAME
    version: str = "4"
    __test__ = False  # for pytest: no class of tests

    def candidates(self, ground: Ground, rng: random.Random) -> Iterator[Candidate]:
        """One to three functions of a file, each of them once; files take turns."""
        left = {path: _functions(ground, path) for path in ground.project.sources}
        for names in left.values():
            rng.shuffle(names)
        while any(left.values()):
            for path in sorted(left):
                taken = [left[path].pop() for _ in range(min(rng.choice((1, 1, 2, 3)), len(left[path])))]
                if taken:
                    yield _candidate(self, ground.project, path, sorted(taken))

    async def realise(self, bench: Bench, candidate: Candidate) -> Task | Refusal:
        """Find the project's tests of these functions, and the mutants that they catch by themselves."""
        project, path = bench.ground.project, str(candidate.provenance["path"])
        source = Source(project.text(path), tuple(candidate.provenance["functions"]))
        ids = _tests(bench, candidate)
        gold = _gold(project, ids)
        if gold is None or any(isinstance(n, ast.ImportFrom) and n.level for n in ast.walk(ast.parse(gold))):
            return Refusal("its tests cannot be cut out")
        seed = f"{candidate.key}-{bench.settings.seed}"
        # not in a thread: Python 3.11 cannot parse in two at once
        rights, wrongs = right_variants(source, _RIGHT, seed), wrong_variants(source, _TRIED, seed)
        return await _made(bench, candidate, source.text, gold, rights, wrongs)


def _plain(wrong: Wrong) -> bool:
    """Whether any test at all would catch it."""
    return "return: nothing" in wrong.name


def _weak(caught: Sequence[Wrong], tried: int) -> Refusal | None:
    """Why these mutants ask for too little."""
    if len({wrong.text for wrong in caught}) < _LEAST:
        return Refusal("survived", f"{len(caught)} of {tried} mutants are caught")
    if 2 * sum(map(_plain, caught[:_MOST])) > len(caught[:_MOST]):
        return Refusal("its mutants are too plain", f"most of {len(caught)} return nothing", killed=True)
    return None


def _functions(ground: Ground, path: str) -> list[str]:
    """Functions of a source that tests reach and that can be rewritten."""
    text = ground.project.text(path)
    covered = ground.baseline.reach.get(path, {})
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [
        name
        for name, node in named_functions(tree)
        if (node.end_lineno or node.lineno) - node.lineno >= _LEAST_LINES
        and any(covered.get(line) for line in _body(node))
        and not unsafe(node)
    ]


def _body(node: ast.FunctionDef) -> range:
    return range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)


def _candidate(strategy: TestWriting, project: Project, path: str, names: Sequence[str]) -> Candidate:
    nodes = dict(named_functions(parse(project.text(path))))
    lines = frozenset(line for name in names for line in _body(nodes[name]))
    provenance = {"strategy_version": strategy.version, "path": path, "functions": list(names)}
    return Candidate(NAME, NAME, {}, {path: lines}, provenance)


def _tests(bench: Bench, candidate: Candidate) -> tuple[str, ...]:
    """The tests of the one test file that reaches most of it."""
    by_file: dict[str, list[str]] = {}
    for name in bench.ground.baseline.reaching(candidate.reach):
        by_file.setdefault(name.partition("::")[0], []).append(name)
    if not by_file:
        return ()
    file = max(sorted(by_file), key=lambda name: len(by_file[name]))
    return bench.ground.baseline.within(by_file[file], _GOLD_S, _GOLD_TESTS)


def _gold(project: Project, ids: Sequence[str]) -> bytes | None:
    """One file with these tests and nothing but them."""
    made, _ = shown_tests(project, ids) if ids else ({}, ())
    return next(iter(made.values())).data if len(made) == 1 else None


async def _made(
    bench: Bench, candidate: Candidate, original: str, gold: bytes, rights: Sequence[str], wrongs: Sequence[Wrong]
) -> Task | Refusal:
    """The task, once its gold was seen to do its work alone: no other test file, helper or conftest beside it."""
    project, path = bench.ground.project, str(candidate.provenance["path"])
    alone: dict[str, bytes | None] = dict.fromkeys(project.tests) | {TARGET: gold}
    ids = [f"{TARGET}::{name.partition('::')[2]}" for name in _tests(bench, candidate)]

    async def run(text: str, phase: str) -> SuiteRun:
        return await bench.run({path: text.encode()}, ids, tests=alone, phase=phase)

    texts = {"original": original} | {f"equivalent-{n}": text for n, text in enumerate(rights, 1)}
    for name, text in list(texts.items()):
        seen = await run(text, "frozen tests")
        if seen.ended != "done" or seen.passed != set(ids):
            if name == "original":
                return Refusal("its tests depend on others", next(iter(seen.messages.values()), seen.ended))
            del texts[name]  # what looks at its own source, or is slower so
    if len(texts) < 1 + _LEAST_RIGHT:
        return Refusal("its rewrites do not pass")
    told: list[tuple[int, Wrong]] = []
    tried = 0
    for tried, wrong in enumerate(wrongs, 1):
        if count := _failing(await run(wrong.text, "mutants")):
            told.append((count, wrong))
        left = len(wrongs) - tried
        if len(told) + left < _LEAST or sum(not _plain(each) for _, each in told) == _MOST:
            break
    # what few tests notice first: what fails all of them is no great find
    caught = [wrong for _, wrong in sorted(told, key=lambda pair: (_plain(pair[1]), pair[0]))]
    if (weak := _weak(caught, tried)) is not None:
        return weak
    kept = caught[:_MOST]
    texts |= {f"mutant-{n}": wrong.text for n, wrong in enumerate(kept, 1)}
    return _task(bench, candidate, gold, texts, ids, kept)


def _failing(run: SuiteRun) -> int:
    """How many tests fail, by themselves and not by the clock."""
    return len(run.failed) if run.ended == "done" and run.seconds else 0


def _task(
    bench: Bench,
    candidate: Candidate,
    gold: bytes,
    texts: Mapping[str, str],
    ids: Sequence[str],
    wrongs: Sequence[Wrong],
) -> Task | Refusal:
    project, path = bench.ground.project, str(candidate.provenance["path"])
    if TARGET in project.files:
        return Refusal("cannot be written as a task", f"the project has a {TARGET}")
    tests = {f"{name}/{path}": File(text.encode()) for name, text in texts.items()}
    seconds = dict(zip(ids, map(bench.ground.baseline.seconds.get, _tests(bench, candidate)), strict=True))
    provenance: dict[str, Any] = {
        "generator": "practicum tasks synth",
        "strategy": NAME,
        "kind": NAME,
        "seed": bench.settings.seed,
        "candidate": candidate.key,
        **candidate.provenance,
        "mutants": [wrong.name for wrong in wrongs],
        "project": project.name,
        "project_version": project.version,
        "license": project.licence,
        "origin": dict(project.origin),
        "parent": project.digest,
    }
    return Task(
        id=f"{project.name}-{candidate.key[:12]}",
        instruction=_instruction(project, candidate, gold, len(wrongs)),
        files=project.files,
        verification=Verification(
            runner="variants",
            tests=tests,
            files=tuple(sorted(tests)),
            fail_to_pass=tuple(texts),
            timeout_s=_START * timeout_of(ids, {name: took or 0.05 for name, took in seconds.items()}),
        ),
        layer=project.layer,
        editable=(TARGET,),
        limits=limits_of(project.files),
        solution=solution_of({TARGET: gold}, project.files),
        domain=NAME,
        provenance=provenance,
    )


_ASKS = (
    "Write tests for {what} of `{module}` in a new file `{target}`.",
    "`{module}` lacks tests for {what}. Write them, in `{target}`.",
    "Put tests of {what} (in `{module}`) into the new file `{target}`.",
)


def _packages(project: Project, gold: bytes) -> str:
    """What the project's own tests import beside it, in words."""
    tree = parse(gold.decode())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    own = {project.module(path).partition(".")[0] for path in project.sources} | {"pytest"}
    others = sorted({name.partition(".")[0] for name in names} - own - sys.stdlib_module_names)
    listed = ", ".join(["pytest", *(f"`{name}`" for name in others)])
    return f"{listed} and the standard library"


def _instruction(project: Project, candidate: Candidate, gold: bytes, count: int) -> str:
    rng = random.Random(candidate.key)
    path = str(candidate.provenance["path"])
    names = [f"`{name}`" for name in candidate.provenance["functions"]]
    what = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    paths = ":".join(root or "." for root in project.roots)
    return f"""\
{rng.choice(_ASKS).format(what=what, module=project.module(path), target=TARGET)}

What the code does now (see `{path}`) is right. Your tests are tried on it and on rewrites of it that do the same
under other local names and in another form; there they must all pass. Then they are tried on {count} variants with one
mistake each in what you test; in each of these at least one test has to fail. Mistakes are of the common kind: a wrong
operator, boundary, constant or condition, a missing step, swapped arguments.

So test results and errors, at edges and for odd inputs too, and not how the code is written: its text, names and lines
differ from variant to variant. Only `{TARGET}` is taken over; it may use {_packages(project, gold)}. Run it with
`PYTHONPATH={paths} python -m pytest {TARGET}`. All tests together have a few seconds.
"""
