"""The text that two matching tasks share, to be shown to a person.

Owns: `Spans`.
Invariant: every run of the shown tokens stands in both tasks (for a renamed copy, with `v` for every name), and none of
it is boilerplate. Tasks are read again for it.
Must not know: how matches are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from practicum.curation.similarity.facets import Facets, facets_of
from practicum.curation.similarity.matches import Match
from practicum.curation.similarity.tokens import code_tokens, runs, shape_tokens, words
from practicum.records.task import Task

_SHOWN = 240  # characters
_REMEMBERED = 64  # tasks


class Spans:
    """Shows what tasks of `tasks` share with others."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._read = lru_cache(maxsize=_REMEMBERED)(lambda place: facets_of(tasks[place]))

    def shown(self, match: Match, place: int, shared: npt.NDArray[np.uint64], length: int) -> Match:
        """`match` of the task at `place` with its span: the longest stretch covered by `shared` runs of `length`."""
        facets = self._read(place)
        if match.kind == "renamed":  # all of it is shared, but for the names
            text = " ".join(shape_tokens(code_tokens(facets.code)))
        else:
            tokens = _tokens(facets, match.facet)
            start, stop = _longest(np.isin(runs(tokens, length), shared))
            text = " ".join(tokens[start : stop + length - 1 if stop > start else start])
        return replace(match, span=text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")


def _longest(hits: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Where the longest row of hits starts and ends."""
    edges = np.flatnonzero(np.diff(hits.astype(np.int8), prepend=0, append=0))
    if not len(edges):
        return 0, 0
    best = int(np.argmax(edges[1::2] - edges[::2]))
    return int(edges[2 * best]), int(edges[2 * best + 1])


def _tokens(facets: Facets, facet: str) -> list[str]:
    if facet == "instruction":
        return words(facets.instruction)
    if facet == "shape":
        return shape_tokens(code_tokens(facets.code))
    return code_tokens({"code": facets.code, "patch": facets.patch, "tests": facets.tests}[facet])
