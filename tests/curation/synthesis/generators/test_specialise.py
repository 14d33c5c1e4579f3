"""A family's program under given parameters holds nothing that they rule out."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.synthesis.generators.specialise import render

MODULE = '''
from __future__ import annotations

import json
import math


class P:
    names: tuple[str, ...] = ("a",)
    limit: int = 3
    loud: bool = False
    form: str = "x"


def shout(text: str) -> str:
    """Louder."""
    return text.upper()


def solve(words: list[str]) -> list[str]:
    """Says words."""
    found: list[str] = []
    for word in words:
        if P.limit and len(word) > P.limit:
            continue
        if P.form == "x":
            word = word + "x"
        elif P.form == "y":
            word = math.floor(1.5) * word
        if not P.loud or word in P.names:
            found.append(word)
        else:
            found.append(shout(word))
    return [word for word in found if P.loud or word]
'''


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path: Path = tmp_path_factory.mktemp("families") / "family.py"
    path.write_text(MODULE)
    spec = importlib.util.spec_from_file_location("family_of_a_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_ruled_out_disappears(family: ModuleType) -> None:
    """Branches, helpers, imports, types and docstrings that play no part are not in the text."""
    values = {"names": ("a",), "limit": 0, "loud": False, "form": "x"}
    assert render(family, ["solve"], values, {"solve": "say"}) == (
        "def say(words):\n    found = []\n    for word in words:\n"
        "        word = word + 'x'\n        found.append(word)\n"
        "    return [word for word in found if word]\n"
    )


@given(
    limit=st.integers(0, 3),
    loud=st.booleans(),
    form=st.sampled_from("xyz"),
    words=st.lists(st.sampled_from(["", "a", "ab", "abcd"])),
)
def test_it_does_what_the_family_does(family: ModuleType, limit: int, loud: bool, form: str, words: list[str]) -> None:
    """Rendered or not, the function gives the same results."""
    values: dict[str, Any] = {"names": ("a",), "limit": limit, "loud": loud, "form": form}
    space: dict[str, Any] = {}
    exec(render(family, ["solve"], values, {"solve": "say"}), space)
    for name, value in values.items():
        setattr(family.P, name, value)
    assert space["say"](words) == family.solve(words)


def test_an_unknown_parameter_is_an_error(family: ModuleType) -> None:
    """A program is never made with a parameter left open."""
    with pytest.raises(KeyError):
        render(family, ["solve"], {"limit": 1})
