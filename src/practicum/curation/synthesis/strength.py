"""Whether the tests of a task tell its gold from wrong variants of it, asked before the task is written.

Owns: `weakness`, `is_killed`, `wrong_variants_of`.
Invariant: variants are drawn by the function by which the gate `mutants` draws, and held to its share, yet under a seed
of their own and without the parts that any test would miss: so the gate still finds out by itself. Only tests that
reach the changed function are run, and no clock decides: a busy host makes the same tasks.
Must not know: strategies, what becomes of the task.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from practicum.curation.gates.contract import Settings
from practicum.curation.synthesis.strategy import Bench, Candidate, Refusal
from practicum.verification.redteam.mutants import mutants_of
from practicum.verification.redteam.variants import Source, source_of

REASON = "tests too weak"
_ASKED = Settings()
_TRIES = 2


@dataclass(frozen=True, slots=True)
class WrongVariant:
    """The gold's file `path` with one mistake, in the function at `lines` (1-based, of the file as it is)."""

    name: str
    path: str
    data: bytes
    lines: range


async def weakness(bench: Bench, candidate: Candidate, ids: Sequence[str]) -> Refusal | None:
    """Why the tests `ids` are too weak to judge the repair of `candidate`, or None.

    It ends as soon as the answer is known.
    """
    project = bench.ground.project
    sources = []
    for path in sorted(candidate.changes):
        source = source_of(candidate.changes[path] or b"", project.files[path].data)
        if source is not None:
            sources.append((path, source))
    wrong: list[WrongVariant] = []
    for number, (path, source) in enumerate(sources):
        share = (_ASKED.mutants + len(sources) - 1 - number) // len(sources)
        wrong += wrong_variants_of(path, source, share, f"{candidate.key}-{bench.settings.seed}-{path}")
    if len(wrong) < _ASKED.min_mutants:
        return Refusal(REASON, f"only {len(wrong)} wrong variants of the gold can be made", killed=True)
    needed, killed = math.ceil(_ASKED.kill_rate * len(wrong)), 0
    for tried, each in enumerate(wrong, 1):
        killed += await is_killed(bench, each, ids)
        if killed >= needed:
            return None
        if killed + len(wrong) - tried < needed:
            return Refusal(REASON, f"{killed} of {tried} wrong variants fail, of {len(wrong)}", killed=True)
    raise AssertionError("unreachable")


async def is_killed(bench: Bench, wrong: WrongVariant, ids: Sequence[str]) -> bool:
    """Whether one of `ids` fails by itself. Who is out of time gets it once more, and is not killed by that."""
    reaching = set(bench.ground.baseline.reaching({wrong.path: wrong.lines}))
    asked = [name for name in ids if name in reaching]
    if not asked:
        return False
    for _ in range(_TRIES):
        run = await bench.run({wrong.path: wrong.data}, asked, phase="wrong variants")
        if run.ended != "timeout":
            return run.ended != "done" or bool(run.failed)
        if "failed" in run.outcomes.values():  # before the time was over: what did not come to run is an error
            return True
    return False


def wrong_variants_of(path: str, source: Source, count: int, seed: str) -> Iterator[WrongVariant]:
    """At most `count` of them. Pure."""
    places = [_lines(node) for node in source.functions(source.tree())]
    for mutant in mutants_of(source, count, seed):
        # not all that can be changed knows its line, a case of `match` does not
        lines = next((place for place in places if mutant.line in place), range(places[0].start, places[-1].stop))
        yield WrongVariant(mutant.name, path, mutant.text.encode(), lines)


def _lines(node: ast.FunctionDef) -> range:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return range(first, (node.end_lineno or node.lineno) + 1)
