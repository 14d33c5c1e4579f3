"""Gate `equivalents`: right solutions that look different pass as well.

Owns: `GATE`. Invariant: each is the gold rewritten so that its meaning is kept; what no rewrite applies to is judged as
it is, and the evidence says so. Must not know: rewrites.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from practicum.curation.gates.contract import Case, Found, Gate, brief
from practicum.curation.soundness.solutions import sources_of, with_text
from practicum.records.verdict import Submission
from practicum.verification.redteam.equivalents import equivalents_of


async def _assess(case: Case) -> Found:
    task, settings = case.task, case.settings
    gold = await case.gold()
    right: list[tuple[str, Submission, Callable[[], str]]] = []
    sources = sources_of(task, gold)
    for number, (change, source) in enumerate(sources):
        share = (settings.equivalents + len(sources) - 1 - number) // len(sources)
        for variant in equivalents_of(source, share, f"{settings.seed}-{task.digest}-{change.path}"):
            submission = with_text(gold, change, variant.text)
            right.append((f"{change.path}: {variant.name}", submission, partial(variant.shown, source)))
    rewritten = len(right)
    right = right or [("the gold itself", gold, str)]
    verdicts = await case.judge_each([submission for _, submission, _ in right], case.steady())
    # One that failed is judged once more by itself, so that a hiccup of the host is not taken for an answer.
    verdicts = [
        verdict if verdict.passed else await case.judge(submission, verifier=case.bench.fresh, right=True)
        for (_, submission, _), verdict in zip(right, verdicts, strict=True)
    ]
    refused = [
        {"solution": name, "differs_from_gold": shown()[:2000], **brief(verdict)}
        for (name, _, shown), verdict in zip(right, verdicts, strict=True)
        if not verdict.passed
    ]
    evidence = {"tried": [name for name, _, _ in right], "refused": refused}
    if refused:
        return Found(
            False, f"{len(refused)} of {len(right)} right solutions do not pass: {refused[0]['solution']}", evidence
        )
    if not rewritten:
        return Found(True, "no rewrite applies to the gold; it passes itself", evidence)
    return Found(True, f"{len(right)} of {len(right)} right solutions pass", evidence)


GATE = Gate(
    "equivalents",
    "2",
    "boxes",
    "quarantined",
    _assess,
    needs=("gold",),
    parameters=("equivalents", "seed"),
)
