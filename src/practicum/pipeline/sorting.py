"""Which tests of an imported task fail before any work is done, found out by running them.

Owns: `sort_tests`.
Invariant: `fail_to_pass` of a sorted task are tests that the untouched task was seen not to pass, `pass_to_pass` those
that it was seen to pass; where that could not be seen, the task is refused with the reason.
Must not know: formats, where tasks are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from practicum.errors import VerifierError
from practicum.records.task import Task
from practicum.records.verdict import Submission, Verdict
from practicum.verification.contract import Verifier
from practicum.verification.judging import judge_all


async def sort_tests(
    verifier: Verifier, tasks: Sequence[Task], *, on_done: Callable[[Verdict], None] | None = None
) -> tuple[list[Task], dict[str, str]]:
    """`tasks` with their expected tests sorted, in order, and by id why some are left out.

    Raises `VerifierError` where this host, not the task, kept one from being judged.
    """
    verdicts = await judge_all(verifier, [(task, Submission(())) for task in tasks], on_done=on_done)
    done: list[Task] = []
    refused: dict[str, str] = {}
    for task, verdict in zip(tasks, verdicts, strict=True):
        passing = {name for name, status in verdict.tests.items() if status == "passed"}
        check = task.verification
        ids = (*check.fail_to_pass, *check.pass_to_pass)
        if verdict.status == "unscorable":
            raise VerifierError(f"{task.id}: the untouched task could not be judged: {verdict.reason}")
        if verdict.status != "valid":
            refused[task.id] = f"the untouched task could not be judged: {verdict.reason}"
        elif passing.issuperset(ids):
            refused[task.id] = "doing nothing passes every test"
        else:
            fail = tuple(name for name in ids if name not in passing)
            keep = tuple(name for name in ids if name in passing)
            done.append(replace(task, verification=replace(check, fail_to_pass=fail, pass_to_pass=keep)))
    return done, refused
