"""What a project's tests do before anything is changed: which are steady, how long they take, what they reach.

Owns: `Baseline`, `baseline_of`.
Invariant: a test that was not found steady is never relied on.
Must not know: boxes, strategies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from practicum.curation.projects.steadiness import Survey


@dataclass(frozen=True, slots=True)
class Baseline:
    """The untouched project under its tests. Seconds are of one test; `overhead_s` is what a run takes beside them.

    `steady` are the tests that can be relied on, `left_out` the others, with the reason. `reach` holds, by path and
    line (1-based), the steady tests that ran the line.
    """

    steady: frozenset[str]
    left_out: Mapping[str, str]
    overhead_s: float
    seconds: Mapping[str, float]
    reach: Mapping[str, Mapping[int, frozenset[str]]]

    def reaching(self, lines: Mapping[str, Iterable[int]]) -> tuple[str, ...]:
        """The steady tests that run one of `lines`, fastest first."""
        found: set[str] = set()
        for path in lines:
            by_line = self.reach.get(path, {})
            for line in lines[path]:
                found |= by_line.get(line, frozenset())
        return self.fastest_first(found)

    def covers(self, path: str, line: int) -> bool:
        """Whether a steady test runs this line."""
        return bool(self.reach.get(path, {}).get(line))

    def fastest_first(self, ids: Iterable[str]) -> tuple[str, ...]:
        """`ids` by measured seconds, in steps of 10 ms so that noise decides little; ties by name."""
        return tuple(sorted(ids, key=lambda name: (round(self.seconds.get(name, 0.0), 2), name)))

    def duration(self, ids: Iterable[str]) -> float:
        """Seconds that `ids` took together."""
        return sum(self.seconds.get(name, 0.0) for name in ids)

    def within(self, ids: Sequence[str], seconds: float, most: int) -> tuple[str, ...]:
        """The fastest of `ids` that together take at most `seconds`, but at least one, and at most `most`."""
        return self._first(self.fastest_first(ids)[:most], seconds)

    def spread(self, ids: Sequence[str], seconds: float, most: int) -> tuple[str, ...]:
        """As `within`, but all test functions have a turn before one has another of its cases."""
        turns: Counter[str] = Counter()
        ranked: list[tuple[int, int, str]] = []
        for at, name in enumerate(self.fastest_first(ids)):
            function = name.partition("[")[0]
            ranked.append((turns[function], at, name))
            turns[function] += 1
        return self._first([name for _, _, name in sorted(ranked)[:most]], seconds)

    def _first(self, ids: Sequence[str], seconds: float) -> tuple[str, ...]:
        chosen: list[str] = []
        spent = 0.0
        for name in ids:
            spent += self.seconds.get(name, 0.0)
            if chosen and spent > seconds:
                break
            chosen.append(name)
        return tuple(chosen)


def baseline_of(found: Survey) -> Baseline:
    """What a survey of the untouched project says, by line."""
    reach: dict[str, dict[int, set[str]]] = {}
    for name in found.steady:
        for path, lines in found.covered.get(name, {}).items():
            by_line = reach.setdefault(path, {})
            for line in lines:
                by_line.setdefault(line, set()).add(name)
    return Baseline(
        steady=frozenset(found.steady),
        left_out=dict(found.left_out),
        overhead_s=max(0.0, min(run.seconds_all - sum(run.seconds.values()) for run in found.runs[:2])),
        seconds=dict(found.seconds),
        reach={path: {line: frozenset(ids) for line, ids in lines.items()} for path, lines in reach.items()},
    )
