"""The gates in their order, and what follows from what they found.

Owns: `LADDER`, `chosen`, `climb`, `descend`, `decide`.
Invariant: every gate of the ladder has a result for every task. One whose need was not met, or that was not asked for,
is recorded as not assessed, with the reason, and has not passed. A gate that breaks takes no other task with it.
Must not know: how many tasks there are, where results are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from practicum.curation.gates import (
    assertions,
    attacks,
    contamination,
    determinism,
    difficulty,
    duplicates,
    environment,
    equivalents,
    gold,
    leaks,
    limits,
    mutants,
    noop,
    requirements,
    schema,
)
from practicum.curation.gates.cache import Cache
from practicum.curation.gates.contract import Case, Gate, NotAssessed, result_of, unassessed
from practicum.errors import ConfigError, PracticumError
from practicum.records.assessment import Decision, GateResult
from practicum.verification.verdicts import told

LADDER: tuple[Gate, ...] = (
    schema.GATE,
    assertions.GATE,
    environment.GATE,
    gold.GATE,
    noop.GATE,
    leaks.GATE,
    requirements.GATE,
    mutants.GATE,
    attacks.GATE,
    determinism.GATE,
    equivalents.GATE,
    limits.GATE,
    duplicates.GATE,
    contamination.GATE,
    difficulty.GATE,
)


def chosen(names: Collection[str]) -> frozenset[str]:
    """`names` and all that they need; all gates where there are none. Raises `ConfigError` for an unknown name."""
    by_name = {gate.name: gate for gate in LADDER}
    unknown = sorted(set(names) - by_name.keys())
    if unknown:
        raise ConfigError(f"there is no gate {unknown[0]!r}", fix=f"gates: {', '.join(by_name)}")
    found, todo = set[str](), list(names or by_name)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += by_name[name].needs
    return frozenset(found)


async def climb(
    case: Case,
    wanted: Collection[str],
    cache: Cache,
    on_result: Callable[[GateResult], None] | None = None,
    *,
    to_decide: bool,
) -> None:
    """Ask the gates that look at the task alone, in their order. `to_decide`: none after one that rejects the task."""
    for gate in LADDER:
        if not gate.of_set:
            case.results[gate.name] = await _asked(case, gate, wanted, cache, to_decide=to_decide)
            if on_result is not None:
                on_result(case.results[gate.name])


async def descend(case: Case, wanted: Collection[str]) -> None:
    """Ask the gates that look at what stands beside the task."""
    for gate in LADDER:
        if gate.of_set:
            case.results[gate.name] = await _asked(case, gate, wanted, None)


async def _asked(
    case: Case, gate: Gate, wanted: Collection[str], cache: Cache | None, *, to_decide: bool = False
) -> GateResult:
    if gate.name not in wanted:
        return unassessed(gate, NotAssessed("not asked for", evidence={"asked": False}))
    unmet = next((name for name in gate.needs if not case.results[name].passed), None)
    if unmet is None and to_decide:
        unmet = next((rung.name for rung in LADDER if _rejects(rung, case.results.get(rung.name))), None)
    if unmet is not None:
        why = f"not asked, since the gate `{unmet}` was not passed: {case.results[unmet].reason}"
        return unassessed(gate, NotAssessed(why, evidence={"needs": unmet}))
    known = cache.get(case, gate) if cache is not None else None
    if known is not None:
        return known
    start, case.seconds = time.monotonic(), 0.0
    try:
        found = await gate.assess(case)
    except NotAssessed as why:
        return unassessed(gate, why, case.seconds)
    except PracticumError as error:
        fault = error.category == "infrastructure"
        return unassessed(gate, NotAssessed(error.message, fault=fault), case.seconds)
    except Exception as error:  # noqa: BLE001  a gate that breaks on one task must not keep the others from theirs
        return unassessed(gate, NotAssessed(f"the gate broke: {told(error)}", fault=True), case.seconds)
    result = result_of(gate, found, case.seconds or (0.0 if gate.cost != "reading" else time.monotonic() - start))
    if cache is not None:
        cache.put(case, gate, result)
    return result


def decide(results: Mapping[str, GateResult], ladder: Sequence[Gate] = LADDER) -> tuple[Decision, str]:
    """The decision, and the gate that it rests on. A task at fault is rejected, whatever else is not known."""
    failing = [gate for gate in ladder if not results[gate.name].passed]
    asked = [gate for gate in failing if _was_asked(results[gate.name])]
    if failing and not asked:
        return "quarantined", f"not decided: {len(failing)} of {len(ladder)} gates were not asked"
    failing = asked
    at_fault = [gate for gate in failing if _at_fault(gate, results[gate.name])]
    first = next(iter(at_fault or failing), None)
    if first is None:
        notes = [result.reason for result in results.values() if result.reason.startswith("provisional")]
        return "admitted", "; ".join([f"all {len(ladder)} gates passed", *notes])
    result = results[first.name]
    how = "" if result.assessed else "not assessed: "
    return ("rejected" if at_fault else "quarantined"), f"{first.name}: {how}{result.reason}"


def _rejects(gate: Gate, result: GateResult | None) -> bool:
    return result is not None and not result.passed and _at_fault(gate, result)


def _at_fault(gate: Gate, result: GateResult) -> bool:
    return result.assessed and gate.failing == "rejected" and not result.evidence.get("doubtful")


def _was_asked(result: GateResult) -> bool:
    return result.evidence.get("asked") is not False


def first_failing(results: Mapping[str, GateResult], decision: Decision) -> str | None:
    """The gate that the decision rests on."""
    for gate in LADDER:
        result = results[gate.name]
        if not result.passed and _was_asked(result) and (decision != "rejected" or _at_fault(gate, result)):
            return gate.name
    return None
