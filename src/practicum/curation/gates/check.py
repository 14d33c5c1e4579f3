"""A whole task set through the gates.

Owns: `check_set`, `unreadable`. Invariant: every task gets one assessment, in the order of ids; which of several alike
tasks stays does not depend on which was done first. Must not know: who prints the outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from practicum.curation.gates.cache import Cache
from practicum.curation.gates.contract import (
    Bench,
    Case,
    NotAssessed,
    Settings,
    Surroundings,
    together,
    unassessed,
)
from practicum.curation.gates.ladder import LADDER, chosen, climb, decide, descend
from practicum.curation.gates.schema import GATE as SCHEMA
from practicum.records.assessment import Assessment, GateResult
from practicum.records.task import Task

_AT_ONCE = 8
"""Tasks under way: enough that some have work for the permits while others are being read."""

OnResult = Callable[[GateResult], None]
OnDone = Callable[[Case], None]


async def check_set(
    bench: Bench,
    tasks: Sequence[Task],
    settings: Settings,
    *,
    gates: Collection[str] = (),
    cache: Cache | None = None,
    around: Surroundings | None = None,
    on_result: OnResult | None = None,
    on_done: OnDone | None = None,
) -> list[Assessment]:
    """What is found and decided on each of `tasks`, by the gates named (all, where none is) and those they need.

    `on_result` is told of each gate that looks at a task alone, `on_done` of each task that all of these have seen.
    Raises `ConfigError` for an unknown gate, and `StoreError` where results cannot be kept.
    """
    wanted, kept = chosen(gates), cache or Cache()
    around = around or Surroundings(tasks)
    slots = asyncio.Semaphore(_AT_ONCE)
    cases = [Case(task, bench, settings, around) for task in sorted(tasks, key=lambda task: task.id)]

    async def one(case: Case) -> None:
        async with slots:
            await climb(case, wanted, kept, on_result, to_decide=not gates)
            case.forget()
        if on_done is not None:
            on_done(case)

    await together(one(case) for case in cases)
    return [await _assessed(case, wanted) for case in cases]


async def _assessed(case: Case, wanted: Collection[str]) -> Assessment:
    await descend(case, wanted)
    decision, reason = decide(case.results)
    if all(result.passed for name, result in case.results.items() if name in wanted):
        case.around.kept.add(case.task.id)
    return Assessment(case.task.id, case.task.digest, case.task.content, decision, reason, dict(case.results))


def unreadable(folder: str, reason: str) -> Assessment:
    """The assessment of a directory that is no task: rejected by the gate `schema`. It has no digests. Pure."""
    results = {gate.name: unassessed(gate, NotAssessed("there is no task to ask about")) for gate in LADDER}
    evidence = {"folder": folder, "problems": [reason]}
    results[SCHEMA.name] = GateResult(SCHEMA.name, False, reason, evidence, version=SCHEMA.version)
    decision, why = decide(results)
    return Assessment(folder, "", "", decision, why, results)
