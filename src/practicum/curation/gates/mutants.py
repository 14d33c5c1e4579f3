"""Gate `mutants`: plausible wrong solutions fail.

Owns: `GATE`, `Wrong`, `Decided`, `judged`. Invariant: each mutant is the gold with one named thing wrong or missing, of
its functions where it is Python, of its files, hunks and lines otherwise; survivors are shown as diffs, since one of
them may be right after all. The task's own limits may kill one, never that it uses more of a processor than the gold.
Must not know: why a mutant fails.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from practicum.curation.gates.contract import Case, Found, Gate, NotAssessed, together
from practicum.curation.soundness.solutions import cut_short, sources_of, with_text
from practicum.records.task import Task
from practicum.records.tree import Tree, diff_trees, unified_diff
from practicum.records.verdict import Submission, Verdict
from practicum.verification.calibration.bounds import Rate
from practicum.verification.redteam.mutants import mutants_of
from practicum.verification.submission import judged_files

_MORE = 3
_SHOWN = 10
_SHOWN_CHARS = 2000
_STOPPED = (-signal.SIGKILL, -signal.SIGXCPU)  # which of them comes is up to the kernel


async def _assess(case: Case) -> Found:
    settings = case.settings
    wrong = await _variants(case, settings.mutants)
    decided = await judged(case, wrong, [])
    few = _killed(decided) < settings.kill_rate * len(decided)
    if few and Rate(_killed(decided), len(decided)).high >= settings.kill_rate:
        # Among so few, mutants that are right after all weigh much: a larger sample tells, where there is any doubt.
        seen = {each.submission.digest for each in wrong}
        more = await _variants(case, _MORE * settings.mutants)
        more = [each for each in more if each.submission.digest not in seen]
        wrong, decided = [*wrong, *more], await judged(case, more, decided)
    survivors = [each for each, verdict in decided if verdict.passed]
    killed, tried = _killed(decided), len(decided)
    evidence = {
        "killed": killed,
        "tried": tried,
        "left_out": len(wrong) - tried,
        "by_kind": dict(sorted(Counter(each.kind for each, _ in decided).items())),
        "survivors_at_most": round(Rate(len(survivors), tried).high, 4) if tried else None,
        "survivors": [
            {"mutant": each.name, "differs_from_gold": each.shown()[:_SHOWN_CHARS]} for each in survivors[:_SHOWN]
        ],
    }
    if tried < settings.min_mutants:
        raise NotAssessed(f"only {tried} wrong variants of the gold could be made and judged", evidence=evidence)
    said = f"{killed} of {tried} wrong variants of the gold fail"
    if killed < settings.kill_rate * tried:
        return Found(False, f"only {said}, fewer than {settings.kill_rate:.0%}", evidence)
    return Found(True, said, evidence)


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong variant of the gold.

    `kind` is function, where the syntax tree was changed, or part; `shown` makes a diff, which takes long.
    """

    kind: str
    name: str
    submission: Submission
    shown: Callable[[], str]


Decided = tuple[Wrong, Verdict]


async def _variants(case: Case, most: int) -> list[Wrong]:
    """At most `most` of either kind."""
    task, gold = case.task, await case.gold()
    right = judged_files(task, gold)
    found: list[Wrong] = []
    for name, submission in cut_short(task, gold)[:most]:
        found.append(Wrong("part", name, submission, partial(_diff, task, right, submission)))
    sources = sources_of(task, gold)
    for number, (change, source) in enumerate(sources):
        share = (most + len(sources) - 1 - number) // len(sources)
        for variant in mutants_of(source, share, f"{case.settings.seed}-{task.digest}-{change.path}"):
            name = f"{change.path}:{variant.line}: {variant.name}"
            found.append(Wrong("function", name, with_text(gold, change, variant.text), partial(variant.shown, source)))
    return found


def _diff(task: Task, right: Tree, submission: Submission) -> str:
    return unified_diff(right, diff_trees(right, judged_files(task, submission)))


async def judged(case: Case, wrong: Sequence[Wrong], before: Sequence[Decided]) -> list[Decided]:
    """What was decided `before`, and those of `wrong` on which there is a verdict.

    One that was stopped for its use of a processor may hang or be slow. It is left out where enough fail without it,
    and else judged with all the time of the task.
    """
    cpu_s, settings = case.hanging_s, case.settings
    decided, stopped = list(before), list[Wrong]()
    verdicts = await together(case.judge_wrong(each.submission, cpu_s) for each in wrong)
    for each, verdict in zip(wrong, verdicts, strict=True):
        if cpu_s is not None and _was_stopped(verdict, cpu_s):
            stopped.append(each)
        elif verdict.status == "valid":
            decided.append((each, verdict))
    enough = _killed(decided) >= settings.kill_rate * (len(decided) + len(stopped))
    if stopped and not (enough and len(decided) >= settings.min_mutants):
        verdicts = await together(case.judge_wrong(each.submission) for each in stopped)
        decided += [pair for pair in zip(stopped, verdicts, strict=True) if pair[1].status == "valid"]
    return decided


def _was_stopped(verdict: Verdict, cpu_s: int) -> bool:
    """Whether it may be so for having used `cpu_s` seconds of a processor."""
    driver = verdict.evidence.get("driver")
    used = driver["cpu_s"] if isinstance(driver, Mapping) else 0.0
    return not verdict.passed and (used >= cpu_s or verdict.evidence.get("exit_code") in _STOPPED)


def _killed(decided: Sequence[Decided]) -> int:
    return sum(not verdict.passed for _, verdict in decided)


GATE = Gate(
    "mutants",
    "5",
    "boxes",
    "rejected",
    _assess,
    needs=("gold", "noop"),
    parameters=("mutants", "min_mutants", "kill_rate", "seed"),
)
