"""Gate `contamination`: the task is like none that is kept for measuring.

Owns: `GATE`, `guarded_by`. Invariant: what was compared with is named, also where it was nothing. A task is never
compared with the split that it stands in, and one kept for testing with nothing but sets that were named.
Must not know: how likeness is measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from practicum.curation.gates.contract import Case, Found, Gate, Surroundings
from practicum.curation.similarity.matches import Match
from practicum.curation.similarity.search import contamination
from practicum.records.task import Task
from practicum.records.tree import digest_of

_KEPT_FROM = {"test": (), "validation": ("test",)}  # other splits are kept from both


def guarded_by(split: str) -> tuple[str, ...]:
    """The splits of its own set that a task of `split` must not be like."""
    return _KEPT_FROM.get(split, ("test", "validation"))


async def _assess(case: Case) -> Found:
    around, split = case.around, case.task.split
    found = _matches(around, split).get(case.task.id, [])
    names = _compared(around, split)
    evidence = {
        "compared_with": names,
        "protected": _digests(around),
        "alike": [match.document() for match in found[:10]],
    }
    if found:
        first = found[0]
        what = "its files give away the gold of" if first.kind == "reveals" else "like"
        reason = f"{what} the protected {first.other} ({first.kind} {first.facet}, {first.score:.2f})"
        return Found(False, reason, evidence)
    if not any(names.values()):
        return Found(True, "no protected set was named, and the set has no split to protect", evidence)
    return Found(True, f"like none of {sum(names.values())} protected tasks", evidence)


def _matches(around: Surroundings, split: str) -> Mapping[str, Sequence[Match]]:
    key = f"contamination-{split}"
    if key not in around.known:
        mine = [task for task in around.tasks if task.split == split]
        protected = [*_own(around, split), *(task for tasks in around.protected.values() for task in tasks)]
        around.known[key] = contamination(mine, protected) if mine and protected else {}
    known: Mapping[str, Sequence[Match]] = around.known[key]
    return known


def _own(around: Surroundings, split: str) -> list[Task]:
    return [task for task in around.tasks if task.split in guarded_by(split)]


def _compared(around: Surroundings, split: str) -> dict[str, int]:
    if "splits" not in around.known:
        around.known["splits"] = Counter(task.split for task in around.tasks)
    own = {f"split {name}": around.known["splits"][name] for name in guarded_by(split)}
    return own | {name: len(tasks) for name, tasks in around.protected.items()}


def _digests(around: Surroundings) -> Mapping[str, str]:
    """Which state of each protected set that is: a digest over the digests of its tasks."""
    if "protected" not in around.known:
        around.known["protected"] = {
            name: digest_of(sorted(task.digest for task in tasks)) for name, tasks in around.protected.items()
        }
    known: Mapping[str, str] = around.known["protected"]
    return known


GATE = Gate("contamination", "2", "reading", "rejected", _assess, needs=("schema",), of_set=True)
