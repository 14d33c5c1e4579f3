"""`practicum simulate`: the scenarios, one run of one, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Cli

QUICK = (
    "--set=updates=3", "--set=warmup=1", "--set=groups_per_update=2", "--set=group_size=2", "--set=episode.turns=3",
)  # fmt: skip


def test_scenarios_are_listed(cli: Cli) -> None:
    """Without a scenario, the shipped ones are told with what they are about."""
    done = cli("simulate", "--json")
    assert done.code == 0
    assert "long-tail" in done.document
    assert "long-tail" in cli("simulate").out


def test_one_document_says_what_bounds_and_what_was_achieved(cli: Cli) -> None:
    """The keys that programs read are there, the shares sum to 1, and the synchronous loop was run too."""
    done = cli("simulate", "box-death", "--json", *QUICK)
    assert done.code == 0, done.err
    found = done.document
    assert found["bound"]["episodes_per_s"] > 0
    assert found["bound"]["binding_term"] in found["bound"]["terms"]
    assert found["fraction_of_bound"] == found["achieved_episodes_per_s"] / found["bound"]["episodes_per_s"]
    assert found["speedup_vs_sync"] > 0
    assert found["reported_once"] is True
    assert found["scored_faults"] == 0
    assert found["staleness"]["max"] <= 8
    assert found["staleness"]["mean"] <= found["staleness"]["max"]
    assert sum(found["time_identity"].values()) == pytest.approx(1)
    assert {*found["schedulers"]} == {"continuous", "synchronous"}


def test_people_read_a_table(cli: Cli) -> None:
    """The binding term is named, and where the time went."""
    done = cli("simulate", "slow-verify", *QUICK, "--set=train=1", '--set=compare=["batches"]')
    assert done.code == 0, done.err
    assert "by verification" in done.out
    assert "where the time went" in done.out
    assert "batches" in done.out


def test_what_cannot_be_run_is_refused(cli: Cli) -> None:
    """An unknown scenario, key or scheduler is bad input, and the message says what there is."""
    unknown = cli("simulate", "long-tial", "--json")
    assert unknown.code == 2
    assert "did you mean 'long-tail'?" in unknown.document["error"]["fix"]
    assert cli("simulate", "long-tail", "--set", "hosts.cuont=3").code == 2
    assert cli("simulate", "long-tail", "--scheduler", "best").code == 2
