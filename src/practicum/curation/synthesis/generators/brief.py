"""What a family offers: parameters, wording, inputs and solutions.

Owns: `Brief`, `Family`, `chosen`.
Invariant: pure; everything is drawn from the generator that is passed in.
Must not know: tasks, boxes.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

Form = Literal["plain", "folder", "file"]
"""plain: a function of texts that returns data. folder: a function that changes the files of a folder. file: no
program at all, but a file of results that is to be made from one that lies in the workspace."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What a person is told. `goal` is a paragraph; the others are lists of sentences.

    `rules` stand in the order in which they are to be applied where that matters.
    """

    goal: str
    inputs: Sequence[str]
    rules: Sequence[str]
    result: Sequence[str]


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of work. `programs` has `make`, `solve` and `again` (and `written`, for results in a file), which read
    parameters as `P.name`; `words` has `draw` and `describe`.

    `draw(rng, options)` gives all parameters, with these of `options` switched on; `describe(values, rng)` a `Brief`.
    """

    name: str
    form: Form
    programs: ModuleType
    words: ModuleType

    @property
    def options(self) -> tuple[str, ...]:
        """Rules that may be there or not."""
        found: tuple[str, ...] = self.programs.OPTIONS
        return found

    @property
    def functions(self) -> tuple[str, ...]:
        """Names that the work's function may have."""
        found: tuple[str, ...] = self.programs.FUNCTIONS
        return found

    @property
    def files(self) -> dict[str, str]:
        """Under which names texts that `solve` takes are shown; others are tables, and named after the parameter."""
        return dict(vars(self.programs).get("FILES", {}))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of `solve`."""
        return tuple(inspect.signature(self.programs.solve).parameters)


def chosen(rng: random.Random, options: Sequence[str], count: int) -> frozenset[str]:
    """`count` of `options`, or all where there are fewer."""
    return frozenset(rng.sample(sorted(options), min(count, len(options))))


def said(values: Sequence[str], last: str = "and") -> str:
    """A list as people write it: `a, b and c`, each in backquotes."""
    quoted = [f"`{value}`" for value in values]
    return f"{', '.join(quoted[:-1])} {last} {quoted[-1]}" if len(quoted) > 1 else "".join(quoted)
