"""The simulated policy: a client of simulated engines that says what plans say, and the renderer that reads it.

Owns: `SimulatedPolicy`, `SimulatedRenderer`, `spoken`.
Invariant: what is said in a turn depends on the plan alone, however often it is asked for; a conversation stays at one
engine, and leaves one that does not answer.
Must not know: boxes, verdicts, who schedules.

A sample stands for many tokens and is two ids long: how many tokens, and what is to be done, so that half a million
turns fit in memory. `SimulatedRenderer` reads them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from practicum.errors import PolicyError
from practicum.policies.contract import Message, Sampled, SamplingParams
from practicum.records.trajectory import Action
from practicum.scheduling.breaker import BreakerRule, Breakers
from practicum.scheduling.histogram import Histogram
from practicum.simulation.engines import Engines, Replica
from practicum.simulation.plans import Plan, Plans
from practicum.simulation.scenario import Scenario

_SUBMIT = 0
_LOGPROB = (-1.0, -1.0)


@dataclass(slots=True)
class _Conversation:
    """Which replica it is at; `failed` where that did not answer, so that the next try goes elsewhere."""

    plan: Plan
    replica: Replica
    failed: bool = False


class SimulatedPolicy:
    """A client of the engines: conversations stay at one replica, and leave one that does not answer.

    `patience_s` is after how many seconds its users give a sample up. `waited` holds the seconds for which samples
    waited to begin, `tokens` counts what was made.
    """

    def __init__(self, scenario: Scenario, plans: Plans, engines: Engines, *, patience_s: float) -> None:
        self._plans = plans
        self._engines = engines
        self._error_rate = scenario.faults.policy_error
        self._source = random.Random(f"policy:{scenario.seed}")
        self._loop = asyncio.get_running_loop()
        self._patience_s = patience_s
        self._open: dict[str, _Conversation] = {}
        self.breakers = Breakers(BreakerRule())
        self.waited = Histogram()
        self.waited_by: dict[str, float] = {}
        self.tokens = 0
        self.errors = 0

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        """The next turn of the plan of `session`. Raises `PolicyError` for a server's error."""
        talk = self._open[session]
        plan = talk.plan
        turn = params.turn if params.turn is not None else (len(prompt_ids) - 1) // 3
        if self._error_rate and self._source.random() < self._error_rate:
            self.errors += 1
            raise PolicyError("status 503")
        ticket = None if talk.failed else self.breakers.admit(talk.replica.name, self._loop.time())
        if ticket is None:
            ticket = self._move(talk)
        replica, version = talk.replica, self._engines.version
        asked = self._loop.time()
        try:
            waited = await replica.decode(plan.tokens[turn])
        except PolicyError as error:
            talk.failed = True
            self._failed(replica, ticket, str(error))
            raise
        except asyncio.CancelledError:
            if self._loop.time() - asked < self._patience_s:
                self.breakers.of(replica.name).gave_up(ticket)
            else:
                talk.failed = True
                self._failed(replica, ticket, f"no answer within {self._patience_s:g} s")
            raise
        self.breakers.of(replica.name).succeeded(ticket, self._loop.time())
        self.waited.add(waited)
        self.waited_by[session] = self.waited_by.get(session, 0.0) + waited
        self.tokens += plan.tokens[turn]
        return Sampled((plan.tokens[turn], spoken(plan, turn)), _LOGPROB, "stop", version)

    @contextmanager
    def session(self, name: str) -> Iterator[None]:
        """Holds the plan, and a place at the replica with the fewest conversations."""
        talk = self._open[name] = _Conversation(self._plans.of(name), self._pick())
        try:
            yield
        finally:
            del self._open[name]
            talk.replica.sessions -= 1

    def _failed(self, replica: Replica, ticket: int, why: str) -> None:
        self.errors += 1
        self.breakers.of(replica.name).failed(ticket, self._loop.time(), why)

    def _pick(self) -> Replica:
        """The replica with the fewest conversations, of those that answer."""
        now, of = self._loop.time(), self.breakers.of
        every = self._engines.replicas
        usable = [each for each in every if of(each.name).state == "closed" or now >= of(each.name).until_s] or every
        chosen = min(usable, key=lambda replica: replica.sessions)
        chosen.sessions += 1
        return chosen

    def _move(self, talk: _Conversation) -> int:
        """Take the conversation elsewhere; the ticket there. Raises `PolicyError` where no engine may be asked."""
        others = sorted(self._engines.replicas, key=lambda replica: (replica is talk.replica, replica.sessions))
        found = self.breakers.choose(tuple(replica.name for replica in others), self._loop.time())
        if found is None:
            raise PolicyError("every engine is left alone for a while")
        name, ticket = found
        talk.replica.sessions -= 1
        talk.replica = next(replica for replica in others if replica.name == name)
        talk.replica.sessions += 1
        talk.failed = False
        return ticket


def spoken(plan: Plan, turn: int) -> int:
    """The id that says what is done in `turn`: 0 submits, else twice the milliseconds + 2, + 1 for the right thing."""
    if turn >= len(plan.actions):
        return _SUBMIT
    right = plan.passes and turn + 1 == len(plan.actions)
    return 2 * round(plan.actions[turn] * 1000) + 2 + right


class SimulatedRenderer:
    """Ids of `SimulatedPolicy`: a message is one id, and a sample says `submit` or `work SECONDS pass|fail`."""

    stop_ids: tuple[int, ...] = ()

    def start(self, messages: Sequence[Message]) -> list[int]:
        """One id a message."""
        return [0] * len(messages)

    def extend(self, ids: Sequence[int], sampled: Sequence[int], messages: Sequence[Message]) -> list[int]:
        """The exact prefix, and one id a message."""
        return [*ids, *sampled, *self.start(messages)]

    def decode(self, ids: Sequence[int]) -> str:
        """What the second id stands for."""
        said = ids[1]
        if said == _SUBMIT:
            return "submit"
        return f"work {(said - 2) // 2 / 1000} {'pass' if said % 2 else 'fail'}"

    def parse(self, text: str) -> Action:
        """A command for the box, or the end."""
        return Action("submit") if text == "submit" else Action("bash", {"command": text})
