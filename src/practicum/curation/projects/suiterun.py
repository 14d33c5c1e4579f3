"""What one run of a project's suite did, and how it is read from the driver's lines.

Owns: `SuiteRun`, `read_run`.
Invariant: a test counts as passed only where the judge would count it so: each phase reported once, plainly passed.
Must not know: boxes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import signal
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

TestOutcome = Literal["passed", "failed", "error", "skipped"]
Ended = Literal["done", "timeout", "endless", "crashed", "oom", "flood"]
_PHASES = ("setup", "call", "teardown")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_PLACE = re.compile(r"(?<![\w.])/(?:app|tests)/")
_MOST_COVERED = 256 << 20


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """Outcomes, wall seconds and short messages by id of a test.

    Every id that was asked for has an outcome; `error` is one that did not come to run or to its end, or fails outside
    its call. `messages` are of those that did not pass, without places on disk and addresses. `covered` are the lines
    of the project's own files by test and path; under "" those that ran while tests were collected. `ended` says how
    the run as a whole came to its end, `hung` which test was running then if it was cut off. `log` is the end of its
    output, `seconds_all` the wall time of the test process.
    """

    outcomes: Mapping[str, TestOutcome]
    seconds: Mapping[str, float]
    messages: Mapping[str, str]
    covered: Mapping[str, Mapping[str, frozenset[int]]] = field(default_factory=dict)
    ended: Ended = "done"
    hung: str = ""
    uncollected: tuple[str, ...] = ()
    log: str = ""
    seconds_all: float = 0.0

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(name for name, outcome in self.outcomes.items() if outcome == "passed")

    @property
    def failed(self) -> frozenset[str]:
        """Those that did not pass and were not skipped."""
        return frozenset(name for name, outcome in self.outcomes.items() if outcome in ("failed", "error"))


@dataclass(slots=True)
class _Seen:
    """What the lines said so far."""

    ids: list[str] = field(default_factory=list)
    phases: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)  # files that were not collected
    covered: dict[str, dict[str, frozenset[int]]] = field(default_factory=dict)
    started: str = ""
    over: bool = False


def read_run(line: Mapping[str, Any], ids: Sequence[str] | None, *, bounded: bool = False) -> SuiteRun:
    """The run that the driver's last `line` tells of; `ids` are those that were asked for, None for all.

    One that was `bounded` in its use of a processor, and killed, is endless.
    """
    seen = _Seen()
    for text in str(line.get("reports", "")).split("\n"):
        try:
            fields = json.loads(text) if text else []
        except ValueError:
            continue  # cut off in the middle, or written by a test
        if isinstance(fields, list) and fields and isinstance(fields[0], str):
            _take(seen, fields)
    how, status = str(line.get("how", "ended")), line.get("status")
    ended: Ended = "done"
    if how in ("timeout", "flood"):
        ended = "timeout" if how == "timeout" else "flood"
    elif bounded and isinstance(status, int) and status & 0x7F in (signal.SIGKILL, signal.SIGXCPU):
        ended = "endless"
    elif not seen.over or (isinstance(status, int) and status & 0x7F):
        ended = "crashed"
    wanted = list(ids) if ids is not None else list(dict.fromkeys([*seen.ids, *seen.broken]))
    outcomes = {name: _outcome(seen, name, ended) for name in wanted}
    hung = seen.started if ended != "done" and seen.started in outcomes else ""
    messages = {
        name: plain(seen.messages.get(name) or _missing(seen, name, ended, hung))
        for name, outcome in outcomes.items()
        if outcome in ("failed", "error")
    }
    return SuiteRun(
        outcomes=outcomes,
        seconds={name: round(seen.seconds.get(name, 0.0), 5) for name in wanted if name in seen.seconds},
        messages=messages,
        covered=seen.covered,
        ended=ended,
        hung=hung,
        uncollected=tuple(sorted(seen.broken)),
        log=plain(str(line.get("output", ""))[-4000:]),
        seconds_all=float(line.get("s", 0.0)),
    )


def plain(text: str) -> str:
    """`text` without places on the box's disk and addresses of objects."""
    return _ADDRESS.sub("0x…", _PLACE.sub("", text))


def _take(seen: _Seen, fields: list[Any]) -> None:
    match fields:
        case ["ids", [*ids]]:
            seen.ids = [name for name in ids if isinstance(name, str)]
        case ["start", str(name)]:
            seen.started = name
        case ["test", str(name), str(phase), str(outcome), int() | float() as seconds, str(message)]:
            seen.phases.setdefault(name, []).append((phase, outcome))
            seen.seconds[name] = seen.seconds.get(name, 0.0) + seconds
            if message and name not in seen.messages:
                seen.messages[name] = message
        case ["collect", str(name), str(message)]:
            seen.broken[name] = message
        case ["covered", str(packed)]:
            seen.covered = _covered(packed)
        case ["end", int()]:
            seen.over = True
        case _:
            pass  # of a test that wrote to the pipe


def _covered(packed: str) -> dict[str, dict[str, frozenset[int]]]:
    try:
        text = zlib.decompressobj().decompress(base64.b64decode(packed), _MOST_COVERED)
        by_path = json.loads(text)
        found: dict[str, dict[str, frozenset[int]]] = {}
        for path, by_test in by_path.items():
            for name, lines in by_test.items():
                found.setdefault(str(name), {})[str(path)] = frozenset(map(int, lines))
    except (ValueError, TypeError, AttributeError, binascii.Error, zlib.error):
        return {}
    return found


def _outcome(seen: _Seen, name: str, ended: Ended) -> TestOutcome:
    phases = seen.phases.get(name, [])
    if any(outcome == "failed" for phase, outcome in phases):
        return "failed" if any(pair == ("call", "failed") for pair in phases) else "error"
    if any(outcome == "skipped" for _, outcome in phases):
        return "skipped"
    if tuple(phase for phase, _ in phases) == _PHASES and all(outcome == "passed" for _, outcome in phases):
        return "passed"
    return "error"


def _missing(seen: _Seen, name: str, ended: Ended, hung: str) -> str:
    """Why there is no word on a test, or none that can be used."""
    if name == hung:
        return {"timeout": "it did not end in time", "endless": "it did not end"}.get(
            ended, "the test process ended while it ran"
        )
    if name in seen.broken:
        return seen.broken[name]
    for broken, why in seen.broken.items():
        if name.startswith(f"{broken}::"):
            return why
    if seen.broken:
        return next(iter(seen.broken.values()))
    if len(seen.phases.get(name, [])) > len(_PHASES):
        return "it reports more than one outcome (subtests)"
    if ended != "done":
        return f"not run: the run ended before ({ended})"
    return "there is no such test"
