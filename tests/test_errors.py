"""The error vocabulary."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from practicum import errors
from practicum.errors import PracticumError

KINDS: list[type[PracticumError]] = sorted(
    (
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, PracticumError) and value is not PracticumError
    ),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fix", [None, "do this"])
def test_errors_survive_a_process_boundary(kind: type[PracticumError], fix: str | None) -> None:
    """A pickled error comes back as the same kind with the same message and fix; so does a copied one."""
    error = kind("it broke", fix=fix)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is kind
        assert (again.message, again.fix, again.kind, str(again)) == (error.message, fix, kind.__name__, str(error))


@pytest.mark.parametrize("kind", KINDS)
def test_exit_codes(kind: type[PracticumError]) -> None:
    """Bad data is 2, and an infrastructure fault is 3."""
    assert kind("x").exit_code == {"data": 2, "infrastructure": 3}[kind.category]


def test_the_fix_is_shown() -> None:
    """An error's text is its message, and its fix where there is one."""
    assert str(PracticumError("no such key", fix="remove it")) == "no such key\n  fix: remove it"
    assert str(PracticumError("no such key")) == "no such key"


def test_the_docstring_shows_the_tree() -> None:
    """The tree in the module's docstring is the tree of classes, with their categories."""
    tree: dict[str, tuple[str, str]] = {}
    above = ["PracticumError"]
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"    ([│ ]*)[├└]── (\w+) +(data|infrastructure) ", line):
            depth = len(match[1]) // 4 + 1
            tree[match[2]] = (above[depth - 1], match[3])
            above[depth:] = [match[2]]
    real = {kind.__name__: (kind.__bases__[0].__name__, kind.category) for kind in KINDS}
    assert tree == real
