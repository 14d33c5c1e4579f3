"""A changed constant is another one of the same kind, whatever it is compared with."""

from __future__ import annotations

import ast
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.records.task import Verification
from practicum.records.tree import File
from practicum.verification.sentinels.guard import guard
from practicum.verification.sentinels.literals import alternatives, is_literal

FLAT = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
VALUES = st.recursive(
    FLAT | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.sets(st.integers(), min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def node_of(value: Any) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body


@settings(deadline=None)
@given(VALUES, st.integers(0, 2**32), st.integers(1, 3))
def test_alternatives_are_apart(value: Any, seed: int, count: int) -> None:
    """None equals the constant, none another alternative, as they are or in another order; the type stays."""
    found = [item[0] for item in alternatives([node_of(value)], random.Random(seed), count)]
    values = [value, *map(ast.literal_eval, found)]
    assert len(found) <= count
    for at, one in enumerate(values):
        assert all(one != other for other in values[:at])
        assert value is None or type(one) is type(value)


@settings(deadline=None)
@given(st.integers() | st.floats(-1e9, 1e9) | st.text(min_size=1), st.integers(0, 2**32))
def test_numbers_and_texts_have_alternatives(value: Any, seed: int) -> None:
    """As many as are asked for."""
    assert len(alternatives([node_of(value)], random.Random(seed), 1)) == 1


@settings(deadline=None)
@given(st.floats(-1e6, 1e6) | st.integers(-1000, 1000), st.floats(0, 100), st.integers(0, 2**32))
def test_the_gap_is_kept(value: float, gap: float, seed: int) -> None:
    """A number moves further than what it is compared with would tolerate."""
    for (other,) in alternatives([node_of(value)], random.Random(seed), 3, gap=gap):
        assert abs(ast.literal_eval(other) - value) > gap


@pytest.mark.parametrize("value", ["There are three items in the basket", "Empty!", b"The basket is full", "FizzBuzz"])
def test_texts_keep_what_they_are_made_of(value: Any) -> None:
    """Words or letters stand in another order, capitals where they stood: how common they are tells nothing."""
    for seed in range(20):
        for (other,) in alternatives([node_of(value)], random.Random(seed), 3):
            changed = ast.literal_eval(other)
            assert sorted(changed.lower()) == sorted(value.lower())
            assert changed[:1].isupper()
            if len(value.split()) > 3:
                assert sorted(changed.lower().split()) == sorted(value.lower().split())


@settings(deadline=None)
@given(st.lists(st.integers(), min_size=2, max_size=6).map(sorted), st.integers(0, 2**32))
def test_order_stays(values: list[int], seed: int) -> None:
    """A sorted list stays sorted: its order must not say that it is the author's."""
    for (other,) in alternatives([node_of(values)], random.Random(seed), 3):
        assert sorted(ast.literal_eval(other)) == ast.literal_eval(other)


def test_containers_can_be_disjoint() -> None:
    """An answer that is in one must not be in the other."""
    for seed in range(50):
        for (other,) in alternatives([node_of([1, 2, 3])], random.Random(seed), 3, disjoint=True):
            assert not {1, 2, 3} & set(ast.literal_eval(other))


@pytest.mark.parametrize("text", ["x", "f(1)", "...", "[1, x]", "{**a}", "{[1]: 2}", "[*a]", "1 + 1", "f'{x}'"])
def test_what_is_no_constant(text: str) -> None:
    """Names, calls and what cannot be evaluated are left alone."""
    assert not is_literal(ast.parse(text, mode="eval").body)


def test_what_stands_in_a_set_stays_hashable() -> None:
    """A None in a set of tuples never becomes a list, which no set can hold."""
    for seed in range(30):
        for (other,) in alternatives([node_of({(1, None), (2, 3)})], random.Random(seed), 3):
            assert isinstance(ast.literal_eval(other), set)


HUGE = math.factorial(200)  # more than any float


@pytest.mark.parametrize(
    ("body", "strong"),
    [
        (f"assert f(200) == {HUGE}", True),
        (f"assert f() == [1e999, {HUGE}]", True),
        (f"for n, want in [(200, {HUGE}), (201, {HUGE * 201})]:\n        assert f(n) == want", True),
        (f"assert abs(f() - {HUGE}) < 3", True),
        (f"assert abs(f() - 3) < {HUGE}", False),
        (f"assert f() == approx({HUGE}, rel=0, abs=3)", True),
        (f"assert f() == approx({HUGE})", False),
        (f"assert f() == approx(3, abs={HUGE})", False),
        (f"assert math.isclose(f(), 3, rel_tol={HUGE})", False),
        ("assertAlmostEqual(f(), 3, places=-400)", False),
    ],
)
def test_no_number_is_too_large_to_be_asked_about(body: str, strong: bool) -> None:
    """It has alternatives as others have, but none within a tolerance beyond what a float holds: they would hold."""
    source = f"import math\nfrom pytest import approx\nfrom m import f\n\ndef test_a():\n    {body}\n"
    name = "test_x.py::test_a"
    guarded = guard(Verification("pytest", {"test_x.py": File(source.encode())}, ("test_x.py",), (), (name,), ()), "n")
    assert (name in guarded.probes and guarded.probes[name].strong) is strong
