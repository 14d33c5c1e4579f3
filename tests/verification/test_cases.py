"""Plain values go out and come back exactly; comparison tells apart what `==` does not."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.errors import TaskError
from practicum.verification.cases import Case, judge_answer, read_cases, same
from practicum.verification.inside.values import NotPlain, decode, encode

FLAT = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5)
KEYS = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.tuples(st.integers(), st.text(max_size=2))
VALUES = st.recursive(
    FLAT | st.sets(KEYS, max_size=3) | st.frozensets(KEYS, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS | st.sampled_from(["$tuple", "$"]), inner, max_size=3)
    ),
    max_leaves=8,
)


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Everything:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@given(VALUES)
def test_values_survive_the_way(value: Any) -> None:
    """Encoding and decoding gives the same value, in the same types."""
    assert same(value, decode(json.loads(encode(value))))


@given(VALUES, VALUES)
def test_same_is_no_wider_than_equality(one: Any, other: Any) -> None:
    """What is the same has the same type and, NaN aside, is equal."""
    assert same(one, one)
    if same(one, other) and "nan" not in repr(one):
        assert type(one) is type(other)
        assert one == other


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (1, True),
        (1, 1.0),
        ([1], (1,)),
        ({1}, {True}),
        ({1: 0}, {True: 0}),
        ({1}, frozenset({1})),
        ("a", b"a"),
        (0, None),
    ],
)
def test_types_count(expected: Any, value: Any) -> None:
    """Values that Python calls equal, or nearly so, differ where their types do."""
    assert not same(expected, value)


@pytest.mark.parametrize("value", [Liar(1), Everything(), [Everything()], {"a": Liar(2)}, (Liar(1),), object, 1j])
def test_only_exact_plain_types_are_written(value: Any) -> None:
    """Subclasses and objects that equal everything do not pass as values."""
    with pytest.raises(NotPlain):
        encode(value)


def test_depth_and_size_are_bounded() -> None:
    """Endless nesting and large texts are refused, not written."""
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotPlain, match="deep"):
        encode(loop)
    with pytest.raises(NotPlain, match="large"):
        encode("x" * 1000, 100)


@pytest.mark.parametrize(
    ("case", "answer", "right"),
    [
        (Case("a", expected=3), '{"value":3}', True),
        (Case("a", expected=3), '{"value":3.0}', False),
        (Case("a", expected=0.3, approx=1e-9), '{"value":0.30000000000000004}', True),
        (Case("a", expected=0.3), '{"value":0.30000000000000004}', False),
        (Case("a", expected=[1.0, 2.0], approx=1e-3), '{"value":[1.0001,2]}', False),
        (Case("a", raises="ValueError"), '{"raised":["m.Mine","builtins.ValueError","builtins.object"]}', True),
        (Case("a", raises="m.Mine"), '{"raised":["m.Mine","builtins.ValueError"]}', True),
        (Case("a", raises="ValueError"), '{"raised":["m.ValueError","builtins.object"]}', False),
        (Case("a", raises="ValueError"), '{"value":null}', False),
        (Case("a", expected=None), '{"raised":["builtins.KeyError"]}', False),
        (Case("a", expected=None), '{"unfit":"not a plain value: X"}', False),
    ],
)
def test_answers(case: Case, answer: str, right: bool) -> None:
    """A value must be the expected one, an exception the named one."""
    assert (judge_answer(case, answer) is None) == right


@given(st.text() | VALUES.map(encode) | st.builds('{{"value":{}}}'.format, st.text()))
def test_hostile_answers_are_wrong_not_fatal(text: str) -> None:
    """Whatever bytes come back, the judge goes on, and without the right value there is no pass."""
    assert judge_answer(Case("a", expected=math.pi), text) is not None


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("{", "line 2"),
        ('{"args": [1], "expected": 1}', "`id`"),
        ('{"id": "x", "args": [1]}', "either `expected` or `raises`"),
        ('{"id": "x", "expect": 1, "expected": 1}', "unknown key `expect`"),
        ('{"id": "x", "args": 5, "expected": 1}', "`args` is a list"),
        ('{"id": "x", "expected": {"$odd": 1}}', "$odd"),
        ('{"id": "first", "expected": 1}', "one id"),
    ],
)
def test_bad_case_files_are_named(line: str, word: str) -> None:
    """A malformed case says which line is wrong and why."""
    with pytest.raises(TaskError) as caught:
        read_cases(b'{"id": "first", "expected": 1}\n' + line.encode(), "tests/cases.jsonl")
    assert word in str(caught.value)


def test_tags_give_what_json_lacks() -> None:
    """Tuples, sets and bytes are written with tags."""
    [case] = read_cases(b'{"id": "x", "args": [{"$tuple": [1]}], "expected": {"$set": [1, 2]}}', "c")
    assert case.args == ((1,),)
    assert case.expected == {1, 2}
