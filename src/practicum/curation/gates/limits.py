"""Gate `limits`: what the task allows is enough for its gold, with a margin.

Owns: `GATE`, `cut_down`. Invariant: the margin is proven by running, not by reading a meter: the gold passes with that
share of each limit. Where it does not, each limit is cut alone to name the one that is too tight.
Must not know: how limits are enforced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from practicum.curation.gates.contract import Case, Found, Gate, brief
from practicum.records.task import Task

_LEAST_PIDS = 16

Cut = Callable[[Task, float], Task]


def _memory(task: Task, share: float) -> Task:
    return replace(task, limits=replace(task.limits, memory_bytes=int(task.limits.memory_bytes * share)))


def _disk(task: Task, share: float) -> Task:
    return replace(task, limits=replace(task.limits, disk_bytes=int(task.limits.disk_bytes * share)))


def _pids(task: Task, share: float) -> Task:
    return replace(task, limits=replace(task.limits, pids=max(_LEAST_PIDS, int(task.limits.pids * share))))


def _tests_time(task: Task, share: float) -> Task:
    limits = replace(task.limits, command_s=task.limits.command_s * share)
    return replace(
        task, limits=limits, verification=replace(task.verification, timeout_s=task.verification.timeout_s * share)
    )


CUTS: dict[str, Cut] = {"memory_bytes": _memory, "disk_bytes": _disk, "pids": _pids, "timeout_s": _tests_time}


def cut_down(task: Task, share: float) -> Task:
    """The task with that share of each limit."""
    for cut in CUTS.values():
        task = cut(task, share)
    return task


async def _assess(case: Case) -> Found:
    task, share = case.task, case.settings.margin
    gold = await case.gold()
    attempt = await case.gold_attempt()
    acted_s = max((turn.timing.get("act", 0.0) for turn in attempt.turns), default=0.0)
    less, judge = cut_down(task, share), case.steady(judge=case.bench.fresh)
    verdict = case.cut_verdict or await case.judge(gold, verifier=judge, task=less, right=True)
    evidence: dict[str, Any] = {
        "share_of_each_limit": share,
        "gold_command_s": round(acted_s, 3),
        "of_command_s": task.limits.command_s,
        "tests_s": verdict.evidence.get("seconds", {}).get("tests"),
        "of_timeout_s": task.verification.timeout_s,
        "of_memory_bytes": task.limits.memory_bytes,
        "verdict": brief(verdict),
    }
    if acted_s > share * task.limits.command_s:
        return Found(False, f"the gold's command takes {acted_s:.1f} of {task.limits.command_s:g} s", evidence)
    if verdict.passed:
        return Found(True, f"the gold passes with {share:.0%} of each limit", evidence)
    tight: list[str] = []
    for name, cut in CUTS.items():
        alone = await case.judge(gold, verifier=judge, task=cut(task, share), right=True)
        if not alone.passed:
            tight.append(name)
    if not tight and (await case.judge(gold, verifier=judge, task=less, right=True)).passed:
        return Found(True, f"the gold passes with {share:.0%} of each limit, at the second try", evidence)
    evidence["tight"] = tight
    named = ", ".join(tight) or "them together"
    return Found(False, f"the gold does not pass with {share:.0%} of the limits: {named} too tight", evidence)


GATE = Gate("limits", "1", "boxes", "rejected", _assess, needs=("gold",), parameters=("margin",))
