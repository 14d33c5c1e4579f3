"""Which tasks a batch holds: a curriculum that follows what the policy can still learn.

Owns: `Curriculum`, `Place`, `Outcome`, `Belief`, `SamplerState`, and the steps between states: `choose`, `observe`,
`withdraw`.
Invariant: a state is frozen data, and steps are functions of it, of the seed and of the outcomes alone; so a resumed
run, given its state back, chooses what an unbroken one would have. Tasks that cannot teach cost a bounded share.
Must not know: what trains, disks, who judged. Pure.

What is believed of a task is a Beta distribution of its success rate p, from its own outcomes and, up to `KIN`
attempts' worth, from those of tasks of its kind; both fade by `discount` a batch, since the policy changes. A group
teaches in proportion to the variance of its outcomes, so a task's value is E[p(1 − p)], and less outside the band.

    active   drawn by value, each stratum at least its floor; never unseen for longer than `PATIENCE` rounds
    retired  `solved_after` groups in a row all passed, alike in reward: looked at again every `look_again` batches
    parked   `failed_after` groups in a row all failed, alike in reward: the same, sooner as the policy gets better
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from practicum.config.sections import CurriculumConfig

KIN = 2.0
"""Most attempts' worth that the outcomes of a task's kind count for beside its own."""
OUTSIDE = 0.3
"""What the value of a task outside the band is multiplied with."""
SHARP = 3.0
"""Power of the value by which tasks are drawn: at 1, what hardly teaches is still drawn too often."""
PATIENCE = 8
"""Rounds (a round draws as many places as there are active tasks) after which a task goes first."""
BETTER = 0.1
"""A rise of the success rate over all tasks by this much halves the time until a parked task is looked at again."""
FLEET = 0.2
"""Weight of the newest batch in the success rate over all tasks."""

Standing = Literal["active", "retired", "parked"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task belongs: `stratum` has a floor, `kind` names those whose outcomes say something of each other."""

    stratum: str = "undetermined"
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`passed` of `judged` attempts at one task in one batch; `equal`: all had one reward, so they taught nothing."""

    task: str
    passed: int
    judged: int
    equal: bool


@dataclass(frozen=True, slots=True)
class Belief:
    """What is known of one task, or of one kind. Counts have faded up to batch `at`; streaks are groups in a row."""

    passed: float = 0.0
    judged: float = 0.0
    taught: float = 0.0
    groups: float = 0.0
    at: int = 0
    drawn: int = -1
    solved: int = 0
    failed: int = 0
    standing: Standing = "active"
    fleet: float = 0.0

    def faded(self, batch: int, discount: float) -> Belief:
        """The same, as old as it is by `batch`."""
        keep = discount ** max(0, batch - self.at)
        counts = {name: getattr(self, name) * keep for name in ("passed", "judged", "taught", "groups")}
        return replace(self, **counts, at=max(batch, self.at))


@dataclass(frozen=True, slots=True)
class SamplerState:
    """All that choices depend on beside the curriculum. `beliefs` and `kinds` hold only what was seen or drawn.

    `batch` is the next to be chosen; `chosen` holds what was drawn and not yet observed, by batch. `credits` are
    places that strata are owed, `spare` those for looking again at what was set aside. `fleet` is the success rate
    over all tasks, None before the first outcome. `withdrawn` tasks are not drawn any more.
    """

    batch: int = 0
    beliefs: Mapping[str, Belief] = field(default_factory=dict)
    kinds: Mapping[str, Belief] = field(default_factory=dict)
    credits: Mapping[str, float] = field(default_factory=dict)
    spare: float = 0.0
    fleet: float | None = None
    chosen: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    withdrawn: frozenset[str] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """As data that JSON keeps exactly."""
        document = {name: getattr(self, name) for name in ("batch", "spare", "fleet")}
        document |= {name: {key: asdict(b) for key, b in getattr(self, name).items()} for name in ("beliefs", "kinds")}
        chosen = {str(batch): list(tasks) for batch, tasks in self.chosen.items()}
        return document | {"credits": dict(self.credits), "chosen": chosen, "withdrawn": sorted(self.withdrawn)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SamplerState:
        """What `to_json` gave. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
        return cls(
            batch=int(document["batch"]),
            beliefs={key: Belief(**each) for key, each in document["beliefs"].items()},
            kinds={key: Belief(**each) for key, each in document["kinds"].items()},
            credits=dict(document["credits"]),
            spare=float(document["spare"]),
            fleet=document["fleet"],
            chosen={int(batch): tuple(tasks) for batch, tasks in document["chosen"].items()},
            withdrawn=frozenset(document["withdrawn"]),
        )


@dataclass(frozen=True, slots=True)
class Curriculum:
    """What does not change in a run: the tasks, `size` places a batch, the rules, the seed."""

    tasks: Mapping[str, Place]
    size: int
    seed: int = 0
    rules: CurriculumConfig = CurriculumConfig()


def choose(plan: Curriculum, state: SamplerState) -> tuple[SamplerState, list[str]]:
    """The task ids of batch `state.batch`, and the state after it.

    At most `plan.size`, none twice as long as there are enough tasks; fewer where too few can teach, but never none
    while a task is left that was not withdrawn.
    """
    tasks = [task for task in sorted(plan.tasks) if task not in state.withdrawn]
    if not tasks:
        return replace(state, batch=state.batch + 1), []
    active = [task for task in tasks if _belief(state, task).standing == "active"]
    again, spare = _look_again(plan, state, tasks)
    ranked = _ranked(plan, state, active)
    credits = _credited(plan, state, ranked)
    room = plan.size - len(again)
    owed = _owed(plan, credits, ranked, room)
    chosen = again + owed + [task for task in ranked if task not in set(owed)][: room - len(owed)]
    # A set smaller than a batch comes round again, but not those few of a large set that can still teach.
    rounds = -(-plan.size // len(tasks))
    pool = list(chosen)
    while rounds > 1 and len(chosen) < plan.size:
        chosen += pool[: plan.size - len(chosen)]
        rounds -= 1
    for task in chosen:
        stratum = plan.tasks[task].stratum
        if stratum in credits and _belief(state, task).standing == "active":
            credits[stratum] -= 1.0
    beliefs = dict(state.beliefs)
    for task in chosen:
        beliefs[task] = replace(_belief(state, task), drawn=state.batch)
    after = replace(
        state,
        batch=state.batch + 1,
        beliefs=beliefs,
        credits={name: min(1.0, max(0.0, value)) for name, value in credits.items()},
        spare=spare,
        chosen={**state.chosen, state.batch: tuple(chosen)},
    )
    return after, chosen


def observe(plan: Curriculum, state: SamplerState, batch: int, outcomes: Iterable[Outcome]) -> SamplerState:
    """The state after the outcomes of `batch` are known. Tasks that the curriculum does not have are ignored."""
    rules = plan.rules
    beliefs, kinds = dict(state.beliefs), dict(state.kinds)
    fresh = sorted((o for o in outcomes if o.task in plan.tasks and o.judged > 0), key=lambda o: o.task)
    passed, judged = sum(outcome.passed for outcome in fresh), sum(outcome.judged for outcome in fresh)
    fleet = state.fleet
    if judged:
        fleet = passed / judged if fleet is None else fleet + FLEET * (passed / judged - fleet)
    for outcome in fresh:
        kind = plan.tasks[outcome.task].kind
        known = beliefs.get(outcome.task, Belief()).faded(batch, rules.discount)
        beliefs[outcome.task] = _with(known, outcome, rules, fleet or 0.0)
        if kind:
            kinds[kind] = _counted(kinds.get(kind, Belief()).faded(batch, rules.discount), outcome)
    chosen = {number: tasks for number, tasks in state.chosen.items() if number > batch}
    return replace(state, beliefs=beliefs, kinds=kinds, fleet=fleet, chosen=chosen)


def withdraw(state: SamplerState, tasks: Iterable[str]) -> SamplerState:
    """The state in which `tasks` are not drawn any more. What was drawn before stays drawn."""
    return replace(state, withdrawn=state.withdrawn | frozenset(tasks))


def value(plan: Curriculum, state: SamplerState, task: str) -> float:
    """What a group at `task` may be expected to teach, in (0, 1]: the weight with which it is drawn."""
    rules, place = plan.rules, plan.tasks[task]
    own, kin = _belief(state, task), state.kinds.get(place.kind) or Belief()
    keep = rules.discount ** max(0, state.batch - own.at)
    passed, judged, fades = keep * own.passed, keep * own.judged, rules.discount ** max(0, state.batch - kin.at)
    # Its own outcomes are among those of its kind: they are not counted twice.
    others = max(0.0, fades * kin.judged - judged)
    rate = min(1.0, max(0.0, fades * kin.passed - passed) / others) if others > 0 else 0.0
    weight = min(KIN, others)
    a = 1.0 + passed + weight * rate
    b = 1.0 + max(0.0, judged - passed) + weight * (1.0 - rate)
    signal = 4.0 * a * b / ((a + b) * (a + b + 1.0))
    if not rules.low <= a / (a + b) <= rules.high:
        signal *= OUTSIDE
    # Where partial success is paid, groups of which none passes may teach all the same.
    signal = max(signal, keep * own.taught / (keep * own.groups + 1.0))
    return rules.explore + (1.0 - rules.explore) * math.pow(min(1.0, signal), SHARP)


def standings(plan: Curriculum, state: SamplerState) -> dict[str, int]:
    """How many tasks are active, retired, parked and withdrawn."""
    counts = {"active": 0, "retired": 0, "parked": 0, "withdrawn": 0}
    for task in plan.tasks:
        counts["withdrawn" if task in state.withdrawn else _belief(state, task).standing] += 1
    return counts


def _belief(state: SamplerState, task: str) -> Belief:
    return state.beliefs.get(task) or Belief()


def _counted(known: Belief, outcome: Outcome) -> Belief:
    return replace(
        known,
        passed=known.passed + outcome.passed,
        judged=known.judged + outcome.judged,
        taught=known.taught + (not outcome.equal),
        groups=known.groups + 1.0,
    )


def _with(known: Belief, outcome: Outcome, rules: CurriculumConfig, fleet: float) -> Belief:
    solved = known.solved + 1 if outcome.equal and outcome.passed == outcome.judged else 0
    failed = known.failed + 1 if outcome.equal and outcome.passed == 0 else 0
    standing: Standing = "active"
    if solved >= rules.solved_after:
        standing = "retired"
    elif failed >= rules.failed_after:
        standing = "parked"
    return replace(_counted(known, outcome), solved=solved, failed=failed, standing=standing, fleet=fleet)


def _look_again(plan: Curriculum, state: SamplerState, tasks: Sequence[str]) -> tuple[list[str], float]:
    """Set-aside tasks whose time has come, the longest overdue first, and what is left of the places for them."""
    spare = state.spare + plan.rules.recheck * plan.size
    due: list[tuple[float, str]] = []
    aside = [(task, belief) for task in tasks if (belief := _belief(state, task)).standing != "active"]
    for task, belief in aside:
        wait = float(plan.rules.look_again)
        if belief.standing == "parked":
            wait /= 2.0 ** int(max(0.0, (state.fleet or 0.0) - belief.fleet) / BETTER + 1e-9)
        late = state.batch - belief.drawn - wait
        if late >= 0:
            due.append((-late, task))
    again = [task for _, task in sorted(due)][: min(int(spare + 1e-9), plan.size)]
    if not again and len(aside) == len(tasks):
        again = [min(aside, key=lambda each: (each[1].drawn, each[0]))[0]]
    return again, min(1.0, max(0.0, spare - len(again)))


def _ranked(plan: Curriculum, state: SamplerState, active: Sequence[str]) -> list[str]:
    """`active` in the order in which they are drawn: weighted sampling without replacement by exponential keys
    (Efraimidis and Spirakis, 2006), but first those that have waited too long."""
    rng = random.Random(f"tasks-{plan.seed}-{state.batch}")
    # A key for every task there is, so that one which leaves does not change the luck of the others.
    luck = {task: -math.log(1.0 - rng.random()) for task in sorted(plan.tasks)}
    longest = PATIENCE * -(-len(active) // plan.size)
    keys: dict[str, tuple[float, float]] = {}
    for task in active:
        waited = state.batch - _belief(state, task).drawn - 1
        keys[task] = (-waited, 0.0) if waited >= longest else (1.0, luck[task] / value(plan, state, task))
    return sorted(active, key=lambda task: (keys[task], task))


def _credited(plan: Curriculum, state: SamplerState, ranked: Sequence[str]) -> dict[str, float]:
    """Places owed to each stratum that has an active task, this batch's floor included."""
    strata = sorted({plan.tasks[task].stratum for task in ranked})
    floor = min(plan.rules.floor, 1.0 / len(strata)) if strata else 0.0
    return {name: state.credits.get(name, 0.0) + floor * plan.size for name in strata}


def _owed(plan: Curriculum, credits: Mapping[str, float], ranked: Sequence[str], room: int) -> list[str]:
    """The tasks that floors demand, of the strata that are owed most first; at most `room`."""
    waiting: dict[str, list[str]] = {name: [] for name in credits}
    for task in ranked:
        waiting[plan.tasks[task].stratum].append(task)
    owed: list[str] = []
    for name in sorted(credits, key=lambda each: (-credits[each], each)):
        owed += waiting[name][: int(credits[name] + 1e-9)]
    return owed[:room]
