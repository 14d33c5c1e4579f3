"""A box for one life of an attempt, and what leaves it.

Owns: `leased`, `carry_out`.
Invariant: a box is asked for again under the same create id while there is none, within a deadline; what leaves it is
data, and leaves only while no process is running.
Must not know: policies, turns, verdicts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from practicum.errors import BoxPathError, CreateFailed, LayerFailed, SubmissionError
from practicum.records.task import Task
from practicum.records.verdict import Finding, Submission
from practicum.sandboxes.contract import BoxSpec, Sandbox, SandboxProvider, SnapshotId
from practicum.scheduling.retry import Backoff
from practicum.telemetry import Meter
from practicum.verification.submission import collect


@asynccontextmanager
async def leased(
    box_spec: BoxSpec,
    provider: SandboxProvider,
    *,
    backoff: Backoff,
    lease_s: float,
    meter: Meter,
    workspace: SnapshotId | None = None,
) -> AsyncIterator[Sandbox]:
    """A box, with its files or with those of the saved `workspace`. `lease_s` bounds one try, in seconds.

    Raises `CreateFailed` once tries are used up. `meter` gets the seconds of `lease` and `close`, the counts of
    `boxes` and `lease_retries`.
    """
    delays = backoff.delays(box_spec.create_id)
    async with AsyncExitStack() as stack:
        with meter.span("lease"):
            while True:
                try:
                    async with asyncio.timeout(lease_s):
                        made = provider.fork(workspace, box_spec) if workspace else provider.create(box_spec)
                        box = await stack.enter_async_context(made)
                    break
                except TimeoutError:
                    failure = CreateFailed(f"no box within {lease_s:g} s")
                except CreateFailed as error:
                    failure = error
                meter.count("lease_retries")
                delay = next(delays, None)
                if delay is None or isinstance(failure, LayerFailed):  # which trying again would not help
                    raise failure
                await asyncio.sleep(delay)
        meter.count("boxes")
        yield box
        with meter.span("close"):
            await box.close()


async def carry_out(task: Task, box: Sandbox) -> Submission:
    """What may leave the box. A workspace that cannot be carried out is the candidate's doing: nothing leaves."""
    try:
        await box.quiet()  # what it left running could keep the listing from ever being done
        listing = await box.list_tree(task.workspace, max_bytes=2 * task.limits.disk_bytes)
        return collect(task, listing)
    except (BoxPathError, SubmissionError) as error:
        return Submission((), (Finding("not_collected", task.workspace, error.message),))
