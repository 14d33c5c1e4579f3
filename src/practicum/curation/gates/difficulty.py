"""Gate `difficulty`: the task can teach somebody something.

Owns: `GATE`. Invariant: a stratum comes from measured attempts alone; without them the task's structure is
told, and the pass says that it is provisional. Where reference policies never or always pass, the task is set aside,
not lost. Must not know: how attempts are made.
"""

from __future__ import annotations

from typing import Any

from practicum.curation.difficulty import Measured, opinion, read_difficulty, references
from practicum.curation.gates.contract import Case, Found, Gate, NotAssessed

PROVISIONAL = "provisional: no reference policy was measured on it"
_SMALL, _LARGE = 3, 30  # changed lines up to which, and from which, structure alone suggests easy or hard
FILE = "difficulty.jsonl"


async def _assess(case: Case) -> Found:
    around = case.around
    if "difficulty" not in around.known:
        path = around.state / FILE if around.state is not None else None
        around.known["difficulty"] = read_difficulty(path) if path is not None else {}
    measured: list[Measured] = around.known["difficulty"].get(case.task.digest, [])
    known = references(measured)
    features: dict[str, int] = case.results["gold"].evidence["structure"]
    said = opinion(measured, case.task.difficulty)
    evidence: dict[str, Any] = {
        "measured": [
            {
                "policy": each.policy,
                "version": each.version,
                "passed": each.passed,
                "judged": each.judged,
                "interval": [round(bound, 4) for bound in each.interval],
            }
            for each in known
        ],
        "stratum": said.stratum,
        "standing": said.standing,
        "stated": said.stated,
        "stated_off": said.stated_off,
        "structure": features,
    }
    if said.standing == "unmeasured":
        evidence["provisional_stratum"] = _guess(features)
        if case.settings.require_difficulty:
            raise NotAssessed("too few attempts of a reference policy were measured on it", evidence=evidence)
        return Found(True, PROVISIONAL, evidence)
    if said.standing == "useful":
        return Found(True, f"{said.stratum}: {said.reason}", evidence)
    aside = (
        "no reference policy ever passes" if said.standing == "park" else "every attempt of reference policies passes"
    )
    return Found(False, f"set aside, {aside}: {said.reason}", evidence)


def _guess(features: dict[str, int]) -> str:
    if features["changed_files"] == 1 and features["changed_lines"] <= _SMALL:
        return "easy"
    return "hard" if features["changed_lines"] >= _LARGE or features["changed_files"] > 2 else "medium"


GATE = Gate(
    "difficulty",
    "1",
    "reading",
    "quarantined",
    _assess,
    needs=("gold",),
    parameters=("require_difficulty",),
    of_set=True,
)
