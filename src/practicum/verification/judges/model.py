"""A judge behind any OpenAI-compatible endpoint.

Owns: `ModelJudge`, `open_judge`.
Invariant: one question is one conversation; what is no opinion is missing with its reason, and counted.
Must not know: what an opinion is used for.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from practicum.errors import PolicyError
from practicum.policies.contract import Message, Policy, Renderer, SamplingParams
from practicum.policies.http import ChatPolicy
from practicum.policies.text import ByteRenderer
from practicum.records.task import Task
from practicum.records.verdict import Missing, Signal, Submission, Verdict
from practicum.verification.judges.prompt import (
    SYSTEM,
    pair_prompt,
    read_choice,
    read_score,
    score_prompt,
    shown_files,
)

NAME = "judge"
_MAX_TOKENS = 64  # an answer by schema needs no more
_RELIABILITY = 0.5  # until it has been calibrated on verified outcomes


class ModelJudge:
    """Asks `policy`, which `version` names. `weight` is its opinion's; `abstained` counts why there was none."""

    name = NAME

    def __init__(self, policy: Policy, renderer: Renderer, *, version: str, weight: float = 1.0) -> None:
        self.version = version
        self._policy = policy
        self._renderer = renderer
        self._weight = weight
        self.abstained: Counter[str] = Counter()

    async def signal(self, task: Task, submission: Submission, verdict: Verdict) -> Signal | Missing:
        """Its opinion of the work; missing where there is nothing to see, no answer, or none by the schema."""
        if not shown_files(submission):
            self.abstained["nothing to see"] += 1
            return Missing("nothing to see")
        answer = await self._ask(score_prompt(task, submission, verdict, secrets.token_hex(8)))
        if isinstance(answer, Missing):
            return answer
        score = read_score(answer)
        if score is None:
            self.abstained["malformed"] += 1
            return Missing("malformed: an answer that is not by the schema")
        return Signal(self.name, score, weight=self._weight, reliability=_RELIABILITY)

    async def prefer(self, task: Task, one: Submission, other: Submission) -> Literal["one", "other"] | None:
        """Which of two is better: asked in both orders, and no preference where the answers differ."""
        nonce = secrets.token_hex(8)
        answers = [await self._ask(pair_prompt(task, *pair, nonce)) for pair in ((one, other), (other, one))]
        choices = [None if isinstance(answer, Missing) else read_choice(answer) for answer in answers]
        if choices == ["first", "second"]:
            return "one"
        if choices == ["second", "first"]:
            return "other"
        known = None not in choices and "neither" not in choices
        self.abstained["depends on the order" if known else "no choice"] += 1
        return None

    async def _ask(self, question: str) -> str | Missing:
        prompt = self._renderer.start([Message("task", question)])
        session = f"judge-{secrets.token_hex(4)}"
        try:
            with self._policy.session(session):
                sampled = await self._policy.sample(
                    prompt,
                    SamplingParams(_MAX_TOKENS, temperature=0.0, stop_ids=self._renderer.stop_ids),
                    session=session,
                )
        except PolicyError as error:
            self.abstained[error.kind] += 1
            return Missing(f"{error.kind}: {error.message}")
        return self._renderer.decode(sampled.ids)


@asynccontextmanager
async def open_judge(
    url: str,
    model: str,
    *,
    api_key_env: str | None = None,
    deadline_s: float = 60.0,
    tries: int = 3,
    weight: float = 1.0,
) -> AsyncIterator[ModelJudge]:
    """A judge at `url` (`…/v1`). Raises `ConfigError` where address or key cannot be used."""
    async with ChatPolicy(
        url, model, api_key_env=api_key_env, deadline_s=deadline_s, tries=tries, system_prompt=SYSTEM
    ) as policy:
        yield ModelJudge(policy, ByteRenderer(), version=f"judge:{model}", weight=weight)
