"""Signals of a run: the model judge that a configuration names, what a record already holds, what is missing.

Owns: `parse_judge`, `check_judge`, `open_signals`, `recorded`, `missing_rows`.
Invariant: a judge that no task would ask is refused, never ignored; an opinion is asked for once and then part of the
record, so that judging a stored attempt again asks no model.
Must not know: how a signal comes about or shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError

from practicum.config import RunConfig, load_config
from practicum.config.explain import explain
from practicum.config.sections import JudgeConfig
from practicum.errors import ConfigError
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Missing, Signal
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.contract import Verifier
from practicum.verification.process import conduct
from practicum.verification.shaping import JUDGE, MISSING, ShapingVerifier, with_signals

_UNRECORDED = Missing("no opinion was recorded, and judging again asks no model")


def parse_judge(text: str) -> JudgeConfig:
    """The judge written as `text`: an address, or a TOML file with a [judge] section. Raises `ConfigError`."""
    if text.startswith(("http://", "https://")):
        given = {"judge": {"url": text}}
        try:
            config = RunConfig.model_validate(given)
        except ValidationError as error:
            raise explain(error, [("--judge", given)], RunConfig) from None
    else:
        config = load_config(text)
    if config.judge is None:
        raise ConfigError(
            f"{text} has no [judge] section", fix='write [judge], url = "http://host:8000/v1" and model = "NAME" there'
        )
    return config.judge


def check_judge(judge: JudgeConfig | None, tasks: Sequence[Task]) -> str | None:
    """What is worth knowing before `tasks` are judged, or None. Raises `ConfigError` for a judge nobody would ask."""
    asking = sum(JUDGE in task.verification.reward.signals for task in tasks)
    if judge is not None and not asking:
        raise ConfigError(
            f"a model judge is named ({judge.url}), and no task lists the signal `{JUDGE}`, so it would never be asked",
            fix=f'leave it out, or add signals = ["{JUDGE}"] and a band to [practicum.reward] in task.toml',
        )
    if judge is None and asking:
        return f"{asking} of {len(tasks)} tasks list the signal `{JUDGE}`, and no model judge is named: it is missing"
    return None


@asynccontextmanager
async def open_signals(
    provider: SandboxProvider, verifier: Verifier, judge: JudgeConfig | None
) -> AsyncIterator[ShapingVerifier]:
    """`verifier` with every signal there is here. Raises `ConfigError` where the judge's key is not set."""
    if judge is None:
        yield with_signals(provider, verifier)
        return
    from practicum.verification.judges.model import open_judge

    async with open_judge(
        judge.url,
        judge.model,
        api_key_env=judge.api_key_env,
        deadline_s=judge.timeout_s,
        tries=judge.tries,
        weight=judge.weight,
    ) as source:
        yield with_signals(provider, verifier, source)


def recorded(task: Task, trajectory: Trajectory) -> dict[str, Signal | Missing]:
    """The signals that the record of an attempt holds: those of its turns, and the opinion that a judge had. Pure."""
    signals = trajectory.verdict.signals if trajectory.verdict is not None else ()
    opinion = next((signal for signal in signals if signal.name == JUDGE), None)
    return {**conduct(task, trajectory.turns), JUDGE: opinion or _UNRECORDED}


def missing_rows(trajectories: Iterable[Trajectory], *, update: int) -> list[dict[str, Any]]:
    """A metrics row for each signal that verdicts lack, and each reason. Pure."""
    verdicts = [trajectory.verdict for trajectory in trajectories if trajectory.verdict is not None]
    counts = Counter(item for verdict in verdicts for item in verdict.evidence.get(MISSING, {}).items())
    return [
        {"kind": "signal", "signal": name, "missing": count, "reason": reason[:500], "update": update}
        for (name, reason), count in sorted(counts.items())
    ]
