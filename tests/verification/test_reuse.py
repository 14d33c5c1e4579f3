"""Reusing verdicts within a batch."""

from __future__ import annotations

import asyncio

import pytest

from practicum.errors import VerifierError
from practicum.records.task import PlainCheck, Task, Verification
from practicum.records.tree import Change, File
from practicum.records.verdict import Finding, Submission, Verdict
from practicum.verification.reuse import ReusingVerifier

PASSED = Verdict("valid", "passed", 1.0)


class Counting:
    """Judges by a given list of verdicts or errors, and counts."""

    version = "counting"

    def __init__(self, *answers: Verdict | Exception) -> None:
        self.answers = list(answers)
        self.calls = 0

    async def verify(self, task: Task, submission: Submission) -> Verdict:
        self.calls += 1
        await asyncio.sleep(0.01)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _task(generator: str | None = None) -> Task:
    plain = PlainCheck("calc:add", "cases.jsonl", generator)
    return Task("t", "do", {}, Verification("plain", {}, plain=plain, fail_to_pass=("a",)))


def _work(text: str = "x", finding: str | None = None) -> Submission:
    findings = (Finding(finding, "p", "e"),) if finding else ()
    return Submission((Change("calc.py", "edit", File(text.encode())),), findings)


async def _verify_all(verifier: ReusingVerifier, *work: Submission, task: Task | None = None) -> list[Verdict]:
    return list(await asyncio.gather(*(verifier.verify(task or _task(), each) for each in work)))


def test_equal_work_is_judged_once() -> None:
    """Equal submissions of one batch are judged once, at the same time or later, and the reuse is on record."""
    inner = Counting(PASSED)
    verifier = ReusingVerifier(inner)
    verdicts = asyncio.run(_verify_all(verifier, _work(), _work(), _work()))
    assert inner.calls == 1
    assert [v.reward for v in verdicts] == [1.0, 1.0, 1.0]
    assert [v.evidence.get("reused", False) for v in verdicts].count(True) == 2
    assert verifier.reused == 2


@pytest.mark.parametrize("other", [_work("y"), _work(finding="planted")])
def test_different_work_is_judged_apart(other: Submission) -> None:
    """Another change, or the same with another finding, is judged on its own."""
    inner = Counting(PASSED, PASSED)
    asyncio.run(_verify_all(ReusingVerifier(inner), _work(), other))
    assert inner.calls == 2


def test_fresh_cases_are_never_reused() -> None:
    """A task that draws fresh cases is judged every time."""
    inner = Counting(PASSED, PASSED)
    asyncio.run(_verify_all(ReusingVerifier(inner), _work(), _work(), task=_task("generate.py")))
    assert inner.calls == 2


def test_only_valid_verdicts_are_reused() -> None:
    """What could not be judged, or broke the judge, is judged again for the next equal submission."""
    inner = Counting(Verdict("unscorable", None, None, reason="gone"), VerifierError("broke"), PASSED)

    async def one_after_another() -> list[Verdict | BaseException]:
        verifier = ReusingVerifier(inner)
        return list(
            await asyncio.gather(*(verifier.verify(_task(), _work()) for _ in range(3)), return_exceptions=True)
        )

    results = asyncio.run(one_after_another())
    assert inner.calls == 3
    assert sum(isinstance(r, VerifierError) for r in results) == 1
    assert [r.status for r in results if isinstance(r, Verdict)] == ["unscorable", "valid"]


def test_forgetting_starts_anew() -> None:
    """After `forget` nothing of an earlier batch is reused."""
    inner = Counting(PASSED, PASSED)

    async def two_batches() -> None:
        verifier = ReusingVerifier(inner)
        await verifier.verify(_task(), _work())
        verifier.forget()
        await verifier.verify(_task(), _work())

    asyncio.run(two_batches())
    assert inner.calls == 2
