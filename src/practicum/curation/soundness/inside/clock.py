"""Moves what Python code of a box takes for the time of day; loaded as its `sitecustomize`.

Invariant: only the present moves: given times are read as ever, and clocks that measure how long something takes
(`monotonic`, `perf_counter`, …) go on as they are. Must not know: tests, judges.
"""

from __future__ import annotations

import datetime
import os
import time
from datetime import date as real_date
from datetime import datetime as real_datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SHIFT_S = int(os.environ.get("PRACTICUM_CLOCK_S", "0"))
real_time, real_time_ns, real_clock_gettime = time.time, time.time_ns, time.clock_gettime


def moved_time() -> float:
    return real_time() + SHIFT_S


def moved_time_ns() -> int:
    return real_time_ns() + SHIFT_S * 10**9


def moved_clock_gettime(clock: int) -> float:
    return real_clock_gettime(clock) + (SHIFT_S if clock == time.CLOCK_REALTIME else 0)


def of_now(real: Any) -> Any:
    """`real`, a function of seconds, which takes the present where none are given."""
    return lambda secs=None: real(moved_time() if secs is None else secs)


class Meta(type):
    """Makes what the real classes made instances of the replaced ones."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, cls.__mro__[1]) if cls in (Date, DateTime) else type.__instancecheck__(cls, instance)
        )

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.__mro__[1]) if cls in (Date, DateTime) else type.__subclasscheck__(cls, other)


class Date(real_date, metaclass=Meta):
    def __new__(cls, *given: Any, **named: Any) -> Any:
        return real_date(*given, **named) if cls is Date else real_date.__new__(cls, *given, **named)

    @classmethod
    def today(cls) -> Any:
        return cls.fromtimestamp(moved_time())


class DateTime(real_datetime, metaclass=Meta):
    def __new__(cls, *given: Any, **named: Any) -> Any:
        return real_datetime(*given, **named) if cls is DateTime else real_datetime.__new__(cls, *given, **named)

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.fromtimestamp(moved_time(), tz)

    @classmethod
    def today(cls) -> Any:
        return cls.fromtimestamp(moved_time())

    @classmethod
    def utcnow(cls) -> Any:
        return cls.fromtimestamp(moved_time(), datetime.timezone.utc).replace(tzinfo=None)  # noqa: UP017  a box's Python may be old


def install() -> None:
    """Put the moved clock in the place of the real one."""
    real_strftime = time.strftime
    time.time, time.time_ns, time.clock_gettime = moved_time, moved_time_ns, moved_clock_gettime
    time.localtime, time.gmtime, time.ctime = map(of_now, (time.localtime, time.gmtime, time.ctime))
    time.strftime = lambda form, when=None: real_strftime(form, time.localtime() if when is None else when)
    for replaced, name in ((Date, "date"), (DateTime, "datetime")):
        replaced.__name__ = replaced.__qualname__ = name
        replaced.__module__ = "datetime"
        setattr(datetime, name, replaced)


if __name__ == "sitecustomize":
    install()
