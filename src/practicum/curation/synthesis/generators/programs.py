"""The programs of one task as texts, and what they say to drawn inputs.

Owns: `Programs`, `programs_of`, `Row`, `rows_of`.
Invariant: an expected value was computed by the very text that is the gold, and the second solution agreed; what is run
here was written in this package, and ends on every input. The first row, which is shown, has much for the gold to do.
Must not know: forms of tasks, boxes.
"""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from practicum.curation.synthesis.generators.brief import Family
from practicum.curation.synthesis.generators.specialise import render
from practicum.errors import TaskError

_NAME = "<family>"
_TRIALS = 20  # inputs on which both solutions must agree before a task is made
_EXAMPLES = 60  # inputs of which one is shown; of large ones fewer
_LARGE = 2500  # characters of one


@dataclass(frozen=True, slots=True)
class Programs:
    """`gold` and `second` define `inner`, and `reference` defines `make` and `solve`.

    `function` is what the task asks for, in the module at `path`: `inner` itself, or a function around it.
    """

    gold: str
    second: str
    reference: str
    inner: str
    function: str
    path: str


@dataclass(frozen=True, slots=True)
class Row:
    """One input, as the arguments of a call, and what must come of it."""

    args: list[Any]
    expected: Any


def programs_of(family: Family, values: Mapping[str, Any], path: str) -> Programs:
    """The family's functions under these parameters."""
    function = str(values["function"])
    inner = "changed" if family.form == "folder" else function
    own = family.programs
    return Programs(
        gold=render(own, ["solve"], values, {"solve": inner}),
        second=render(own, ["again"], values, {"again": inner}),
        reference=render(own, ["make", "solve"], values),
        inner=inner,
        function=function,
        path=path,
    )


def rows_of(programs: Programs, count: int, seed: str) -> list[Row]:
    """`count` distinct inputs with their results; trivial results (nothing at all) are rare among them.

    The first is the example: of many inputs the one that shows most of the rules, each twice where it can be.

    Raises `TaskError` where the second solution disagrees, or there are not that many inputs: the family is at fault.
    """
    make, solve = loaded(programs.reference, "make"), loaded(programs.reference, "solve")
    again = loaded(programs.second, programs.inner)
    shown = _example(make, solve, random.Random(f"{seed}/example"))
    rng, rows, seen = random.Random(seed), list[Row](), set[str]()
    for number in range(_TRIALS * (count + 1)):
        args = make(rng) if rows else shown
        expected = solve(*copy.deepcopy(args))
        other = again(*copy.deepcopy(args))
        if repr(other) != repr(expected) and other != expected:
            raise TaskError(f"{programs.path}: the two solutions disagree on {args!r}: {expected!r} and {other!r}")
        if repr(args) in seen or (not expected and number % 10):
            continue
        seen.add(repr(args))
        rows.append(Row(args, expected))
        if len(rows) >= count and number >= _TRIALS:
            return rows[:count]
    raise TaskError(f"{programs.path}: no {count} distinct inputs in {_TRIALS * (count + 1)} draws")


def _example(make: Callable[..., Any], solve: Callable[..., Any], rng: random.Random) -> list[Any]:
    """Arguments that lead through most of `solve`, each part counted twice at most; of equal ones the shortest.

    Those of which next to nothing comes are taken only where there are no others.
    """
    drawn, fruitful = [make(rng)], 0
    wanted = _EXAMPLES if len(repr(drawn[0])) < _LARGE else _EXAMPLES // 10
    while fruitful < wanted and len(drawn) < 10 * wanted:
        drawn.append(make(rng))
        fruitful += len(solve(*copy.deepcopy(drawn[-1]))) > 1
    drawn = [args for args in drawn if len(solve(*copy.deepcopy(args))) > 1] or drawn
    return max(drawn, key=lambda args: (*_reach(solve, args), -len(repr(args))))


def _reach(solve: Callable[..., Any], args: Sequence[Any]) -> tuple[int, int]:
    """How much comes of a call (2 is enough), and how much it runs: instructions, each counted twice at most."""
    times: dict[tuple[str, int, int], int] = {}

    def watch(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if code.co_filename != _NAME:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode":
            place = (code.co_name, code.co_firstlineno, frame.f_lasti)
            times[place] = min(2, times.get(place, 0) + 1)
        return watch

    given, before = copy.deepcopy(list(args)), sys.gettrace()
    sys.settrace(watch)
    try:
        result = solve(*given)
    finally:
        sys.settrace(before)
    return min(2, len(result)), sum(times.values())


def loaded(text: str, name: str) -> Callable[..., Any]:
    """Function `name` of a program of this package."""
    space: dict[str, Any] = {}
    exec(compile(text, _NAME, "exec"), space)
    found: Callable[..., Any] = space[name]
    return found
