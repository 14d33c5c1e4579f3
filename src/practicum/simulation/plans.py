"""What each simulated episode will do, from seeds alone.

Owns: `draw`, `mean_of`, `Plan`, `Plans`.
Invariant: the plan of an attempt depends on the scenario's seed and the attempt's name, so that every scheduler is
given the same work, and its means are known before anything runs.
Must not know: engines, boxes, time.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from practicum.simulation.scenario import Scenario, Spread

_Z99 = 2.3263478740408408  # the 99th percentile of a standard normal


def draw(spread: Spread, source: random.Random) -> float:
    """One amount."""
    if spread.median is not None and spread.p99 is not None:
        return spread.median * factor(spread.p99 / spread.median, source)
    mean = spread.mean or 0.0
    return source.expovariate(1.0 / mean) if spread.kind == "exponential" and mean > 0 else mean


def mean_of(spread: Spread) -> float:
    """The mean of what `draw` gives: median × exp(σ²/2) where it is log-normal."""
    if spread.median is not None and spread.p99 is not None:
        return spread.median * math.exp((math.log(spread.p99 / spread.median) / _Z99) ** 2 / 2)
    return spread.mean or 0.0


def factor(p99: float, source: random.Random) -> float:
    """A log-normal factor of median 1."""
    return 1.0 if p99 == 1.0 else math.exp(math.log(p99) / _Z99 * source.gauss(0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Plan:
    """One episode: `tokens` of each turn, seconds of each `action` (one fewer: the last turn submits)."""

    tokens: tuple[int, ...]
    actions: tuple[float, ...]
    passes: bool

    def until(self, deadline_s: float) -> Plan:
        """What of it is done where the actions' time ends at `deadline_s`: the action that it ends in is the last."""
        left = deadline_s
        for number, seconds in enumerate(self.actions):
            if seconds >= left:
                return Plan(self.tokens[: number + 1], (*self.actions[:number], left), False)
            left -= seconds
        return self


class Plans:
    """Plans by the names of attempts: `g12/3` is the fourth attempt of group 12, at task 12 modulo the tasks."""

    def __init__(self, scenario: Scenario) -> None:
        self._seed = scenario.seed
        self._shape = scenario.episode
        self._tasks: dict[int, float] = {}

    def task(self, group: int) -> int:
        """Number of the task of a group."""
        return group % self._shape.tasks

    def of(self, attempt: str) -> Plan:
        """The plan of an attempt, its samples and actions already cut to what they may take."""
        group, _, _ = attempt.removeprefix("g").partition("/")
        shape, source = self._shape, random.Random(f"episode:{self._seed}:{attempt}")
        weight = factor(shape.spread_p99, source) * self._weight(self.task(int(group)))
        turns = max(2, round(draw(shape.turns, source)))
        drawn = [round(weight * draw(shape.tokens, source)) for _ in range(turns)]
        tokens = tuple(min(shape.max_tokens, max(1, each)) for each in drawn)
        actions = tuple(min(shape.command_s, weight * draw(shape.action, source)) for _ in range(turns - 1))
        return Plan(tokens, actions, source.random() < shape.success)

    def _weight(self, task: int) -> float:
        if task not in self._tasks:
            self._tasks[task] = factor(self._shape.task_spread_p99, random.Random(f"task:{self._seed}:{task}"))
        return self._tasks[task]
