"""Configuration: what is accepted, what is refused, and in which words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from practicum.config import RunConfig, load_config, recipes
from practicum.errors import ConfigError


def refuse(*overrides: str, source: str | Path | list[str | Path] = "quickstart") -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(source, list(overrides))
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("name", recipes())
def test_recipes_load_and_survive_being_written(name: str, tmp_path: Path) -> None:
    """Each shipped recipe is valid, and its resolved form loads to an equal configuration."""
    config = load_config(name)
    resolved = tmp_path / "config.toml"
    resolved.write_text(config.to_toml())
    assert load_config(resolved) == config


def test_defaults_are_a_run() -> None:
    """An empty configuration can be run and generates its tasks."""
    assert RunConfig().tasks.family == "quickstart"


def test_later_files_and_overrides_win_key_by_key(tmp_path: Path) -> None:
    """Files are merged left to right and `--set` comes last; what they do not mention stays."""
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text("seed = 1\n[rl]\nupdates = 3\nlr = 0.5\n")
    second.write_text("[rl]\nupdates = 4\n")
    config = load_config([first, second], ["rl.minibatches=1", "name=bare-word"])
    assert (config.seed, config.rl.updates, config.rl.lr, config.rl.minibatches) == (1, 4, 0.5, 1)
    assert config.name == "bare-word"


def test_override_values_are_toml_or_bare_words() -> None:
    """An override's value is parsed as TOML, and what is no TOML is a string."""
    config = load_config("quickstart", ["seed=7", "rl.lr=1e-4", 'name="x"', "sandbox.limits_by=rlimit"])
    assert (config.seed, config.rl.lr, config.name, config.sandbox.limits_by) == (7, 1e-4, "x", "rlimit")


def test_override_cannot_smuggle_a_second_key() -> None:
    """A value with a line break is one value, never further keys."""
    assert "'a\\nseed = 3'" in refuse("name=a\nseed = 3")


def test_path_replaces_the_family() -> None:
    """A folder of tasks is used instead of the generated family."""
    config = load_config([], ["tasks.path=some/folder"])
    assert (config.tasks.path, config.tasks.family) == ("some/folder", None)


def test_unknown_key_is_named_with_its_file_and_the_closest(tmp_path: Path) -> None:
    """An unknown key is refused by its dotted name, its file and what was probably meant."""
    file = tmp_path / "run.toml"
    file.write_text("[rl]\nudpates = 3\n")
    message = refuse(source=file)
    assert "rl.udpates" in message
    assert str(file) in message
    assert "did you mean rl.updates?" in message


def test_unknown_key_that_belongs_elsewhere() -> None:
    """A known word in the wrong section is answered with where it belongs."""
    assert "did you mean sft.lr or study.lr or rl.lr?" in refuse("lr=3")
    assert "the keys of evaluation are every" in refuse("evaluation.colour=1")
    assert "the keys are name, seed" in refuse("zzz.x=1")


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("rl.lr=fast", ["rl.lr = 'fast'", "--set rl.lr=fast", "expected number"]),
        ("rl.lr=nan", ["rl.lr = nan", "finite"]),
        ("seed=true", ["seed = True", "expected integer"]),
        ("tasks.train=3.5", ["tasks.train = 3.5", "expected integer"]),
        ("name=1", ["name = 1", "expected string", "--set 'name=\"1\"'"]),
        ("name=../up", ["name = '../up'", "expected letters"]),
        ("rl=3", ["rl = 3", "a table of updates"]),
        ("rl.updates.x=1", ["rl.updates = {'x': 1}", "expected integer"]),
        ("sandbox.limits_by=magic", ["'cgroup-or-rlimit', 'cgroup' or 'rlimit'"]),
        ("rollout.max_staleness=-1", ["rollout.max_staleness = -1", "at least 0"]),
        ("rollout.temperature=0", ["rollout.temperature = 0", "more than 0"]),
        ("sft.steps=-1", ["sft.steps = -1", "at least 0"]),
        ("trainer.precision=float16", ["trainer.precision = 'float16'", "'float32' or 'bfloat16'"]),
        ("trainer.threads=0", ["trainer.threads = 0", "at least 1"]),
        ("rollout.threads=0", ["rollout.threads = 0", "at least 1"]),
    ],
)
def test_wrong_values_name_key_value_and_expectation(override: str, parts: list[str]) -> None:
    """A wrong type or range names the key, the value, where it was set and what was expected."""
    message = refuse(override)
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize(
    ("overrides", "arithmetic"),
    [
        (["rollout.group_size=1"], "r − r = 0"),
        (["policy.width=130", "policy.heads=4"], "width 130 is not divisible by heads 4: 32 each, 2 left"),
        (["policy.width=100", "policy.heads=4"], "100 / 4 = 25"),
        (["rollout.max_tokens_per_turn=512", "rollout.max_context=512"], "512 − 512"),
        (["rollout.max_context=1000", "policy.context=600"], "400 tokens too many"),
        (["rl.minibatches=100", "rollout.tasks_per_update=12", "rollout.group_size=8"], "12 × group_size 8 = 96"),
        (["tasks.path=x", "tasks.family=quickstart"], "both set"),
        (["judge.url=ftp://h/v1"], "judge.url: 'ftp://h/v1' is not an http address"),
        (["judge.url=http://h:0/v1"], "is not an http address"),
    ],
)
def test_impossible_combinations_show_the_arithmetic(overrides: list[str], arithmetic: str) -> None:
    """A combination that cannot be run is refused with the numbers that clash."""
    assert arithmetic in refuse(*overrides)


def test_a_judge_is_named_whole_and_without_secrets() -> None:
    """A judge needs its address, waits no longer than a verification may, and its key is never written down."""
    assert RunConfig().judge is None
    assert "judge.url" in refuse("judge.model=m")
    assert "at most 120" in refuse("judge.url=http://h/v1", "judge.timeout_s=600")
    assert "unknown key judge.key" in refuse("judge.url=http://h/v1", "judge.key=x")
    assert "no user, password or query" in refuse("judge.url=http://me:sesame@h/v1")
    for override in ("judge.api_key_env=sk-sesame-1", "judge.api_key_env="):
        assert "must not stand here" in refuse("judge.url=http://h/v1", override)
    config = load_config([], ["judge.url=http://h/v1", "judge.api_key_env=JUDGE_KEY", "judge.weight=2.0"])
    assert config.judge is not None
    assert (config.judge.api_key_env, config.judge.weight, config.judge.model) == ("JUDGE_KEY", 2.0, "default")


def test_unknown_recipe_lists_the_known() -> None:
    """A recipe name that does not exist is answered with the closest and with all."""
    message = refuse(source="quikstart")
    assert "did you mean 'quickstart'" in message
    assert all(name in message for name in recipes())


def test_unreadable_and_malformed_files(tmp_path: Path) -> None:
    """A missing file, a folder, text that is no TOML and bytes that are no text are each one clear message."""
    assert "No such file" in refuse(source=tmp_path / "missing.toml")
    assert "Is a directory" in refuse(source=tmp_path)
    file = tmp_path / "bad.toml"
    file.write_text("a = = 1")
    assert "is not TOML" in refuse(source=file)
    file.write_bytes(b"\xff\xfe")
    assert "is not TOML" in refuse(source=file)


@pytest.mark.parametrize("override", ["seed", "=3", "a..b=3", ""])
def test_malformed_overrides(override: str) -> None:
    """An override without a key or a value is refused with an example."""
    assert "a.b=value" in refuse(override)


def test_import_is_light() -> None:
    """Importing the configuration loads neither torch nor pyarrow nor rich."""
    code = "import sys, practicum.config; print(sorted({'torch', 'pyarrow', 'rich', 'jinja2'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_pretrained_model_and_a_new_one_are_told_apart() -> None:
    """What only the other kind of model reads is refused by name, given in a file, a recipe or by hand."""
    assert "layers says how a new model is made" in refuse("policy.model=smollm2", "policy.layers=3")
    assert "heads" in refuse("policy.heads=8", source="smollm2")
    assert "adapter_rank goes with `model`" in refuse("policy.adapter_rank=8")
    assert "speech goes with `model`" in refuse("policy.speech=fence")
    assert "policy.speech = 'morse'" in refuse("policy.speech=morse", source="smollm2")


def test_only_what_is_read_is_written() -> None:
    """A resolved configuration holds no key of the kind of model, or of the correction, that is not used."""
    own, pretrained = load_config([]).to_toml(), load_config("smollm2").to_toml()
    assert "layers" in own
    assert "adapter_rank" not in own
    assert "adapter_rank" in pretrained
    assert "layers" not in pretrained
    assert "importance_bound" not in pretrained
    assert "importance_bound = 2.0" in load_config([], ["rl.importance=token-mask"]).to_toml()


def test_no_warm_start() -> None:
    """Without steps there are no demonstrations, and asking for some is refused; so are steps with none."""
    config = load_config([], ["sft.steps=0"])
    assert (config.sft.steps, config.sft.demonstrations) == (0, 0)
    assert "64 demonstrations are for one" in refuse("sft.steps=0", "sft.demonstrations=64")
    assert "nothing to imitate" in refuse("sft.demonstrations=0")


def test_functions_are_for_a_model_that_speaks() -> None:
    """Tasks that nobody can demonstrate go with neither a warm start nor a model drawn at random."""
    assert "sft.steps = 0" in refuse("tasks.family=functions", "policy.model=smollm2")
    assert "policy.model" in refuse("tasks.family=functions", "sft.steps=0")
    assert "sft.steps = 0" in refuse("policy.model=smollm2", "policy.speech=fence")


def test_a_method_has_no_key_that_it_does_not_read() -> None:
    """Bounds without a correction and a bonus that the loss has no place for are refused."""
    assert "importance_bound" in refuse("rl.importance_bound=3.0")
    assert "entropy_bonus" in refuse("rl.loss=gspo", "rl.entropy_bonus=0.1")
    assert "rl.loss = 'dpo'" in refuse("rl.loss=dpo")
