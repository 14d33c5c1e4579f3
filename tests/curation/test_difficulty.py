"""How hard tasks are: counts, strata, and the file they are kept in."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.difficulty import (
    EASY_FROM,
    HARD_UP_TO,
    Measured,
    append_measured,
    difficulty_path,
    opinion,
    read_difficulty,
    read_rows,
    standing,
    stated_rate,
    stratum,
)
from practicum.curation.measuring import Reference, golds, measure, missing
from practicum.errors import SandboxDied, StoreError
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.rollouts.agents import noop_agent, oracle_agent
from practicum.rollouts.workshop import Workshop
from practicum.sandboxes.provider import open_provider
from practicum.tasks.quickstart import FamilySpec, generate_family
from practicum.verification.opening import open_verifier


def row(passed: int, judged: int, policy: str = "p", digest: str = "d", **more: int) -> Measured:
    return Measured(digest, "t", policy, "1", {"turns": 8}, judged, passed, date="2026-01-01T00:00:00+00:00", **more)


@given(judged=st.integers(0, 60), data=st.data())
def test_a_stratum_is_sure(judged: int, data: st.DataObject) -> None:
    """Only an interval that lies in a stratum as a whole gives it; one that spans a bound is undetermined."""
    measured = row(data.draw(st.integers(0, judged)), judged)
    low, high = measured.interval
    found = stratum(measured)
    spans = low < EASY_FROM < high or low < HARD_UP_TO < high
    assert (found == "undetermined") == spans
    assert (found == "easy") == (low >= EASY_FROM)
    assert (found == "hard") == (high <= HARD_UP_TO)


def test_twelve_attempts_can_tell() -> None:
    """Of twelve attempts, all, half and none make an easy, a medium and a hard task; of four, none can be told."""
    assert [stratum(row(n, 12)) for n in (12, 6, 0)] == ["easy", "medium", "hard"]
    assert {stratum(row(n, 4)) for n in range(5)} == {"undetermined"}


def test_equal_outcomes_are_candidates_to_be_set_aside() -> None:
    """None of n is parked and all of n retired, by all references together, and only where enough was judged."""
    assert standing([row(0, 8)]) == "park"
    assert standing([row(8, 8)]) == "retire"
    assert standing([row(0, 8), row(1, 8, "q")]) == "useful"
    assert standing([row(0, 3)]) == standing([]) == "unmeasured"
    assert standing([row(8, 8, "oracle"), row(0, 8, "noop")]) == "unmeasured"


@pytest.mark.parametrize(
    ("stated", "passed", "off"),
    [
        ("easy", 12, False),
        ("easy", 7, True),
        ("Medium", 6, False),
        ("hard", 6, True),
        ("7/10", 0, False),
        (None, 0, False),
    ],
)
def test_a_stated_difficulty_that_is_off_is_flagged(stated: str | None, passed: int, off: bool) -> None:
    """More than a quarter between the stated and the measured rate is flagged; what states no rate cannot be off."""
    found = opinion([row(passed, 12)], stated)
    assert found.stated_off == off
    assert (stated_rate(stated) is None) == (stated in ("7/10", None))


def test_the_strongest_policy_counts() -> None:
    """A task is easy where one policy finds it so, and the reason says which."""
    found = opinion([row(0, 12, "weak"), row(12, 12, "strong")])
    assert (found.stratum, found.standing) == ("easy", "useful")
    assert "strong: 12 of 12" in found.reason


def test_rows_are_pooled_and_damage_is_named(tmp_path: Path) -> None:
    """Rows of one policy, version and harness add up; a torn end is mended, and a damaged line is an error."""
    path = difficulty_path(tmp_path)
    assert read_difficulty(path) == {}
    for each in (row(1, 4), row(2, 4, unscorable=1), row(3, 4, "q"), row(1, 2, digest="e")):
        append_measured(path, each)
    with path.open("ab") as file:
        file.write(b'{"torn')
    append_measured(path, row(0, 1, "r"))
    known = read_difficulty(path)
    assert [(each.policy, each.passed, each.judged) for each in known["d"]] == [("p", 3, 8), ("q", 3, 4), ("r", 0, 1)]
    assert known["d"][0].attempts == 9
    assert known["d"][0].pass_at(2) == pytest.approx(1 - (5 * 4) / (8 * 7))
    assert known["d"][0].pass_at(9) is None
    assert len(read_rows(path)) == 5
    path.write_bytes(path.read_bytes() + b'{"schema": 1, "digest": 3}\n')
    with pytest.raises(StoreError, match="line 6"):
        read_difficulty(path)


def test_only_the_rest_is_attempted() -> None:
    """What was judged, or blamed on the task, is not asked again; faults are, with seeds that were not used."""
    (task,) = generate_family(FamilySpec(seed=1, train=1, validation=0, test=0))
    reference = Reference("noop", "1", noop_agent())
    have = Measured(task.digest, task.id, "noop", "1", reference.harness, judged=3, passed=0, unscorable=2, invalid=1)
    todo = missing({task.digest: [have]}, reference, [task, task], samples=6, seed=10)
    assert [(spec.index, spec.seed) for spec in todo] == [(6, 16), (7, 17)]
    other = replace(have, version="2")
    assert len(missing({task.digest: [other]}, reference, [task], samples=6, seed=0)) == 6


async def _measure(path: Path, tasks: list[Task]) -> None:
    async with (
        open_provider(run_id="measure", limits_by="cgroup-or-rlimit") as provider,
        open_verifier(provider) as judge,
    ):
        workshop = Workshop(provider, judge, 2)
        noop, oracle = Reference("noop", "1", noop_agent()), Reference("gold", "7", oracle_agent())
        seen: list[str] = []

        def stopped(trajectory: Trajectory) -> None:
            seen.append(trajectory.id)
            if len(seen) == 3:
                raise SandboxDied("the lights went out")

        with pytest.raises(SandboxDied):
            await measure(workshop, noop, tasks, path, samples=2, on_done=stopped)
        kept = sum(each.judged for rows in read_difficulty(path).values() for each in rows)
        assert 2 <= kept < 4
        again: list[str] = []
        await measure(workshop, noop, tasks, path, samples=2, on_done=lambda t: again.append(t.id))
        assert len(again) == 4 - kept
        await measure(workshop, oracle, tasks, path, samples=1)
        assert {len(changes) for changes in (await golds(workshop, tasks)).values()} == {1}


def test_measuring_survives_an_interruption(tmp_path: Path) -> None:
    """In real boxes: what was judged before a stop is kept and not repeated, and the counts come out right."""
    tasks = generate_family(FamilySpec(seed=1, train=2, validation=0, test=0))
    path = difficulty_path(tmp_path)
    asyncio.run(_measure(path, tasks))
    known = read_difficulty(path)
    assert known.keys() == {task.digest for task in tasks}
    for rows in known.values():
        assert [(each.policy, each.passed, each.judged) for each in rows] == [("gold", 1, 1), ("noop", 0, 2)]
        assert all(each.harness["max_turns"] > 0 and each.date for each in rows)
    assert all(json.loads(line)["unscorable"] == 0 for line in path.read_text().splitlines())
