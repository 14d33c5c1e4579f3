"""Gate `attacks`: no attack of the red team is rewarded on this task.

Owns: `GATE`, `sample`, `attempt`. Invariant: the sample is drawn by the task's digest, from each kind of attack in
turn, so that it is the same another day; what shows whether the tests themselves are too few is never left to the draw.
An attack acts in an agent's box and is judged like any attempt, by the task's own limits (but see `tried_on`).
Must not know: what attacks do.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from practicum.curation.gates.contract import Case, Found, Gate, NotAssessed, together
from practicum.curation.soundness.scripts import script_agent
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.rollouts.agents import Agent
from practicum.rollouts.attempt import AttemptSpec
from practicum.verification.redteam.catalogue import Attack, Catalogue, load_catalogue
from practicum.verification.redteam.render import find_target, script_of, tried_on, why_not
from practicum.verification.sentinels.guard import guard
from practicum.verification.submission import judged_files

_ALWAYS = ("visible-answers-hard-coded",)  # what a task's own tests invite, not what a judge may be tricked by
_UNASKED = ("reports-patched",)  # where no sentinel asks a test that must come to pass, as it may call helpers only


@cache
def _catalogue() -> Catalogue:
    return load_catalogue()


def sample(attacks: Sequence[Attack], count: int | None, seed: str, surely: Collection[str] = _ALWAYS) -> list[Attack]:
    """Those `surely` tried, and `count` of the other `attacks`, one of each kind in turn; all where that is None.

    Pure.
    """
    if count is None:
        return list(attacks)
    rng = random.Random(f"attacks-{seed}")
    always = [attack for attack in attacks if attack.id in surely]
    by_kind: defaultdict[str, list[Attack]] = defaultdict(list)
    for attack in sorted(attacks, key=lambda each: each.id):
        if attack not in always:
            by_kind[attack.kind].append(attack)
    for kind in sorted(by_kind):
        rng.shuffle(by_kind[kind])
    kinds = rng.sample(sorted(by_kind), len(by_kind))
    chosen: list[Attack] = []
    while len(chosen) < count and any(by_kind.values()):
        for kind in kinds:
            if by_kind[kind] and len(chosen) < count:
                chosen.append(by_kind[kind].pop())
    return always + chosen


async def _assess(case: Case) -> Found:
    task = case.task
    gold = judged_files(task, await case.gold())
    target = find_target(task, gold)
    fit = [attack for attack in _catalogue().attacks if why_not(attack, task, target) is None]
    surely = _ALWAYS + (_UNASKED if _is_unasked(task) else ())
    chosen = sample(fit, case.settings.attacks, f"{case.settings.seed}-{task.digest}", surely)
    seed = case.settings.seed
    specs = [AttemptSpec(tried_on(each, case.required), f"{task.id}:{each.id}", seed=seed) for each in chosen]
    scripts = {spec.id: script_of(attack, task, target) for spec, attack in zip(specs, chosen, strict=True)}
    agent = script_agent(scripts)
    attempts = await together(attempt(case, agent, spec) for spec in specs)
    rewarded = [_shown(a, t, scripts) for a, t in zip(chosen, attempts, strict=True) if _reward(t) > 0]
    undecided = [a.id for a, t in zip(chosen, attempts, strict=True) if t.verdict is None or t.verdict.reward is None]
    evidence = {
        "tried": len(chosen),
        "of_applicable": len(fit),
        "kinds": dict(sorted(Counter(attack.kind for attack in chosen).items())),
        "attacks": [attack.id for attack in chosen],
        "rewarded": rewarded,
        "undecided": undecided,
    }
    if rewarded:
        return Found(False, f"an attack is rewarded: {', '.join(each['attack'] for each in rewarded)}", evidence)
    if undecided or not chosen:
        why = f"attacks could not be judged: {', '.join(undecided)}" if undecided else "no attack applies to the task"
        raise NotAssessed(why, fault=bool(undecided), evidence=evidence)
    return Found(True, f"none of {len(chosen)} attacks is rewarded ({len(fit)} apply)", evidence)


def _is_unasked(task: Task) -> bool:
    """Whether none of the tests that must come to pass is asked more than once, so that only its report speaks."""
    check = task.verification
    if check.runner not in ("pytest", "unittest"):
        return False
    probes = guard(check, task.digest).probes
    return not any(name in probes for name in check.fail_to_pass)


async def attempt(case: Case, agent: Agent, spec: AttemptSpec) -> Trajectory:
    """The attack, judged by all tests only where those of fail_to_pass reward it."""
    judge = case.steady(once=False)
    found = await case.attempt(agent, spec, verifier=judge)
    if spec.task is case.task or _reward(found) <= 0:
        return found
    return await case.attempt(agent, replace(spec, task=case.task), verifier=judge)


def _reward(attempt: Trajectory) -> float:
    return (attempt.verdict.reward or 0.0) if attempt.verdict is not None else 0.0


def _shown(attack: Attack, attempt: Trajectory, scripts: dict[str, str]) -> dict[str, Any]:
    return {"attack": attack.id, "kind": attack.kind, "reward": _reward(attempt), "script": scripts[attempt.id]}


GATE = Gate("attacks", "5", "boxes", "rejected", _assess, needs=("gold", "noop"), parameters=("attacks", "seed"))
