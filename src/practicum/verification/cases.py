"""Plain cases: reading them, and comparing what came back.

Owns: `Case`, `read_cases`, `judge_answer`.
Invariant: comparison is exact in type as well as in value, happens here and only here, and reads the candidate's
bytes as bounded JSON. Pure. Must not know: boxes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from practicum.errors import TaskError
from practicum.verification.inside.values import NotPlain, decode, encode

_KEYS = frozenset({"id", "args", "kwargs", "expected", "raises", "approx"})


@dataclass(frozen=True, slots=True)
class Case:
    """One call and what must come of it: `expected`, or an exception whose class is named `raises`.

    `approx` is the relative and absolute tolerance for floats in `expected`; None asks for equality.
    """

    id: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    expected: Any = None
    raises: str | None = None
    approx: float | None = None


def read_cases(text: bytes, where: str) -> list[Case]:
    """Cases of a JSON Lines file; values beyond JSON are tagged as in `inside.values`.

    Raises `TaskError` naming `where` and the line.
    """
    cases: list[Case] = []
    for number, line in enumerate(text.split(b"\n"), 1):
        if line.strip():
            cases.append(_case(line, f"{where} line {number}"))
    ids = [case.id for case in cases]
    if len(set(ids)) != len(ids):
        raise TaskError(f"{where}: two cases have one id")
    return cases


def _case(line: bytes, where: str) -> Case:
    try:
        row = json.loads(line)
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise TaskError(f"{where}: a case is an object with an `id`")
        unknown = sorted(row.keys() - _KEYS)
        if unknown:
            raise TaskError(f"{where}: unknown key `{unknown[0]}`")
        if ("expected" in row) == ("raises" in row):
            raise TaskError(f"{where}: a case has either `expected` or `raises`")
        args, kwargs = decode(row.get("args", [])), decode(row.get("kwargs", {}))
        expected = decode(row.get("expected"))
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{where}: {error}") from None
    raises, approx = row.get("raises"), row.get("approx")
    if not isinstance(args, list) or not isinstance(kwargs, dict) or any(type(k) is not str for k in kwargs):
        raise TaskError(f"{where}: `args` is a list and `kwargs` an object")
    if not (raises is None or isinstance(raises, str)) or not (approx is None or type(approx) in (int, float)):
        raise TaskError(f"{where}: `raises` is the name of an exception, `approx` a number")
    return Case(row["id"], tuple(args), kwargs, expected, raises, approx)


def judge_answer(case: Case, text: str) -> str | None:
    """None where the candidate's answer `text` is right, else why it is not. Never raises for hostile text."""
    try:
        told = json.loads(text)
        if not isinstance(told, dict) or len(told) != 1:
            return "the answer cannot be read"
        if "unfit" in told:
            return f"returned something that is {str(told['unfit'])[:100]}"
        if "raised" in told:
            names = told["raised"]
            if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
                return "the answer cannot be read"
            wanted = case.raises
            if wanted is not None and (wanted in names or f"builtins.{wanted}" in names):
                return None
            return f"raised {names[0][:100]}" + (f", not {wanted}" if wanted else "")
        value = decode(told["value"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "the answer cannot be read"
    if case.raises is not None:
        return f"returned {_brief(value)}, but {case.raises} was to be raised"
    if same(case.expected, value, case.approx):
        return None
    return f"returned {_brief(value)}, not {_brief(case.expected)}"


def same(expected: Any, value: Any, approx: float | None = None) -> bool:
    """Equal in value and type, all the way down; NaN equals NaN; floats within `approx` where given."""
    if type(expected) is not type(value):
        return False
    if isinstance(expected, float):
        if approx is not None and math.isfinite(expected):
            return math.isclose(expected, value, rel_tol=approx, abs_tol=approx)
        return expected == value or (math.isnan(expected) and math.isnan(value))
    if isinstance(expected, (list, tuple)):
        return len(expected) == len(value) and all(
            same(one, other, approx) for one, other in zip(expected, value, strict=True)
        )
    if isinstance(expected, dict):
        theirs = {_key(key): item for key, item in value.items()}
        ours = {_key(key): item for key, item in expected.items()}
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key], approx) for key in ours)
    if isinstance(expected, (set, frozenset)):
        return sorted(map(_key, expected)) == sorted(map(_key, value))
    return bool(expected == value)


def _key(value: Any) -> str:
    """A text that tells apart what `==` does not, such as 1, 1.0 and True."""
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(map(_key, value))) + "}"
    if isinstance(value, tuple):
        return "(" + ",".join(map(_key, value)) + ")"
    return encode(value)


def _brief(value: Any) -> str:
    try:
        text = encode(value)
    except NotPlain as why:
        return f"something {why}"
    return text if len(text) <= 120 else text[:117] + "..."
