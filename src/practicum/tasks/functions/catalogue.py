"""The functions: what they are called, take and do, a right body and a wrong one.

Owns: `CATALOGUE`, `Function`.
Invariant: names are distinct; a wrong body differs from the right one in something that its inputs show. Pure data.
Must not know: how tasks are made of it.

Kinds of inputs, a letter for each parameter, some with a digit: i whole number (i5: often one of the list before), n
whole number from 0 (n6: up to 6), p from 1, s word (s1: often a part of the word before), c one small letter (c1:
often one of the word before), t words with spaces, h with dashes, z with spaces around, q a word that may be a
palindrome, x one in varied case, y letters and digits, j digits, l list of whole numbers, L such a list with at least
one, w list of words, J of digits, a of truth values, g of lists, b truth value, d dict of words to whole numbers, k
often a key of the dict before.
"""

from __future__ import annotations

from dataclasses import dataclass

from practicum.tasks.functions.lists import LISTS
from practicum.tasks.functions.numeric import NUMBERS
from practicum.tasks.functions.tables import TABLES
from practicum.tasks.functions.texts import TEXTS


@dataclass(frozen=True, slots=True)
class Function:
    """`inputs` has a letter for each parameter; `right` and `wrong` are lines of a body, joined by line breaks."""

    name: str
    parameters: str
    inputs: str
    does: str
    right: str
    wrong: str
    topic: str


CATALOGUE: tuple[Function, ...] = tuple(
    Function(*row, topic=topic)
    for topic, rows in (("numbers", NUMBERS), ("text", TEXTS), ("lists", LISTS), ("tables", TABLES))
    for row in rows
)
