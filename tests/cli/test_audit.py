"""`practicum sandbox audit`, in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Cli


@pytest.mark.slow
def test_every_probe_is_blocked_and_every_weakness_noticed(cli: Cli) -> None:
    """The whole audit passes on this host: one document, at least sixty probes, all of them proven or named."""
    done = cli("sandbox", "audit", "--json", timeout_s=110)
    document = done.document
    wrong = [probe for probe in document["probes"] if not probe["ok"]]
    silent = [row for row in document["weakened"] if set(row["should_fire"]) != set(row["fired"])]
    assert (wrong, silent) == ([], [])
    assert done.code == 0, done.err
    assert document["provider"] == "bubblewrap"
    assert document["uid"] != 0
    assert len(document["probes"]) >= 60
    assert all(probe.keys() >= {"id", "group", "expected", "observed", "ok"} for probe in document["probes"])
    proven = {id for row in document["weakened"] for id in row["fired"]}
    assert {probe["id"] for probe in document["probes"]} == proven | document["unproven"].keys()


def test_an_unknown_provider_is_bad_usage(cli: Cli) -> None:
    """The providers that there are are named."""
    done = cli("sandbox", "audit", "--provider", "chroot")
    assert done.code == 2
    assert "bubblewrap" in done.err
