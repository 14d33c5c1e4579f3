"""The catalogue of attacks is data: whole, readable, open to a user's own files, closed to mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from practicum.errors import ConfigError
from practicum.verification.redteam.catalogue import KINDS, load_catalogue

GOOD = 'kind = "survivors"\nrows = ["R19"]\nwhat = "Does it."\nexpect = []\nshell = "true"\n'


def test_every_row_is_accounted_for() -> None:
    """Each row of the published catalogue has an attack, or the reason why it has none."""
    catalogue = load_catalogue()
    tried = {row for attack in catalogue.attacks for row in attack.rows}
    assert tried | set(catalogue.without) == {f"R{number:02d}" for number in range(1, 56)}
    assert tried & set(catalogue.without) == {"R51"}  # a comment is tried, its reader is not here
    assert all(len(reason) > 20 for reason in catalogue.without.values())


def test_every_kind_is_tried_in_several_ways() -> None:
    """Kinds are closed, not rows: each has at least three attacks."""
    kinds = [attack.kind for attack in load_catalogue().attacks]
    assert min(kinds.count(kind) for kind in KINDS) >= 3


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    """A file in a user's folder is an attack beside the shipped ones; no code is needed."""
    (tmp_path / "my-own.toml").write_text(GOOD)
    (tmp_path / "notes.txt").write_text("not an attack")
    shipped, both = load_catalogue(), load_catalogue(tmp_path)
    (mine,) = (attack for attack in both.attacks if attack.id == "my-own")
    assert len(both.attacks) == len(shipped.attacks) + 1
    assert (mine.form, mine.code, mine.rows, mine.expected("pytest")) == ("shell", "true", ("R19",), ())
    assert [attack.id for attack in both.only(("my-own",)).attacks] == ["my-own"]


def test_what_is_expected_may_depend_on_the_runner(tmp_path: Path) -> None:
    """A table gives each runner its own, and `default` the rest."""
    text = GOOD.replace("expect = []", 'expect = { default = ["a"], plain = ["says: b", "c"] }')
    (tmp_path / "mine.toml").write_text(text)
    (mine,) = load_catalogue(tmp_path).only(("mine",)).attacks
    assert mine.expected("plain") == ("says: b", "c")
    assert mine.expected("unittest") == ("a",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "colour = 1\n", "unknown key `colour`"),
        (GOOD + 'python = "pass"\n', "one of shell, python, append is needed"),
        (GOOD.replace('shell = "true"\n', ""), "one of shell, python, append is needed"),
        (GOOD.replace("survivors", "unheard-of"), "`kind` is one of"),
        (GOOD.replace("R19", "19"), "`rows` are written like R01"),
        (GOOD + 'runners = ["jest"]\n', "`runners` are among"),
        (GOOD + 'needs = ["luck"]\n', "`needs` are among"),
        (GOOD + "residue = 1\n", "`residue` is true or false"),
        (GOOD + "command_s = 0\n", "`command_s` is a number of seconds"),
        (GOOD + 'command_s = "2"\n', "`command_s` is a number of seconds"),
        (GOOD.replace("expect = []\n", ""), "`expect` is needed"),
        (GOOD.replace("expect = []", 'expect = { jest = ["x"] }'), "`expect` is by runner"),
        (GOOD.replace("expect = []", "expect = [1]"), "`expect` is a list of strings"),
        (GOOD.replace('what = "Does it."', 'what = ""'), "`what` says in a sentence"),
        ("kind = ", "is not valid TOML"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """A file that says something unknown, or lacks something, is refused by its name."""
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"bad\.toml") as caught:
        load_catalogue(tmp_path)
    assert message in caught.value.message


def test_names_must_be_new_and_known(tmp_path: Path) -> None:
    """An id is taken once; asking for what is neither an attack nor a kind is an error that lists the kinds."""
    (tmp_path / "nothing-done.toml").write_text(GOOD)
    with pytest.raises(ConfigError, match="nothing-done"):
        load_catalogue(tmp_path)
    with pytest.raises(ConfigError, match="no such folder"):
        load_catalogue(tmp_path / "nowhere")
    with pytest.raises(ConfigError) as caught:
        load_catalogue().only(("cheating",))
    assert "steers-judge" in str(caught.value)
