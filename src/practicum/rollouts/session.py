"""One conversation with a policy: the only place where messages become ids and turns are recorded.

Owns: `Session`, `Budgets`.
Invariant: the ids recorded as sampled are the ids the policy returned, and each prompt either extends the last
prompt and sample exactly or starts over; text that was sampled is never encoded again to stand for them, nor when a
conversation goes on from recorded turns.
Must not know: boxes, tools, verdicts.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from practicum.errors import PolicyError, PolicyRefused, StartRefused
from practicum.policies.contract import Message, Policy, Renderer, Sampled, SamplingParams
from practicum.records.trajectory import StopReason, Turn
from practicum.scheduling.retry import Backoff
from practicum.telemetry import now


@dataclass(frozen=True, slots=True)
class Budgets:
    """What one rollout may spend, in ids of its renderer.

    `max_tokens` bounds one turn's sample, `max_context` any prompt together with its sample.
    """

    max_turns: int = 8
    max_tokens: int = 512
    max_context: int = 8192

    def __post_init__(self) -> None:
        if min(self.max_turns, self.max_tokens, self.max_context) < 1:
            raise ValueError(f"{self}: every budget is at least 1")


TEXT_BUDGETS = Budgets(max_turns=50, max_tokens=128_000, max_context=1_000_000)
"""For `ByteRenderer`, whose ids are bytes: room for a whole script in a turn, and for many observations."""


class Session:
    """Drives `policy` from `messages` on; call `sample`, act, then `record`, until `limit` says stop.

    `name` is the policy's name for the conversation. `seed` and the turn's index give each request's seed. A
    policy that does not answer in `sample_s` seconds, or fails, is tried again as `backoff` says.
    """

    def __init__(
        self,
        policy: Policy,
        renderer: Renderer,
        messages: Sequence[Message],
        *,
        name: str,
        budgets: Budgets,
        temperature: float = 1.0,
        seed: int = 0,
        sample_s: float = 300.0,
        backoff: Backoff | None = None,
    ) -> None:
        self._policy = policy
        self._renderer = renderer
        self._messages = list(messages)
        self.name = name
        self._budgets = budgets
        self._temperature = temperature
        self._seed = seed
        self._sample_s = sample_s
        self._backoff = backoff or Backoff(tries=3)
        self._turns: list[Turn] = []
        self._pending: Turn | None = None
        self._prompt = tuple(renderer.start(self._messages))

    def resume(self, turns: Sequence[Turn], pending: Turn | None = None) -> None:
        """Go on after recorded `turns`, with `pending` sampled already. Only before anything was sampled.

        Raises `StartRefused` where this session would not have shown the policy the very ids on record, or would read
        other words in what it said.
        """
        for turn in [*turns, *([pending] if pending else [])]:
            if turn.prompt_ids != self._prompt:
                raise StartRefused(f"turn {turn.index} was sampled after other ids than would be shown here")
            if self._renderer.decode(turn.sampled_ids) != turn.text:
                raise StartRefused(f"the ids of turn {turn.index} do not read here as the text on record")
            if turn is pending:
                self._pending = pending
                return
            try:
                self._add(turn)
            except PolicyRefused as error:
                raise StartRefused(error.message) from error

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns recorded so far."""
        return tuple(self._turns)

    @property
    def pending(self) -> Turn | None:
        """The turn that was sampled and is not recorded yet: its observation and `snapshot_after` are empty."""
        return self._pending

    def limit(self) -> StopReason | None:
        """Why there can be no further turn, or None."""
        if len(self._turns) >= self._budgets.max_turns:
            return "turn_limit"
        return "context_limit" if len(self._prompt) >= self._budgets.max_context else None

    def cut(self, turn: Turn) -> StopReason | None:
        """The budget that ended the sample of `turn` where it ended without a whole action, else None."""
        if turn.stop_reason != "length" or turn.action.tool != "invalid":
            return None
        room = self._budgets.max_context - len(turn.prompt_ids)
        return "context_limit" if room < self._budgets.max_tokens else "token_limit"

    async def sample(self, workspace: str = "") -> Turn:
        """The policy's next words, said of `workspace` (a digest), which are pending until `record`.

        Where such are pending already, those: nothing is sampled twice. Raises `PolicyError` once tries are used up,
        `PolicyRefused` at once.
        """
        if self._pending is not None:
            return self._pending
        room = self._budgets.max_context - len(self._prompt)
        params = SamplingParams(
            max_tokens=min(self._budgets.max_tokens, room),
            temperature=self._temperature,
            stop_ids=self._renderer.stop_ids,
            seed=_turn_seed(self._seed, len(self._turns)),
            turn=len(self._turns),
        )
        start = now()
        sampled = await self._sample_patiently(params)
        _check(sampled, params)
        text = self._renderer.decode(sampled.ids)
        self._pending = Turn(
            index=len(self._turns),
            prompt_ids=self._prompt,
            sampled_ids=sampled.ids,
            logprobs=sampled.logprobs,
            policy_version=sampled.version,
            stop_reason=sampled.stop_reason,
            text=text,
            action=self._renderer.parse(text),
            observation="",
            snapshot_before=workspace,
            snapshot_after="",
            timing={"generate": now() - start},
        )
        return self._pending

    def record(
        self, *, observation: str, snapshot_after: str, timing: Mapping[str, float], failed: bool | None = None
    ) -> Turn:
        """Bind what is pending to what came of it, and prepare the next prompt. `timing` is in seconds by stage."""
        said = self._pending
        if said is None:
            raise ValueError("nothing was sampled that could be recorded")
        turn = replace(
            said,
            observation=observation,
            snapshot_after=snapshot_after,
            timing={**said.timing, **timing},
            failed=failed,
        )
        self._pending = None
        self._add(turn)
        return turn

    def _add(self, turn: Turn) -> None:
        self._turns.append(turn)
        fresh = Message("observation", turn.observation)
        self._messages += [Message("assistant", turn.text), fresh]
        self._prompt = self._continue(turn, fresh)

    def _continue(self, turn: Turn, fresh: Message) -> tuple[int, ...]:
        prefix = (*turn.prompt_ids, *turn.sampled_ids)
        extended = self._renderer.extend(turn.prompt_ids, turn.sampled_ids, [fresh])
        if extended is None:
            return tuple(self._renderer.start(self._messages))
        if tuple(extended[: len(prefix)]) != prefix:
            # A renderer that rewrites what was sampled would make every later ratio wrong.
            raise PolicyRefused(f"the renderer did not keep the ids of turn {turn.index} when it went on")
        return tuple(extended)

    async def _sample_patiently(self, params: SamplingParams) -> Sampled:
        delays = self._backoff.delays(f"{self.name}:{params.seed}")
        while True:
            try:
                async with asyncio.timeout(self._sample_s):
                    return await self._policy.sample(self._prompt, params, session=self.name)
            except PolicyRefused:
                raise
            except TimeoutError:
                failure = PolicyError(f"the policy did not answer within {self._sample_s:g} s")
            except PolicyError as error:
                failure = error
            delay = next(delays, None)
            if delay is None:
                raise failure
            await asyncio.sleep(delay)


def _turn_seed(seed: int, turn: int) -> int:
    """A seed in [0, 2^31) for one request, unrelated to those of neighbouring turns and seeds."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{turn}".encode()).digest()[:4]) >> 1


def _check(sampled: Sampled, params: SamplingParams) -> None:
    """Refuse what breaks the policy contract before it can be recorded, let alone trained on."""
    if not sampled.ids or len(sampled.ids) > params.max_tokens:
        raise PolicyRefused(f"the policy returned {len(sampled.ids)} ids where 1 to {params.max_tokens} were asked for")
    if len(sampled.logprobs) != len(sampled.ids):
        raise PolicyRefused(f"the policy returned {len(sampled.logprobs)} log-probabilities for {len(sampled.ids)} ids")
    if not all(math.isfinite(value) and value <= 1e-6 for value in sampled.logprobs):
        raise PolicyRefused("the policy returned a log-probability that is not a finite number ≤ 0")
