"""Configurations that cannot run, found before anything is started.

Owns: `Plan`, `Problem`, `problems`, `refuse`.
Invariant: each problem shows the arithmetic and names the key to change; a number that is not given is not judged.
Must not know: where the numbers come from, how the keys are written. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from practicum.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Plan:
    """The numbers of a run; None where one is not known or not limited. Seconds are the longest that may be taken."""

    per_update: int  # groups
    group_size: int
    max_staleness: int
    boxes: int  # attempts that may run at once
    verifiers: int
    spares: int = 0  # further attempts of a group
    open_groups: int | None = None  # that may be dispatched and not trained at the same time
    queue_size: int | None = None  # between stages
    tasks: int | None = None  # that groups of one update are drawn from, each once
    host: Mapping[str, float] = field(default_factory=dict)  # what there is: `memory_bytes`, `pids`, `disk_bytes`, …
    box: Mapping[str, float] = field(default_factory=dict)  # what one box takes of it, by the same names
    command_s: float | None = None  # of one command in a box
    turn_s: float | None = None
    episode_s: float | None = None  # of acting
    verify_s: float | None = None  # of one judgement
    verify_deadline_s: float | None = None  # until a judgement is given up
    attempt_deadline_s: float | None = None  # until an attempt is given up, acting and judgement
    group_deadline_s: float | None = None  # until a group is given up
    permit_deadline_s: float | None = None  # until waiting for a permit is given up
    lease_s: float | None = None  # after which a box is reaped

    @property
    def attempts(self) -> int:
        """Attempts of one update."""
        return self.per_update * (self.group_size + self.spares)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the plan cannot run. `keys` are fields of `Plan`; the first is the one to change."""

    keys: tuple[str, ...]
    arithmetic: str
    fix: str

    def __str__(self) -> str:
        return f"{self.keys[0]}: {self.arithmetic}"


def problems(plan: Plan) -> list[Problem]:
    """All reasons why `plan` can never do its work, in a fixed order; empty where it can."""
    found = list(_counts(plan))
    if found:  # the arithmetic below divides by them
        return found
    return [*_staleness(plan), *_host(plan), *_deadlines(plan), *_waiting(plan)]


def refuse(found: Sequence[Problem], names: Mapping[str, str] | None = None) -> None:
    """Raise `ConfigError` with all of `found`. `names` says how the keys of a plan are called in the configuration."""
    if not found:
        return
    called = dict(names or {})

    def name(key: str) -> str:
        return called.get(key, key)

    told = [f"{name(problem.keys[0])}: {problem.arithmetic}" for problem in found]
    raise ConfigError("; ".join(told), fix="; ".join(f"{name(problem.keys[0])}: {problem.fix}" for problem in found))


def _counts(plan: Plan) -> Iterator[Problem]:
    """Counts below which nothing moves at all."""
    least = {"per_update": 1, "group_size": 1, "boxes": 1, "verifiers": 1, "open_groups": 1, "queue_size": 1}
    least |= {"tasks": 1, "max_staleness": 0, "spares": 0}
    for key, lowest in least.items():
        value = getattr(plan, key)
        if value is not None and value < lowest:
            yield Problem((key,), f"{value} < {lowest}: nothing could ever go on", f"set it to {lowest} or more")


def _staleness(plan: Plan) -> Iterator[Problem]:
    """An update that would wait for groups that may not be dispatched."""
    most = (plan.max_staleness + 1) * plan.per_update
    if plan.open_groups is not None and plan.open_groups < plan.per_update:
        yield Problem(
            ("open_groups", "per_update"),
            f"an update trains {plan.per_update} groups, and at most {plan.open_groups} may be dispatched and not "
            "trained, so the first update waits for ever",
            f"allow between {plan.per_update} and ({plan.max_staleness} + 1) × {plan.per_update} = {most}, "
            f"or train at most {plan.open_groups} groups per update",
        )
    if plan.tasks is not None and plan.tasks < plan.per_update:
        yield Problem(
            ("per_update", "tasks"),
            f"an update trains groups of {plan.per_update} different tasks, and there are {plan.tasks}",
            f"set it to {plan.tasks} or less, or add tasks",
        )


def _host(plan: Plan) -> Iterator[Problem]:
    """More boxes than the host can hold: those of attempts and those of judgements exist side by side."""
    together = plan.boxes + plan.verifiers
    for name in sorted(plan.box.keys() & plan.host.keys()):
        each, there = plan.box[name], plan.host[name]
        if each <= 0 or together * each <= there:
            continue
        fit = math.floor(there / each)
        arithmetic = (
            f"({plan.boxes} attempts + {plan.verifiers} judgements) × {each:,.0f} {name} = {together * each:,.0f}, "
            f"and the host has {there:,.0f}"
        )
        if fit > plan.verifiers:
            fix = f"set it to {fit - plan.verifiers} or less"
        elif fit >= 2:
            fix = f"only {fit} boxes fit: set boxes and verifiers to {fit} together"
        else:
            fix = f"an attempt and its judgement need 2 × {each:,.0f}: take a larger host, or smaller boxes"
        yield Problem(("boxes", "verifiers"), arithmetic, fix)


def _deadlines(plan: Plan) -> Iterator[Problem]:
    """Waits that end before what they wait for may."""
    judged = plan.verify_deadline_s if plan.verify_deadline_s is not None else plan.verify_s
    whole = None if plan.episode_s is None or judged is None else plan.episode_s + judged
    pairs = (
        ("turn_s", "command_s", plan.command_s, "a command in a box may take"),
        ("episode_s", "turn_s", plan.turn_s, "a turn may take"),
        ("episode_s", "command_s", plan.command_s, "a command in a box may take"),
        ("lease_s", "episode_s", plan.episode_s, "an episode in its box may take"),
        ("verify_deadline_s", "verify_s", plan.verify_s, "a judgement may take"),
        ("attempt_deadline_s", "verify_deadline_s", whole or judged, "acting and judgement together may take"),
        ("group_deadline_s", "attempt_deadline_s", plan.attempt_deadline_s or whole, "an attempt may take"),
    )
    for outer, inner, needed, words in pairs:
        deadline = getattr(plan, outer)
        if deadline is not None and needed is not None and deadline < needed:
            yield Problem(
                (outer, inner),
                f"{words} {needed:g} s, and {outer} ends it after {deadline:g} s",
                f"set it to {needed:g} or more",
            )


def _waiting(plan: Plan) -> Iterator[Problem]:
    """Waits for a box that end although nothing is wrong, since those before may take all their time."""
    if plan.episode_s is None:
        return
    each = plan.group_size + plan.spares
    rounds = math.ceil(each / plan.boxes)
    if plan.group_deadline_s is not None and rounds > 1 and plan.group_deadline_s < rounds * plan.episode_s:
        yield Problem(
            ("group_deadline_s", "boxes", "group_size"),
            f"a group of {each} attempts in {plan.boxes} boxes takes ⌈{each}/{plan.boxes}⌉ × {plan.episode_s:g} s = "
            f"{rounds * plan.episode_s:g} s, and is given up after {plan.group_deadline_s:g} s",
            f"set it to {rounds * plan.episode_s:g} or more, or allow {each} boxes",
        )
    groups = (plan.max_staleness + 1) * plan.per_update
    together = min(groups, plan.open_groups or groups) * each
    longest = (math.ceil(together / plan.boxes) - 1) * plan.episode_s
    if plan.permit_deadline_s is not None and plan.permit_deadline_s < longest:
        yield Problem(
            ("permit_deadline_s", "boxes"),
            f"{together} attempts are dispatched together into {plan.boxes} boxes, so the last waits up to "
            f"(⌈{together}/{plan.boxes}⌉ − 1) × {plan.episode_s:g} s = {longest:g} s, and gives up after "
            f"{plan.permit_deadline_s:g} s",
            f"set it to {longest:g} or more, or allow more boxes",
        )
