"""How hard tasks are: what reference policies came to on them, and what may be said of that.

Owns: `Measured`, `Stratum`, `Opinion`, `stratum`, `standing`, `opinion`, `stated_rate`; the file `difficulty.jsonl`
beside a task set (`difficulty_path`, `read_difficulty`, `append_measured`).
Invariant: a stratum follows from the interval of the success rate, never from the rate alone: where the interval spans
a bound, it is undetermined. What could not be judged is no failure, and is counted apart. Rows are only ever added.
Must not know: how attempts are made.

Sources: pass@k as M. Chen et al. (arXiv 2107.03374) estimate it without bias; the interval is Wilson's.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from practicum.curation.ledger import taskset_folder
from practicum.errors import StoreError
from practicum.evaluation.statistics import pass_at_k, wilson
from practicum.trajectories.durable import append_line, cut_torn_line, failed

FILE = "difficulty.jsonl"
SCHEMA = 1
EASY_FROM, HARD_UP_TO = 0.75, 0.25
"""Success rates that bound the strata. Twelve attempts can tell: 12 of 12 is easy, 6 of 12 medium, 0 of 12 hard."""
STATED_GAP = 0.25
"""A stated difficulty further than this from the measured rate is flagged."""
LEAST = 4
"""Judged attempts below which equal outcomes say too little to set a task aside."""
NO_REFERENCE = frozenset({"oracle", "noop"})
"""Policies that know the answer, or do nothing: what they come to says nothing about difficulty."""

Stratum = Literal["easy", "medium", "hard", "undetermined"]
Standing = Literal["useful", "park", "retire", "unmeasured"]
"""park: no attempt passed. retire: every attempt passed. Either is kept: a better policy may change it."""

_STATED: Mapping[str, float] = {
    "trivial": 0.875,
    "very easy": 0.875,
    "easy": 0.875,
    "medium": 0.5,
    "moderate": 0.5,
    "hard": 0.125,
    "very hard": 0.125,
    "expert": 0.125,
}


@dataclass(frozen=True, slots=True)
class Measured:
    """`passed` of `judged` attempts of one policy at one task, at one version and under one harness.

    `unscorable` attempts met a fault of the infrastructure, `invalid` ones a task at fault; neither is among `judged`.
    `harness` says by what loop and budgets; `seed` is that of the first attempt; `date` is UTC, ISO 8601.
    """

    digest: str
    task: str
    policy: str
    version: str
    harness: Mapping[str, Any] = field(default_factory=dict)
    judged: int = 0
    passed: int = 0
    unscorable: int = 0
    invalid: int = 0
    seed: int = 0
    date: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.passed <= self.judged or min(self.unscorable, self.invalid) < 0:
            raise ValueError(f"{self.passed} passed of {self.judged} judged")

    @property
    def attempts(self) -> int:
        """All that were made, judged or not."""
        return self.judged + self.unscorable + self.invalid

    @property
    def rate(self) -> float | None:
        return self.passed / self.judged if self.judged else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the success rate; (0, 1) where nothing was judged."""
        return wilson(self.passed, self.judged)

    def pass_at(self, k: int) -> float | None:
        """Chance that one of `k` attempts passes, estimated without bias; None with fewer than `k` judged."""
        return pass_at_k(self.judged, self.passed, k) if 1 <= k <= self.judged else None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What may be pooled: the same work, policy, version and harness."""
        return self.digest, self.policy, self.version, json.dumps(dict(self.harness), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Opinion:
    """What may be said of one task from all that was measured on it, for a gate, a report or a release."""

    stratum: Stratum
    standing: Standing
    stated: str | None
    stated_off: bool
    reason: str


def stratum(measured: Measured) -> Stratum:
    """Where the interval of the success rate lies as a whole. Pure."""
    low, high = measured.interval
    if low >= EASY_FROM:
        return "easy"
    if high <= HARD_UP_TO:
        return "hard"
    return "medium" if low >= HARD_UP_TO and high <= EASY_FROM else "undetermined"


def stratum_of_rate(rate: float) -> Stratum:
    """The stratum that a success rate which is known for sure, or only stated, lies in."""
    if rate >= EASY_FROM:
        return "easy"
    return "hard" if rate <= HARD_UP_TO else "medium"


def references(measured: Sequence[Measured]) -> list[Measured]:
    """Those of `measured` that say something about difficulty, strongest policy (by its own rate) first."""
    told = [each for each in measured if each.policy not in NO_REFERENCE and each.judged]
    return sorted(told, key=lambda each: (-(each.rate or 0.0), each.key))


def standing(measured: Sequence[Measured]) -> Standing:
    """Whether a task can teach the reference policies anything: a candidate to park or to retire, never to delete."""
    known = references(measured)
    if sum(each.judged for each in known) < LEAST:
        return "unmeasured"
    if all(each.passed == 0 for each in known):
        return "park"
    return "retire" if all(each.passed == each.judged for each in known) else "useful"


def stated_rate(stated: str | None) -> float | None:
    """The success rate that a stated difficulty stands for (the middle of its stratum); None where it names none."""
    return _STATED.get(stated.strip().lower()) if stated else None


def opinion(measured: Sequence[Measured], stated: str | None = None) -> Opinion:
    """What `measured` come to for one task whose stated difficulty is `stated`. Pure.

    The stratum is that of the reference policy with the highest rate: a task is hard where even the best finds it so.
    """
    known = references(measured)
    where = standing(measured)
    if not known:
        return Opinion("undetermined", where, stated, False, "no reference policy was measured on it")
    best = known[0]
    low, high = best.interval
    expected = stated_rate(stated)
    off = expected is not None and best.rate is not None and abs(expected - best.rate) > STATED_GAP
    said = f"{best.policy}: {best.passed} of {best.judged} passed ({low:.0%} to {high:.0%})"
    if off:
        said += f"; stated as {stated!r}, which is more than {STATED_GAP} away"
    return Opinion(stratum(best), where, stated, off, said)


def difficulty_path(taskset: Path) -> Path:
    """Where what was measured on the tasks at `taskset` is kept."""
    return taskset_folder(taskset) / ".practicum" / FILE


def append_measured(path: Path, row: Measured) -> None:
    """Add one row, on the disk when this returns. Raises `StoreError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        cut_torn_line(path)
    except OSError as error:
        raise failed(path, error) from error
    append_line(path, json.dumps({"schema": SCHEMA, **asdict(row)}, sort_keys=True).encode(), sync=True)


def read_rows(path: Path) -> list[Measured]:
    """All rows as they were added; none where there is no file. Raises `StoreError` that names a damaged line."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last line break is empty or torn
    except FileNotFoundError:
        return []
    except OSError as error:
        raise failed(path, error) from error
    return [_row(path, number, line) for number, line in enumerate(lines, 1)]


def read_difficulty(path: Path) -> dict[str, list[Measured]]:
    """By task digest what is known, rows of the same policy, version and harness added up, sorted by policy.

    Raises `StoreError`.
    """
    pooled: dict[tuple[str, str, str, str], Measured] = {}
    for row in read_rows(path):
        known = pooled.get(row.key)
        pooled[row.key] = row if known is None else add(known, row)
    found: defaultdict[str, list[Measured]] = defaultdict(list)
    for key in sorted(pooled):
        found[pooled[key].digest].append(pooled[key])
    return dict(found)


def add(known: Measured, more: Measured) -> Measured:
    """Both together, dated as the later. Raises `ValueError` where they may not be pooled."""
    if known.key != more.key:
        raise ValueError(f"{known.key} and {more.key} measure different things")
    return replace(
        known,
        judged=known.judged + more.judged,
        passed=known.passed + more.passed,
        unscorable=known.unscorable + more.unscorable,
        invalid=known.invalid + more.invalid,
        date=max(known.date, more.date),
    )


def _row(path: Path, number: int, line: bytes) -> Measured:
    try:
        row = json.loads(line)
        if row.pop("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return Measured(**row)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(
            f"{path} line {number} is no measurement: {error}", fix="remove the line to go on without it"
        ) from error
