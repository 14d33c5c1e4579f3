"""`practicum train`: what is refused before anything runs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.config import load_config
from practicum.pipeline.runfolder import RunFolder

if TYPE_CHECKING:
    from cli.conftest import Cli


def test_dry_run_prints_the_resolved_configuration(cli: Cli, tmp_path: Path) -> None:
    """`--dry-run` shows every setting, loads back as the same run, and leaves nothing on disk."""
    done = cli("train", "quickstart", "--set", "rl.updates=3", "--set", "seed=7", "--dry-run")
    assert done.code == 0
    values = tomllib.loads(done.out)
    assert (values["rl"]["updates"], values["seed"]) == (3, 7)
    file = tmp_path / "again.toml"
    file.write_text(done.out)
    assert load_config(file) == load_config("quickstart", ["rl.updates=3", "seed=7"])
    assert list(tmp_path.iterdir()) == [file]
    assert cli("train", file, "--dry-run", "--json").document["seed"] == 7
    assert "[judge]" not in done.out
    judged = cli("train", "quickstart", "--set", "judge.url=http://host:8000/v1", "--dry-run")
    assert '[judge]\nurl = "http://host:8000/v1"\nmodel = "default"\n' in judged.out


@pytest.mark.parametrize(
    ("arguments", "message", "fix"),
    [
        (["quickstart", "--set", "rl.lrr=1e-3"], "unknown key rl.lrr", "rl.lr"),
        (["quickstart", "--set", "seed"], "'seed' is not of the form", "--set"),
        (["quikstart"], "there is no recipe 'quikstart'", "quickstart"),
        (["missing.toml"], "missing.toml", "recipes"),
        ([], "what is to be trained is missing", "quickstart"),
        (["--resume", "nowhere"], "nowhere is not a run folder", "runs list"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input(cli: Cli, tmp_path: Path, arguments: list[str], message: str, fix: str) -> None:
    """Bad input is one message that names it and its fix; nothing is written."""
    done = cli("train", *arguments, "--json")
    assert done.code == 2
    assert message in done.document["error"]["message"]
    assert fix in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_run_keeps_its_settings(cli: Cli, tmp_path: Path) -> None:
    """`--resume` with a setting that differs is refused, never ignored; the same setting again is fine."""
    config = load_config("quickstart", ["rl.updates=3"])
    with RunFolder.create(tmp_path, config) as folder:
        path = folder.path
    refused = cli("train", "--resume", path, "--set", "rl.updates=4", "--dry-run")
    assert refused.code == 2
    assert "a resumed run keeps its settings" in refused.err
    same = cli("train", "quickstart", "--resume", path, "--set", "rl.updates=3", "--dry-run", "--json")
    assert same.document["rl"]["updates"] == 3


def test_a_dry_run_looks_at_the_tasks(cli: Cli, tmp_path: Path) -> None:
    """A folder that is not there, a split that is empty and tasks that cannot be demonstrated are told beforehand."""
    missing = cli("train", "quickstart", "--dry-run", "--set", "tasks.path=nowhere", timeout_s=60)
    assert (missing.code, "nowhere: there is no such folder" in missing.err) == (2, True)
    cli("tasks", "new", str(tmp_path / "set" / "one"))
    alone = cli("train", "quickstart", "--dry-run", "--set", f"tasks.path={tmp_path / 'set'}", timeout_s=60)
    assert (alone.code, "no task of split 'validation'" in alone.err, "tasks split" in alone.err) == (2, True, True)
    assert not (tmp_path / "runs").exists()
