"""Where the time, the tokens and the rate of a batch went."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.config import RunConfig
from practicum.pipeline.accounting import coarse, episode_account, figures, staleness_of, tokens_account
from practicum.pipeline.schedule_report import schedule_section
from practicum.records.trajectory import Action, Fault, Trajectory, Turn
from practicum.records.verdict import Verdict
from practicum.rollouts.collector import SPARE

STAGES = ("wait_place", "lease", "generate", "act", "snapshot", "collect", "close", "wait_backlog", "verify")
seconds = st.floats(0, 1e4, allow_nan=False)


def turn(tokens: int, version: int = 0) -> Turn:
    ids = tuple(range(tokens))
    return Turn(0, (1,), ids, (0.0,) * tokens, version, "stop", "", Action("submit"), "", "", "")


def trajectory(name: str, cost: dict[str, float], *turns: Turn, reward: float | None = 1.0) -> Trajectory:
    verdict = None if reward is None else Verdict("valid", "passed", reward, evidence={"seconds": {"tests": 2.0}})
    return Trajectory(name, "g", "t", "d", turns, "submitted", verdict=verdict, cost=cost)


@given(st.lists(st.tuples(st.lists(seconds, min_size=9, max_size=9), seconds), min_size=1, max_size=5))
def test_shares_of_an_account_sum_to_one(given_costs: list[tuple[list[float], float]]) -> None:
    """Each second of an attempt is in one state, what nobody measured included; so they are in few words."""
    attempts = []
    for number, (spent, rest) in enumerate(given_costs):
        cost = {f"{stage}_s": each for stage, each in zip(STAGES, spent, strict=True)}
        attempts.append(trajectory(str(number), {**cost, "total_s": sum(spent) + rest}, turn(1)))
    account = episode_account(attempts)
    assert account.total_s == pytest.approx(sum(t.cost["total_s"] for t in attempts), rel=1e-6, abs=1e-6)
    if account.total_s > 0:
        assert sum(account.shares().values()) == pytest.approx(1.0)
        assert sum(coarse(account.shares()).values()) == pytest.approx(1.0)


def test_what_was_given_up_is_waste() -> None:
    """A spare's seconds are no work."""
    spare = replace(
        trajectory("s", {"total_s": 3.0}, reward=None), stop_reason="cancelled", fault=Fault(SPARE, "enough")
    )
    assert episode_account([spare]).seconds == {"retry": 3.0}


def test_tokens_are_told_by_what_became_of_them() -> None:
    """Those that trained, those of groups without signal, and those that were masked."""
    found = tokens_account(
        [
            trajectory("a", {}, turn(3)),
            trajectory("b", {}, turn(5)),
            trajectory("c", {}, turn(7), reward=None),
        ],
        {"a"},
    )
    assert found.trained == 3
    assert found.lost == {"no signal": 5, "masked": 7}


def test_staleness_counts_tokens_of_each_version() -> None:
    """Weights that change within an attempt are counted turn by turn."""
    assert staleness_of(4, [trajectory("a", {}, turn(3, version=4), turn(2, version=3))]) == {"0": 3, "1": 2}


def test_the_bound_is_of_work_and_not_of_waiting() -> None:
    """Waiting for the judge is no work of the judge, and an equal verdict that was reused costs nothing."""
    cost = {"generate_s": 1.0, "act_s": 1.0, "verify_s": 500.0, "total_s": 502.0}
    attempts = [trajectory(str(n), cost, turn(4)) for n in range(4)]
    found = figures(RunConfig(), 0, attempts, {"0"}, seconds=4.0, update_s=0.5, queues={})["bound"]
    assert found["terms"]["verification"] == pytest.approx(RunConfig().sandbox.verify_concurrent / 2.0)
    assert found["achieved_per_s"] == 1.0
    assert found["fraction"] == pytest.approx(1.0 / found["episodes_per_s"])


def test_the_report_sums_what_the_rows_say() -> None:
    """Shares are weighed by attempts, tokens are added up, and the term that binds most often is named."""
    cost = {"generate_s": 1.0, "act_s": 1.0, "total_s": 2.0}
    rows = []
    for batch in range(3):
        attempts = [trajectory(str(n), cost, turn(4, batch)) for n in range(2)]
        parts = figures(RunConfig(), batch, attempts, {"0"}, seconds=4.0, update_s=0.5, queues={})
        rows.append({"kind": "update", "episodes": 2, **parts})
    section = schedule_section(rows)
    assert section is not None
    assert sum(part["share"] for part in section["episode"]) == pytest.approx(1.0)
    assert section["tokens"] == [("trained", 12, 0.5), ("not trained: no signal", 12, 0.5)]
    assert section["staleness"] == [(0, 24, 1.0)]
    assert section["bound"]["of"] == 3
    assert schedule_section([{"kind": "update"}]) is None
