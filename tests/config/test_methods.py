"""The sections that say what is learnt from what there is: what is accepted, what is refused."""

from __future__ import annotations

import pytest

from practicum.config import load_config
from practicum.errors import ConfigError


def test_a_study_is_in_place_of_reinforcement_learning() -> None:
    """With `study` the updates of `rl` are 0 by themselves; asking for both is refused."""
    config = load_config("sft")
    assert (config.rl.updates, config.updates) == (0, config.study.updates if config.study else None)
    with pytest.raises(ConfigError, match=r"rl\.updates is 3"):
        load_config("sft", ["rl.updates=3"])
    assert load_config("quickstart").updates == load_config("quickstart").rl.updates


@pytest.mark.parametrize(
    ("recipe", "override", "said"),
    [
        ("sft", "study.loss=dpo", "failures beside successes"),
        ("sft", "study.beta=0.2", "beta goes with another"),
        ("sft", "sft.steps=3", "so does the warm start"),
        ("preference", "study.demonstrations=3", "demonstrations goes with another"),
        ("preference", "study.source=rows", "groups goes with another"),
        ("preference", "study.gamma=0.2", "gamma goes with another"),
        ("sft", "reward.model.groups=2", "learns without"),
        ("agent", "rl.advantage=batch", "in place of advantage"),
    ],
)
def test_what_a_method_does_not_read_is_refused(recipe: str, override: str, said: str) -> None:
    """A key of another source, loss or kind of credit is an error that names it."""
    with pytest.raises(ConfigError, match=said):
        load_config(recipe, [override])


def test_a_reward_model_and_corrected_verdicts_exclude_each_other() -> None:
    """Rewards come from verdicts, corrected or not, or from a model's opinion."""
    with pytest.raises(ConfigError, match="remove one"):
        load_config("reward-model", ["reward.noise=n.json", "reward.correction=backward"])


def test_demonstrations_are_as_right_as_their_reader_says() -> None:
    """The warm start's share of right demonstrations and a study's are apart; only one of them reads any."""
    assert load_config("sft").correct_rate == 1.0
    assert load_config("preference").correct_rate == load_config("preference").sft.correct_rate < 1.0


def test_only_what_is_read_is_written() -> None:
    """The resolved file of a run holds the keys of its own source and loss alone."""
    text = load_config("preference").to_toml()
    study = text[text.index("[study]") :].split("\n\n")[0]
    assert "beta" in study
    assert "groups" in study
    assert not any(name in study for name in ("demonstrations =", "prompt_weight", "gamma", "rows"))
    assert "advantage" not in load_config("agent").to_toml()
