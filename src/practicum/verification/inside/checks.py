"""What rewritten tests import: one check for each assertion.

Owns: `Checks` (`check`, `alter`, `quiet` for the tests, `taken` for the driver). Invariant: it knows neither which
alternative an assertion holds nor which is right; it counts, and lets the test go on. Must not know: the host's key.

A check takes an assertion's failure; with `broad`, any exception, where the assertion is about exceptions.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` itself would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any

FIRST = 64  # times that are told one by one
TEXT = 200  # characters of why


class Checks:
    """The checks of one test process. `failures` are exceptions by which a framework says that an assertion failed."""

    def __init__(self, failures: tuple[type[BaseException], ...]) -> None:
        self.failures: tuple[type[BaseException], ...] = (AssertionError, *failures)
        self.seen: dict[str, list[Any]] = {}

    def check(self, tag: str, broad: bool = False) -> Check:
        broader: tuple[type[BaseException], ...] = (*self.failures, Exception)
        return Check(self, tag, broader if broad else self.failures)

    def quiet(self) -> Quiet:
        """Where an exception was expected: nothing may be raised."""
        return Quiet()

    def alter(self, value: Any) -> Any:
        """Something of the same kind that is not equal to `value`."""
        kind = type(value)
        if kind is bool:
            return not value
        if kind in (int, float):
            other = value + 7 + 2 * abs(value)
            return other if other != value else 0
        if kind in (str, bytes):
            return value + (b"~" if kind is bytes else "~")
        if kind in (list, tuple):
            return value + kind(("~",))
        if kind in (set, frozenset):
            return value | {object()}
        if kind is dict:
            return {**value, object(): 0}
        return 0 if value is None else object()

    def note(self, tag: str, error: BaseException | None, taken: bool) -> None:
        row = self.seen.setdefault(tag, ["", 0, 0, ""])
        if len(row[0]) < FIRST:
            row[0] += "1" if error is None else "0" if taken else "x"
        row[1] += error is None
        row[2] += 1
        if error is not None and not row[3]:
            row[3] = (f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)[:TEXT]

    def taken(self) -> list[Any]:
        """`[tag, held, passed, total, why]` of what was asked since the last call.

        `held` has a sign for each of the first times: 1 held, 0 failed, x ended the test by another exception.
        """
        rows = [[tag, *row] for tag, row in self.seen.items()]
        self.seen.clear()
        return rows


class Check:
    """Notes whether its body went through."""

    def __init__(self, checks: Checks, tag: str, failures: tuple[type[BaseException], ...]) -> None:
        self.checks, self.tag, self.failures = checks, tag, failures

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        taken = isinstance(error, self.failures)
        self.checks.note(self.tag, error, taken)
        return taken


class Quiet:
    """A context that changes nothing. It can be asked for what contexts of expected exceptions give."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *ended: object) -> None:
        return None

    def __getattr__(self, name: str) -> Quiet:
        return self
