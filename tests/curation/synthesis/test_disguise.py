"""Disguised variants keep their meaning and hide what they are."""

from __future__ import annotations

import random
from typing import Any

import pytest

from practicum.curation.synthesis.disguise import (
    excerpt_of,
    put_back,
    rewritten,
    right_variants,
    with_decoys,
    wrong_variants,
)
from practicum.verification.redteam.variants import Source

TEXT = '''"""Shapes."""

# a comment that stays
LIMIT = 10


class Box:
    """A box."""

    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self, scale=1):
        """Its area."""
        if scale < 0:
            raise ValueError("scale")
        total = self.width * self.height * scale
        return min(total, LIMIT * LIMIT)


def between(number, low, high):
    """Whether number lies between the two."""
    # ends included
    if number >= low and number <= high:
        return True
    return False


def evens(numbers):
    found = []
    for number in numbers:
        if number % 2 == 0:
            found.append(number)
    return found
'''
SOURCE = Source(TEXT, ("Box.area", "between", "evens"))


def behaviour(text: str) -> list[Any]:
    space: dict[str, Any] = {"__name__": "m"}
    exec(compile(text, "m.py", "exec"), space)

    def tried(call: Any) -> Any:
        try:
            return call()
        except Exception as error:  # noqa: BLE001  what is raised is behaviour
            return type(error).__name__

    box = space["Box"](3, 40)
    found = [tried(lambda s=s: box.area(s)) for s in (-1, 0, 1, 2)] + [box.area()]
    found += [space["between"](n, 2, 4) for n in range(6)]
    return [*found, space["evens"]([1, 2, 3, 4, 0])]


@pytest.mark.parametrize("seed", range(6))
def test_right_variants_do_what_the_original_does(seed: int) -> None:
    """Each right variant behaves as the original, and none has its text."""
    made = right_variants(SOURCE, 4, str(seed))
    assert len(made) == 4
    assert all(behaviour(text) == behaviour(TEXT) for text in made)
    assert TEXT not in made


@pytest.mark.parametrize("seed", range(3))
def test_wrong_variants_are_disguised_mutants(seed: int) -> None:
    """Most mutants behave otherwise, and what tells them is in right variants as well."""
    wrong = wrong_variants(SOURCE, 12, str(seed))
    other = [each for each in wrong if behaviour_or_error(each.text) != behaviour(TEXT)]
    assert len(other) > len(wrong) / 2
    assert wrong_variants(SOURCE, 12, str(seed)) == wrong


def behaviour_or_error(text: str) -> Any:
    try:
        return behaviour(text)
    except Exception as error:  # noqa: BLE001  a mutant may do anything
        return type(error).__name__


def test_the_rest_of_the_file_stays() -> None:
    """What is not one of the functions is left as it is written."""
    made = put_back(SOURCE, rewritten(excerpt_of(SOURCE), random.Random(1)) or "")
    assert "# a comment that stays\nLIMIT = 10\n" in made
    assert "    def __init__(self, width, height):\n        self.width = width\n" in made


def test_a_decoy_is_never_run() -> None:
    """The body of another variant is in the text, and changes nothing."""
    other = TEXT.replace("number % 2 == 0", "number % 3 == 7")
    for seed in range(8):
        text = with_decoys(TEXT, SOURCE.names, other, random.Random(seed))
        assert "number % 3 == 7" in text
        assert behaviour(text) == behaviour(TEXT)


def test_pieces_of_text_do_not_tell() -> None:
    """No line of the original stands in all right variants and is missing in most mutants."""
    right = right_variants(SOURCE, 4, "s")
    wrong = [each.text for each in wrong_variants(SOURCE, 12, "s") if behaviour_or_error(each.text) != behaviour(TEXT)]
    for line in {line.strip() for line in TEXT.splitlines() if line.strip()}:
        if all(line in text for text in right):
            assert sum(line not in text for text in wrong) <= len(wrong) // 2, line
