"""The policy contract: token ids in, token ids with log-probabilities out; and the renderer's.

Owns: `Policy`, `SamplingParams`, `Sampled`, `Message`, `Renderer`.
Invariant: what comes out is exactly what was sampled, with the policy version that sampled it.
Must not know: boxes, training.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from practicum.records.trajectory import Action

Role = Literal["task", "assistant", "observation"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, as text."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to sample. `temperature` 0 is greedy. `stop_ids` end the sample and are part of it.

    `seed` makes one request reproducible on its own. `turn` is its number in the conversation, from 0, where the caller
    knows it: scripts go by it, models do not.
    """

    max_tokens: int
    temperature: float = 1.0
    stop_ids: tuple[int, ...] = ()
    seed: int = 0
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """`ids` and `logprobs` of equal length; `logprobs` are natural logs under the distribution sampled from."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop_reason: Literal["stop", "length"]
    version: int


class Policy(Protocol):
    """Anything that continues token ids. Raises `PolicyError` (retry) or `PolicyRefused` (do not)."""

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        """`session` names the conversation, so that a policy may keep its cache or its script position."""
        ...

    def session(self, name: str) -> AbstractContextManager[None]:
        """Hold the conversation `name` open: an engine may wait for it to fill a batch, and drops its cache after."""
        ...


class Renderer(Protocol):
    """Messages ⇄ ids."""

    @property
    def stop_ids(self) -> tuple[int, ...]: ...

    def start(self, messages: Sequence[Message]) -> list[int]:
        """Ids of a whole conversation, ending where the policy is to speak."""
        ...

    def extend(self, ids: Sequence[int], sampled: Sequence[int], messages: Sequence[Message]) -> list[int] | None:
        """`ids + sampled` exactly, followed by `messages` and the point where the policy is to speak.

        None where the prefix cannot be kept; the caller then starts a new sample.
        """
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of sampled ids, for parsing and for people."""
        ...

    def parse(self, text: str) -> Action:
        """The action in an assistant's text; `Action("invalid", {"reason": …})` where there is none."""
        ...
