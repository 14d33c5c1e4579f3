"""Gate `duplicates`: no other task of the set is the same work.

Owns: `GATE`. Invariant: of tasks that are alike the first by id that passes everything else stays, and the others name
it. Must not know: how likeness is measured.
"""

from __future__ import annotations

from practicum.curation.gates.contract import Case, Found, Gate
from practicum.curation.similarity.matches import Match
from practicum.curation.similarity.search import near_duplicates


async def _assess(case: Case) -> Found:
    around = case.around
    if "duplicates" not in around.known:
        around.known["duplicates"] = near_duplicates(around.tasks)
    alike: list[Match] = around.known["duplicates"].get(case.task.id, [])
    first = next((match for match in alike if match.other in around.kept), None)
    evidence = {"compared_with": max(0, len(around.tasks) - 1), "alike": [match.document() for match in alike[:10]]}
    if first is not None:
        return Found(False, f"the same work as {first.other} ({first.kind} {first.facet}, {first.score:.2f})", evidence)
    if alike:
        return Found(True, f"kept of {len(alike) + 1} that are alike", evidence)
    return Found(True, f"like none of {evidence['compared_with']} others", evidence)


GATE = Gate("duplicates", "1", "reading", "rejected", _assess, needs=("schema",), of_set=True)
