"""One conversation with a policy: the only place where messages become ids and turns are recorded.

Owns: `Session`, `Reply`, `Budgets`.
Invariant: the ids recorded as sampled are the ids the policy returned, and each prompt either extends the last
prompt and sample exactly or starts over; text that was sampled is never encoded again to stand for them.
Must not know: boxes, tools, verdicts.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from practicum.errors import PolicyError, PolicyRefused
from practicum.policies.contract import Message, Policy, Renderer, Sampled, SamplingParams
from practicum.records.trajectory import Action, StopReason, Turn
from practicum.scheduling.retry import Backoff


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


@dataclass(frozen=True, slots=True)
class Reply:
    """What the policy said in one turn, before anything was done about it.

    `cut` names the budget that ended the sample where it ended without a whole action, else None.
    """

    prompt_ids: tuple[int, ...]
    sampled: Sampled
    text: str
    action: Action
    cut: StopReason | None
    generate_s: float


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
        self._name = name
        self._budgets = budgets
        self._temperature = temperature
        self._seed = seed
        self._sample_s = sample_s
        self._backoff = backoff or Backoff(tries=3)
        self._turns: list[Turn] = []
        self._prompt = tuple(renderer.start(self._messages))

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns recorded so far."""
        return tuple(self._turns)

    def limit(self) -> StopReason | None:
        """Why there can be no further turn, or None."""
        if len(self._turns) >= self._budgets.max_turns:
            return "turn_limit"
        return "context_limit" if len(self._prompt) >= self._budgets.max_context else None

    async def sample(self) -> Reply:
        """The policy's next words. Raises `PolicyError` once tries are used up, `PolicyRefused` at once."""
        room = self._budgets.max_context - len(self._prompt)
        params = SamplingParams(
            max_tokens=min(self._budgets.max_tokens, room),
            temperature=self._temperature,
            stop_ids=self._renderer.stop_ids,
            seed=_turn_seed(self._seed, len(self._turns)),
        )
        start = time.perf_counter()
        sampled = await self._sample_patiently(params)
        _check(sampled, params)
        text = self._renderer.decode(sampled.ids)
        action = self._renderer.parse(text)
        cut: StopReason | None = None
        if sampled.stop_reason == "length" and action.tool == "invalid":
            cut = "context_limit" if room < self._budgets.max_tokens else "token_limit"
        return Reply(self._prompt, sampled, text, action, cut, time.perf_counter() - start)

    def record(
        self,
        reply: Reply,
        *,
        observation: str,
        snapshot_before: str,
        snapshot_after: str,
        timing: Mapping[str, float],
        failed: bool | None = None,
    ) -> Turn:
        """Bind `reply` to what came of it, and prepare the next prompt. `timing` is in seconds by stage."""
        turn = Turn(
            index=len(self._turns),
            prompt_ids=reply.prompt_ids,
            sampled_ids=reply.sampled.ids,
            logprobs=reply.sampled.logprobs,
            policy_version=reply.sampled.version,
            stop_reason=reply.sampled.stop_reason,
            text=reply.text,
            action=reply.action,
            observation=observation,
            snapshot_before=snapshot_before,
            snapshot_after=snapshot_after,
            timing={"generate": reply.generate_s, **timing},
            failed=failed,
        )
        self._turns.append(turn)
        fresh = Message("observation", observation)
        self._messages += [Message("assistant", reply.text), fresh]
        self._prompt = self._continue(turn, fresh)
        return turn

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
        delays = self._backoff.delays(f"{self._name}:{params.seed}")
        while True:
            try:
                async with asyncio.timeout(self._sample_s):
                    return await self._policy.sample(self._prompt, params, session=self._name)
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
