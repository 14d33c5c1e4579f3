"""practicum's boxes and judge as an environment of TRL's.

Owns: `Boxes` (a provider and a judge in a thread of their own), `Repair` (the environment), `rewards`.
Invariant: an action is read, carried out and shown as practicum's own agent loop does it, what leaves the box is
collected and judged by the same code, and equal submissions of a batch are judged once, as in a run.
Must not know: models, the trainer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from practicum.pipeline.signals import open_signals
from practicum.policies.protocol import parse_action
from practicum.records.task import Task
from practicum.records.verdict import Submission
from practicum.rollouts.attempt import AttemptSpec, Rolled, judge_rolled
from practicum.rollouts.leasing import carry_out
from practicum.rollouts.observation import Observation
from practicum.rollouts.tools import DEFAULT_TOOLS, Workplace, only_file
from practicum.sandboxes.contract import BoxSpec, Sandbox
from practicum.sandboxes.provider import open_provider
from practicum.tasks.taskset import load_taskset
from practicum.verification.opening import open_verifier
from practicum.verification.reuse import ReusingVerifier

_MAX_CHARS = 4000
T = TypeVar("T")


class Boxes:
    """Boxes of this host and a judge, in an event loop that a thread of its own runs. A context manager."""

    def __init__(self, tasks: Path) -> None:
        self.tasks: dict[str, Task] = {task.id: task for task in load_taskset(tasks)}
        self._loop = asyncio.new_event_loop()
        self._opened: Future[None] = Future()
        self._end = asyncio.Event()
        self.thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._live()), name="boxes")

    def __enter__(self) -> Boxes:
        self.thread.start()
        self._opened.result()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self.thread.join()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _live(self) -> None:
        async with (
            open_provider(run_id="trl", limits_by="cgroup-or-rlimit") as self.provider,
            open_verifier(self.provider, max_concurrent=4) as executing,
            open_signals(self.provider, executing, None) as self.verifier,
        ):
            self._opened.set_result(None)
            await self._end.wait()


class Repair:
    """One workspace to repair. TRL makes one of these for each place in a batch, and resets it."""

    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes
        self._number = 0

    def reset(self, task: str, **_: Any) -> None:
        """Begin to lease a box; nobody waits for it before the first action."""
        self._task = self._boxes.tasks[task]
        self._number += 1
        self._life = AsyncExitStack()
        self._leased = self._boxes.begin(self._lease())

    def act(self, text: str) -> str:
        """
        Carry out the one action in the text.

        Args:
            text: The action.

        Returns:
            What is to be seen of it.
        """
        return self._boxes.begin(self._act(text)).result()

    async def _lease(self) -> Sandbox:
        task = self._task
        name = f"trl-{id(self):x}-{self._number}"
        spec = BoxSpec(name, layer=task.layer, workdir=task.workspace, files=task.files, limits=task.limits)
        return await self._life.enter_async_context(self._boxes.provider.create(spec))

    async def _act(self, text: str) -> str:
        box, task, action = await asyncio.wrap_future(self._leased), self._task, parse_action(text)
        place = Workplace(box, task.workspace, task.limits, task.limits.episode_s, _MAX_CHARS, only_file(task))
        if action.tool == "invalid":
            return f"[{action.arguments['reason']}]"
        if action.tool == "submit":
            return ""
        found: Observation = await DEFAULT_TOOLS[action.tool](place, action.arguments)
        return found.text

    async def _outcome(self, last: str | None, verifier: ReusingVerifier) -> float | None:
        """The verdict's reward, after `last`, an action of the last turn that TRL left undone."""
        if last is not None:
            await self._act(last)
        box = await asyncio.wrap_future(self._leased)
        submission: Submission = await carry_out(self._task, box)
        await self._life.aclose()
        rolled = Rolled(AttemptSpec(self._task, self._task.id), (), "submitted", None, submission)
        return (await judge_rolled(rolled, verifier)).reward


def rewards(
    boxes: Boxes, environments: Sequence[Repair], completions: Sequence[Sequence[dict[str, Any]]]
) -> list[float | None]:
    """The rewards of one batch; all of it is judged at the same time. None where the machine is at fault."""
    judge = ReusingVerifier(boxes.verifier)

    async def judged() -> list[float | None]:
        return await asyncio.gather(
            *(env._outcome(_undone(said), judge) for env, said in zip(environments, completions, strict=True))
        )

    return boxes.begin(judged()).result()


def _undone(said: Sequence[dict[str, Any]]) -> str | None:
    calls = said[-1].get("tool_calls")
    return calls[0]["function"]["arguments"]["text"] if calls else None
