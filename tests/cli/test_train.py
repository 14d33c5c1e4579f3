"""`practicum train`: what is refused before anything runs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.config import load_config
from practicum.pipeline.resuming import Source, take_changes
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
    """`--resume` with a setting that differs is refused with both values, in an option or in the run's own file; more
    updates are fine."""
    with RunFolder.create(tmp_path, load_config("quickstart", ["rl.updates=3"])) as folder:
        path = folder.path
    for option in (["--set", "rl.lr=1e-3"], ["--set", "rl.updates=2"]):
        refused = cli("train", "--resume", path, *option, "--dry-run")
        assert refused.code == 2
        assert option[1].partition("=")[0] in refused.err
        assert "was started with" in refused.err
        assert "put" in refused.err
    more = cli("train", "--resume", path, "--set", "rl.updates=4", "--dry-run", "--json")
    assert more.document["rl"]["updates"] == 4
    kept = path / "config.toml"
    kept.write_text(kept.read_text().replace("minibatches = 4", "minibatches = 2"))
    edited = cli("train", "--resume", path, "--dry-run")
    assert (edited.code, "rl.minibatches is 2" in edited.err) == (2, True)


def test_a_finished_run_is_told_before_anything_is_written(cli: Cli, tmp_path: Path) -> None:
    """More updates for a run that has ended are refused with the number that it made; its folder is as it was."""
    with RunFolder.create(tmp_path, load_config("quickstart", ["rl.updates=3"])) as folder:
        folder.write_summary({"updates": 3})
        path = folder.path
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
    for option in ([], ["--dry-run"]):
        refused = cli("train", "--resume", path, "--set", "rl.updates=40", *option)
        assert (refused.code, "finished: 3 updates were made" in refused.err) == (2, True), refused.err
    assert before == {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}


@pytest.mark.parametrize("begun", [["seed=3"], ["rl.updates=5"], ["rl.updates=20", "name=other"]])
def test_the_file_of_a_run_that_was_not_edited_changes_nothing(cli: Cli, tmp_path: Path, begun: list[str]) -> None:
    """A run goes on with what it was begun with, wherever `--set` had differed from its file then, or extends it now;
    what the file says otherwise since is refused by its key, and so are other files."""
    own = tmp_path / "own.toml"
    own.write_text('name = "own"\n[rl]\nlr = 2e-4\nupdates = 10\n')
    config = load_config(own, begun)
    with RunFolder.create(tmp_path, config, source=Source.read(str(own))._asdict()) as folder:
        path = folder.path
        assert json.loads(cli("train", own, "--resume", path, "--dry-run", "--json").out) == config.model_dump(
            mode="json"
        )
        more = load_config(path / "config.toml", ["rl.updates=30"])
        take_changes(folder, more)
    again = cli("train", own, "--resume", path, "--dry-run", "--json")
    assert again.document == more.model_dump(mode="json")
    own.write_text('name = "own"\n[rl]\nlr = 2e-4\nupdates = 50\n')
    edited = cli("train", own, "--resume", path, "--dry-run")
    assert (edited.code, "rl.updates is 50" in edited.err, "was 10 in" in edited.err) == (2, True, True)
    assert "--set" in edited.err
    recipe = cli("train", "quickstart", "--resume", path, "--dry-run")
    assert (recipe.code, "not from quickstart" in recipe.err) == (2, True)


def test_the_recipe_of_a_run_is_as_it_was_shipped(cli: Cli, tmp_path: Path) -> None:
    """A run of a recipe goes on under the recipe's name; one that does not record what it was begun from, without."""
    config = load_config("quickstart", ["seed=9", "name=other"])
    with RunFolder.create(tmp_path, config, source=Source.read("quickstart")._asdict()) as folder:
        same = cli("train", "quickstart", "--resume", folder.path, "--dry-run", "--json")
        assert same.document["seed"] == 9
    with RunFolder.create(tmp_path, config) as folder:
        refused = cli("train", "quickstart", "--resume", folder.path, "--dry-run")
        assert (refused.code, "leave quickstart out" in refused.err) == (2, True)
        assert cli("train", "--resume", folder.path, "--dry-run", "--json").document["seed"] == 9


def test_a_dry_run_looks_at_the_tasks(cli: Cli, tmp_path: Path) -> None:
    """A folder that is not there, a split that is empty and tasks that cannot be demonstrated are told beforehand."""
    missing = cli("train", "quickstart", "--dry-run", "--set", "tasks.path=nowhere", timeout_s=60)
    assert (missing.code, "nowhere: there is no such folder" in missing.err) == (2, True)
    cli("tasks", "new", str(tmp_path / "set" / "one"))
    alone = cli("train", "quickstart", "--dry-run", "--set", f"tasks.path={tmp_path / 'set'}", timeout_s=60)
    assert (alone.code, "no task of split 'validation'" in alone.err, "tasks split" in alone.err) == (2, True, True)
    assert not (tmp_path / "runs").exists()
