"""Where the time of a batch went, how old its tokens were, and what bounded the rate.

Owns: `episode_account`, `coarse`, `tokens_account`, `staleness_of`, `figures`.
Invariant: each episode was in one state at a time, so the shares of a batch sum to 1; what nobody measured is told as
`start`, never spread over the rest.
Must not know: how any of it was measured. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from practicum.config import RunConfig
from practicum.records.trajectory import Trajectory
from practicum.rollouts.collector import SPARE
from practicum.scheduling.bound import Plant, Work, throughput_bound
from practicum.scheduling.identity import Account, Effective

_STATES = {
    "wait_place": "wait_place",
    "lease": "lease",
    "generate": "generate",
    "act": "act",
    "snapshot": "record",
    "collect": "submit",
    "close": "submit",
    "wait_backlog": "wait_judge",
    "verify": "verify",
}


_COARSE = {
    "generate": ("generate",),
    "act": ("lease", "start", "act", "record", "submit"),
    "verify": ("verify",),
    "wait": ("wait_place", "wait_judge"),
    "given up": ("retry",),
}


def coarse(shares: Mapping[str, float]) -> dict[str, float]:
    """`shares` of an account of episodes in few words, those that are nothing left out."""
    found = {words: sum(shares.get(state, 0.0) for state in states) for words, states in _COARSE.items()}
    return {words: share for words, share in found.items() if share > 0}


def episode_account(trajectories: Iterable[Trajectory]) -> Account:
    """Episode-seconds by state (`scheduling.identity`). What an attempt that was given up spent is `retry`."""
    account = Account()
    for trajectory in trajectories:
        cost = trajectory.cost
        spent = dict.fromkeys(_STATES.values(), 0.0)
        for name, state in _STATES.items():
            spent[state] += cost.get(f"{name}_s", 0.0)
        left = cost.get("total_s", 0.0) - sum(spent.values())
        spent["start"] = max(0.0, left)
        if trajectory.stop_reason == "cancelled":
            spent = {"retry": sum(spent.values())}
        for state, seconds in spent.items():
            if seconds:
                account.add(state, seconds)
    return account


def tokens_account(trajectories: Iterable[Trajectory], trained: Collection[str]) -> Effective:
    """Sampled tokens that ended in training (in attempts of `trained`), and why the others did not."""
    effective = Effective()
    for trajectory in trajectories:
        tokens = sum(len(turn.sampled_ids) for turn in trajectory.turns)
        lost = None if trajectory.id in trained else "no signal" if trajectory.reward is not None else "masked"
        effective.add(tokens, lost=lost)
    return effective


def staleness_of(batch: int, trajectories: Iterable[Trajectory]) -> dict[str, int]:
    """How many sampled tokens were so many versions old when batch number `batch` trained them: a histogram."""
    found: Counter[int] = Counter()
    for trajectory in trajectories:
        for turn in trajectory.turns:
            found[batch - turn.policy_version] += len(turn.sampled_ids)
    return {str(age): found[age] for age in sorted(found)}


def figures(
    config: RunConfig,
    batch: int,
    trajectories: Sequence[Trajectory],
    trained: Collection[str],
    *,
    seconds: float,
    update_s: float,
    queues: Mapping[str, Any],
) -> dict[str, Any]:
    """What a metrics row says of one batch that took `seconds`; `update_s` of them went into the update alone."""
    found: dict[str, Any] = {
        "episode_time": episode_account(trajectories).shares(),
        "tokens_used": tokens_account(trajectories, trained).to_json(),
        "staleness_tokens": staleness_of(batch, trajectories),
        "queues": dict(queues),
    }
    given_up = [t.cost["total_s"] for t in trajectories if t.fault is not None and t.fault.kind == SPARE]
    if given_up:  # the first to end are the short ones: told, so that nobody takes them for a fair sample
        kept = [t.cost["total_s"] for t in trajectories if t.fault is None]
        found["spares"] = {"given_up": len(given_up), "given_up_s": _mean(given_up), "kept_s": _mean(kept)}
    work = _work([t for t in trajectories if t.turns and t.fault is None])
    if work is not None and seconds > 0:
        rollout, sandbox = config.rollout, config.sandbox
        plant = Plant(
            per_update=rollout.tasks_per_update * rollout.group_size,
            update_s=update_s,
            max_staleness=rollout.max_staleness,
            boxes=sandbox.max_concurrent,
            verifiers=sandbox.verify_concurrent,
        )
        bound = throughput_bound(work, plant)
        achieved = len(trajectories) / seconds
        found["bound"] = {**bound.to_json(), "achieved_per_s": achieved, "fraction": bound.fraction(achieved)}
    return found


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _judged_s(trajectory: Trajectory) -> float:
    """Seconds for which a verifier was at work, without the wait for it; none where an equal verdict was reused."""
    evidence = trajectory.verdict.evidence if trajectory.verdict else {}
    spent = evidence.get("seconds", {})
    return 0.0 if evidence.get("reused") or not isinstance(spent, Mapping) else float(sum(spent.values()))


def _work(trajectories: Sequence[Trajectory]) -> Work | None:
    """The mean work of an attempt; None where none was measured."""
    if not trajectories:
        return None

    def mean(*names: str) -> float:
        return sum(t.cost.get(f"{name}_s", 0.0) for t in trajectories for name in names) / len(trajectories)

    decode_s, tools_s = mean("generate"), mean("act", "snapshot", "collect")
    if decode_s + tools_s <= 0:
        return None
    return Work(
        decode_s=decode_s,
        tools_s=tools_s,
        verify_s=sum(map(_judged_s, trajectories)) / len(trajectories),
        start_s=mean("lease"),
        reset_s=mean("close"),
        tokens=sum(len(turn.sampled_ids) for t in trajectories for turn in t.turns) / len(trajectories),
    )
