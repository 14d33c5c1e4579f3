"""What imported tasks claim, found out by running them: which tests fail before, that the gold passes, which tests bear
to be run in variants.

Owns: `settle_tests`.
Invariant: the tests of a settled task were seen to be what it says they are, as their author wrote them; a test whose
result differs where it is run with sentinels carries none. Where that could not be seen the task is refused with the
reason.
Must not know: formats, where tasks are written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from practicum.errors import VerifierError
from practicum.records.task import Task
from practicum.records.verdict import Submission, Verdict
from practicum.sandboxes.contract import SandboxProvider
from practicum.sandboxes.pool import open_pool
from practicum.tasks.solutions import changes_of
from practicum.verification.contract import Verifier
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.judging import judge_all
from practicum.verification.runners.drivers import Drivers

_TURNS = (0, 1)  # both orders in which variants run
_SHOWN = 3
_NOTHING = Submission(())
_Judges = Callable[["tuple[str, int] | None"], Verifier]  # of lots of sentinels; None for fresh ones


class _Unfit(Exception):
    """Why a task is refused."""


async def settle_tests(
    provider: SandboxProvider,
    tasks: Sequence[Task],
    *,
    declared: bool = False,
    concurrent: int = 2,
    on_done: Callable[[Task], None] | None = None,
) -> tuple[list[Task], dict[str, str]]:
    """`tasks` as they were seen to be, in order, and by id why some are left out.

    Their expected tests are sorted by what they do on the untouched task; with `declared` they must already be sorted
    so. A gold that copies files must pass; a task without one is settled without. Raises `VerifierError` where this
    host, not the task, kept one from being judged.
    """
    permits = asyncio.Semaphore(concurrent)

    async def settle(task: Task, judges: _Judges) -> Task | _Unfit | VerifierError:
        async with permits:
            try:
                sorted_, gold = await _prove(judges(None), task, declared=declared)
                settled = await _unguard(judges, sorted_, gold)
            except (_Unfit, VerifierError) as why:
                return why
        if on_done is not None:
            on_done(task)
        return settled

    async with _open_judges(provider, concurrent) as judges:
        results = await asyncio.gather(*(settle(task, judges) for task in tasks))
    for result in results:
        if isinstance(result, VerifierError):
            raise result
    refused = {task.id: str(why) for task, why in zip(tasks, results, strict=True) if isinstance(why, _Unfit)}
    return [task for task in results if isinstance(task, Task)], refused


@asynccontextmanager
async def _open_judges(provider: SandboxProvider, concurrent: int) -> AsyncIterator[_Judges]:
    """Verifiers that share their boxes, leased again and again where resetting one is cheap."""
    drivers = Drivers(provider)
    async with AsyncExitStack() as stack:
        warm = {"warm", "copy-on-write"} <= provider.capabilities
        boxes = provider
        if warm:
            boxes = await stack.enter_async_context(open_pool(provider, capacity=concurrent + 2, creating=concurrent))
        yield lambda lot: ExecutionVerifier(boxes, max_concurrent=concurrent, drivers=drivers, lot=lot, warm=warm)


async def _prove(verifier: Verifier, task: Task, *, declared: bool) -> tuple[Task, Submission | None]:
    """The task with its tests sorted, and its gold, both seen with the tests as their author wrote them."""
    alone = _alone(task)
    check = task.verification
    ids = (*check.fail_to_pass, *check.pass_to_pass)
    before = _passing(await _judged(verifier, alone, _NOTHING, "the untouched task"))
    changes = changes_of(task.solution, task.files)
    after: set[str] | None = None
    if changes is not None:
        after = _passing(await _judged(verifier, alone, Submission(changes), "the gold"))
    if before.issuperset(ids):
        turned = after is not None and not after.issuperset(ids)
        raise _Unfit(
            "doing nothing passes every test" + (", and the gold does not: are they swapped?" if turned else "")
        )
    if after is not None and not after.issuperset(ids):
        raise _Unfit(f"the gold does not pass {_some(name for name in ids if name not in after)}")
    fail = tuple(name for name in ids if name not in before)
    keep = tuple(name for name in ids if name in before)
    if declared and set(fail) != set(check.fail_to_pass):
        early = [name for name in check.fail_to_pass if name in before]
        broken = [name for name in check.pass_to_pass if name not in before]
        raise _Unfit(
            f"{_some(early)} is said to fail before, but passes"
            if early
            else f"{_some(broken)} is said to pass before, but does not"
        )
    if not declared:
        task = replace(task, verification=replace(check, fail_to_pass=fail, pass_to_pass=keep))
    return task, None if changes is None else Submission(changes)


async def _unguard(judges: _Judges, task: Task, gold: Submission | None) -> Task:
    """The task with those tests left without sentinels that these change the result of, in either order."""
    check = task.verification
    if check.runner not in ("pytest", "unittest"):
        return task
    ids = {*check.fail_to_pass, *check.pass_to_pass}
    known = [(_NOTHING, set(check.pass_to_pass)), *([] if gold is None else [(gold, ids)])]
    spoilt: set[str] = set()
    for turn in _TURNS:
        verifier = judges((task.digest[:16], turn))
        for submission, passing in known:
            verdict = await _judged(verifier, task, submission, "with sentinels it")
            spoilt |= _passing(verdict) ^ passing
            spoilt |= {found.path for found in verdict.findings if found.path in ids}
    if not spoilt:
        return task
    names = tuple(name for name in (*check.fail_to_pass, *check.pass_to_pass) if name in spoilt)
    return replace(task, verification=replace(check, unguarded=(*check.unguarded, *map(_escaped, names))))


def _alone(task: Task) -> Task:
    """The task with its tests as they were written."""
    if task.verification.runner not in ("pytest", "unittest"):
        return task
    return replace(task, verification=replace(task.verification, unguarded=("*",)))


async def _judged(verifier: Verifier, task: Task, submission: Submission, who: str) -> Verdict:
    (verdict,) = await judge_all(verifier, [(task, submission)])
    if verdict.status == "unscorable":
        raise VerifierError(f"{task.id}: {who} could not be judged: {verdict.reason}")
    if verdict.status != "valid":
        raise _Unfit(f"{who} could not be judged: {verdict.reason}")
    return verdict


def _passing(verdict: Verdict) -> set[str]:
    return {name for name, status in verdict.tests.items() if status == "passed"}


def _escaped(name: str) -> str:
    """A pattern that matches exactly `name`."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _some(names: Iterable[str]) -> str:
    found = list(names)
    shown = ", ".join(found[:_SHOWN])
    return shown if len(found) <= _SHOWN else f"{shown} and {len(found) - _SHOWN} more"
