"""Who acts in a run, and how what they did before an interruption is taken up again.

Owns: `Crew`, `Recall`.
Invariant: a model's attempt acts under exactly the weights that its order names, or, in the flow, under the newest;
what the journal holds of an attempt is not done again.
Must not know: training, how orders reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from practicum.pipeline.orders import Order, WorkerSetup
from practicum.policies.demonstrator import demonstration
from practicum.policies.local.engine import LocalEngine
from practicum.policies.local.generator import Generator
from practicum.policies.local.renderer import LocalRenderer
from practicum.policies.local.saved import Saved
from practicum.policies.local.trainee import AnyRenderer
from practicum.policies.protocol import parse_action
from practicum.policies.scripted import ScriptedPolicy
from practicum.records.trajectory import Trajectory
from practicum.rollouts.agents import Agent, noop_agent, oracle_agent
from practicum.rollouts.attempt import AttemptSpec, Parked, Rolled
from practicum.rollouts.collector import JudgeOne, RollOut
from practicum.rollouts.journalling import recalled
from practicum.rollouts.session import Budgets
from practicum.scheduling.turns import Turns
from practicum.trajectories.journal import Journal
from practicum.weights.store import VersionStore


@dataclass
class Crew:
    """Who can act in this run. `turns` says under which weights the model acts."""

    setup: WorkerSetup
    _engine: LocalEngine | None = None
    _version: int | None = None

    def __post_init__(self) -> None:
        self.renderer = self.setup.speaker.renderer()
        rollout = self.setup.rollout
        self.budgets = Budgets(rollout.max_turns, rollout.max_tokens_per_turn, rollout.max_context)
        store = VersionStore(self.setup.checkpoints)
        self.saved = Saved(store.read, store.fetch)
        self.turns = Turns(self._load)

    def agent(self, order: Order) -> Agent:
        """The one that `order` asks for; the model only once it was loaded."""
        if order.who == "oracle":
            return oracle_agent()
        if order.who == "noop":
            return noop_agent()
        if order.who == "demonstrator":
            scripts = _scripts(order.specs, self.setup.correct_rate, self.renderer)
            policy = ScriptedPolicy(self.renderer, partial(_script, scripts))
            return Agent(policy, self.renderer, self.budgets)
        assert self._engine is not None
        return Agent(self._engine, self.renderer, self.budgets)

    async def _load(self, version: int) -> None:
        """Raises `StoreError` where the weights cannot be read. A number below 0 names no weights."""
        if version < 0 or version == self._version:
            return
        if self._engine is None:
            model, _ = self.saved.build(version)
            self._engine = LocalEngine(
                Generator(model, version=version), continuous=self.setup.schedule.mode == "continuous"
            )
        else:
            await self._engine.load(self.saved.state(version), version)
        self._version = version


@dataclass
class Recall:
    """What `journal` held when it was opened, handed out as attempts are asked for again."""

    journal: Journal
    _judged: dict[str, Trajectory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._flights = self.journal.in_flight()

    def rolling(self, roll: RollOut, on_recalled: Callable[[AttemptSpec], None]) -> RollOut:
        """`roll`, but for what was rolled out before, of which `on_recalled` is told; what was begun goes on."""

        async def wrapped(spec: AttemptSpec) -> Rolled | Parked:
            flight = self._flights.pop(spec.id, None)
            left = spec if flight is None else recalled(flight, spec)
            if isinstance(left, AttemptSpec):
                return await roll(left)
            on_recalled(spec)
            if isinstance(left, Trajectory):
                self._judged[spec.id] = left
                return Rolled(spec, left.turns, left.stop_reason, left.fault, left.submission, left.cost)
            return left

        return wrapped

    def judging(self, judge: JudgeOne) -> JudgeOne:
        """`judge`, but for what was judged before."""

        async def wrapped(rolled: Rolled) -> Trajectory:
            return self._judged.pop(rolled.spec.id, None) or await judge(rolled)

        return wrapped


def _scripts(specs: Sequence[AttemptSpec], correct_rate: float, renderer: AnyRenderer) -> dict[str, list[str]]:
    """What the demonstrator says, by attempt, in the model's own way of speaking."""
    found = {spec.id: demonstration(spec.task, seed=spec.seed, correct_rate=correct_rate) for spec in specs}
    if isinstance(renderer, LocalRenderer):
        return found
    return {name: [renderer.speech.say(parse_action(text)) for text in texts] for name, texts in found.items()}


def _script(scripts: dict[str, list[str]], session: str, turn: int) -> str | None:
    texts = scripts[session]
    return texts[turn] if turn < len(texts) else None
