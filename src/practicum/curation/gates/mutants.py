"""Gate `mutants`: plausible wrong solutions fail.

Owns: `GATE`. Invariant: each mutant is the gold with one named thing wrong or missing, of its functions where it is
Python, of its files, hunks and lines otherwise; survivors are shown as diffs, since one of them may be right after all.
Must not know: why a mutant fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from practicum.curation.gates.contract import Case, Found, Gate, NotAssessed, together
from practicum.curation.soundness.solutions import cut_short, sources_of, with_text
from practicum.records.tree import diff_trees, unified_diff
from practicum.records.verdict import Submission, Verdict
from practicum.verification.calibration.bounds import Rate
from practicum.verification.redteam.mutants import mutants_of
from practicum.verification.submission import judged_files

_MORE = 3
_SHOWN = 10
_SHOWN_CHARS = 2000


async def _assess(case: Case) -> Found:
    settings = case.settings
    wrong = await _variants(case, settings.mutants)
    decided = await _judged(case, wrong)
    few = _killed(decided) < settings.kill_rate * len(decided)
    if few and Rate(_killed(decided), len(decided)).high >= settings.kill_rate:
        # Among so few, mutants that are right after all weigh much: a larger sample tells, where there is any doubt.
        seen = {each.submission.digest for each in wrong}
        more = await _variants(case, _MORE * settings.mutants)
        decided += await _judged(case, [each for each in more if each.submission.digest not in seen])
    survivors = [each for each, verdict in decided if verdict.passed]
    killed, tried = _killed(decided), len(decided)
    evidence = {
        "killed": killed,
        "tried": tried,
        "by_kind": dict(sorted(Counter(each.kind for each, _ in decided).items())),
        "survivors_at_most": round(Rate(len(survivors), tried).high, 4) if tried else None,
        "survivors": [{"mutant": each.name, "differs_from_gold": each.shown} for each in survivors[:_SHOWN]],
    }
    if tried < settings.min_mutants:
        raise NotAssessed(f"only {tried} wrong variants of the gold could be made and judged", evidence=evidence)
    said = f"{killed} of {tried} wrong variants of the gold fail"
    if killed < settings.kill_rate * tried:
        return Found(False, f"only {said}, fewer than {settings.kill_rate:.0%}", evidence)
    return Found(True, said, evidence)


@dataclass(frozen=True, slots=True)
class _Wrong:
    """A wrong variant of the gold. `kind` is function, where the syntax tree was changed, or part."""

    kind: str
    name: str
    submission: Submission
    shown: str


async def _variants(case: Case, most: int) -> list[_Wrong]:
    """At most `most` of either kind."""
    task, gold = case.task, await case.gold()
    right = judged_files(task, gold)
    found: list[_Wrong] = []
    for name, submission in cut_short(task, gold)[:most]:
        diff = unified_diff(right, diff_trees(right, judged_files(task, submission)))
        found.append(_Wrong("part", name, submission, diff[:_SHOWN_CHARS]))
    sources = sources_of(task, gold)
    for number, (change, source) in enumerate(sources):
        share = (most + len(sources) - 1 - number) // len(sources)
        for variant in mutants_of(source, share, f"{case.settings.seed}-{task.digest}-{change.path}"):
            name = f"{change.path}:{variant.line}: {variant.name}"
            shown = variant.shown(source)[:_SHOWN_CHARS]
            found.append(_Wrong("function", name, with_text(gold, change, variant.text), shown))
    return found


async def _judged(case: Case, wrong: Sequence[_Wrong]) -> list[tuple[_Wrong, Verdict]]:
    """Those on which there is a verdict."""
    verdicts = await together(case.judge_wrong(each.submission) for each in wrong)
    return [(each, verdict) for each, verdict in zip(wrong, verdicts, strict=True) if verdict.status == "valid"]


def _killed(decided: Sequence[tuple[_Wrong, Verdict]]) -> int:
    return sum(not verdict.passed for _, verdict in decided)


GATE = Gate(
    "mutants",
    "3",
    "boxes",
    "rejected",
    _assess,
    needs=("gold", "noop"),
    parameters=("mutants", "min_mutants", "kill_rate", "seed"),
)
