"""What may be said otherwise when a run is continued."""

from __future__ import annotations

from pathlib import Path

import pytest

from practicum.config import load_config, recipes
from practicum.errors import ConfigError, StoreError
from practicum.pipeline.resuming import Change, check_changes, take_changes
from practicum.pipeline.runfolder import RunFolder
from practicum.trajectories.chain import entries

BEGUN = ["rl.updates=3", "seed=5"]


@pytest.mark.parametrize("recipe", recipes())
def test_the_same_is_no_change(tmp_path: Path, recipe: str) -> None:
    """A run of any recipe goes on with its own configuration, and nothing is written for it."""
    with RunFolder.create(tmp_path, load_config(recipe)) as folder:
        before = len(entries(folder.audit_path))
        assert take_changes(folder, folder.config) == []
        assert len(entries(folder.audit_path)) == before


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("seed=6", ["seed is 6", "started with 5", "put seed back to 5"]),
        ("rl.lr=1.0", ["rl.lr is 1.0", "0.0004"]),
        ("rl.updates=2", ["rl.updates is 2", "started with 3", "only become larger"]),
        ("policy.width=96", ["policy.width is 96", "192"]),
        ("tasks.path=elsewhere", ["tasks.family is not set", "'quickstart'"]),
        ("reward.model.groups=3", ["reward.model.batch_size is 16", "started with not set"]),
        ("schedule.mode=continuous", ["schedule.mode is 'continuous'", "'batches'"]),
    ],
)
def test_what_would_be_another_run_is_refused(tmp_path: Path, said: str, words: list[str]) -> None:
    """The key, both values and what to do are named, and nothing is written."""
    with RunFolder.create(tmp_path, load_config("quickstart", BEGUN)) as folder:
        before = (folder.path / "config.toml").read_bytes(), folder.audit_path.read_bytes()
        with pytest.raises(ConfigError) as refused:
            take_changes(folder, load_config("quickstart", [*BEGUN, said]))
        told = f"{refused.value.message} {refused.value.fix}"
        assert all(word in told for word in words), told
        assert before == ((folder.path / "config.toml").read_bytes(), folder.audit_path.read_bytes())


def test_what_only_extends_it_is_taken(tmp_path: Path) -> None:
    """More updates and other budgets are recorded, and are the run's own from then on."""
    with RunFolder.create(tmp_path, load_config("quickstart", BEGUN)) as folder:
        more = load_config("quickstart", [*BEGUN, "rl.updates=9", "sandbox.max_concurrent=8"])
        assert take_changes(folder, more) == [Change("rl.updates", 3, 9), Change("sandbox.max_concurrent", 96, 8)]
        assert folder.config == more
        assert check_changes(folder, more) == []
        with pytest.raises(ConfigError, match="started with 9"):
            check_changes(folder, load_config("quickstart", BEGUN))
        assert entries(folder.audit_path)[-1]["data"]["changes"][0] == {"key": "rl.updates", "old": 3, "new": 9}
        folder.verify_audit()


def test_an_edited_file_is_compared_with_the_trail(tmp_path: Path) -> None:
    """Editing the run's own config.toml is found out, and so is a trail that says nothing of how it was begun."""
    with RunFolder.create(tmp_path, load_config("quickstart", BEGUN)) as folder:
        path = folder.path / "config.toml"
        path.write_text(path.read_text().replace("temperature = 1.0", "temperature = 0.5"))
        with pytest.raises(ConfigError, match=r"rollout.temperature is 0\.5"):
            check_changes(folder, folder.config)
        folder.audit_path.write_bytes(b"")
        with pytest.raises(StoreError, match="does not say"):
            check_changes(folder, folder.config)
