"""`practicum verifier canary`, `noise` and `rescore` as a person meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.conftest import Cli


def test_canary(cli: Cli, tmp_path: Path) -> None:
    """The judge gives every known verdict; a task set whose gold no longer passes is named, with exit code 1."""
    good = cli("verifier", "canary")
    assert good.code == 0, good.out + good.err
    assert "all as they must be" in good.out
    cli("tasks", "new", "one")
    whole = cli("verifier", "canary", "one", "--json")
    assert whole.document["good"]
    assert whole.document["judged"] == 9
    (tmp_path / "one" / "solution" / "solve.sh").write_text("true\n")
    broken = cli("verifier", "canary", "one", "--json")
    assert broken.code == 1
    (deviation,) = broken.document["deviations"]
    assert deviation["name"] == "one"
    assert "the gold does not pass" in deviation["said"]


def test_noise(cli: Cli, tmp_path: Path) -> None:
    """Rates come with bounds, with what was varied and what was not, and are written where training can read them;
    too few judgements are too little, which exits 1."""
    cli("tasks", "new", "set/one")
    done = cli("verifier", "noise", "set", "--repeat", "3")
    assert done.code == 1, done.err
    assert "0/3" in done.out
    assert "too noisy" in done.out
    assert "not varied: the time of day for runners other than pytest" in done.out
    assert json.loads((tmp_path / "set" / "noise.json").read_text())["repeat"] == 3
    again = cli("verifier", "noise", "set", "--repeat", "3", "--min-youden", "0", "--out", "rates.json", "--json")
    (task,) = again.document["tasks"]
    assert task["evidence"]["right"] == {"errors": 0, "trials": 3}
    assert task["false_negative"]["high"] > 0.5
    assert again.document["refused"].keys() == {"one"}
    assert again.document["varied"]


def test_bad_input(cli: Cli) -> None:
    """What is no run, task set or rates is refused in one message."""
    for arguments in (("canary", "nowhere"), ("noise", "nowhere"), ("rescore", "nowhere"), ("spot-check", "nowhere")):
        done = cli("verifier", *arguments, "--json")
        assert done.code == 2, done.err
        assert "nowhere" in done.document["error"]["message"]
    lone = cli("train", "quickstart", "--rescored", "--json")
    assert lone.code == 2
    assert "--resume" in lone.document["error"]["message"]
