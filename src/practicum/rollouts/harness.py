"""The built-in agent loop: sample, act in the box, observe, until the policy submits or a budget ends.

Owns: `Harness`.
Invariant: each turn is recorded with the snapshots around it, and what was sampled is on record before it is carried
out; time that the policy or the host takes is never charged to the attempt, only the time of its own actions is.
Must not know: how boxes are leased, what is judged, how tokens are made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from practicum.errors import BoxOutOfMemory, BoxPathError, StartRefused
from practicum.records.task import Task
from practicum.records.trajectory import Action, StopReason, Turn
from practicum.rollouts.journalling import UNWRITTEN, Log
from practicum.rollouts.observation import Observation
from practicum.rollouts.session import Budgets, Session
from practicum.rollouts.start import spent_s
from practicum.rollouts.tools import DEFAULT_TOOLS, Tool, Workplace, only_file
from practicum.sandboxes.contract import Sandbox
from practicum.telemetry import now

_GONE = "[out of memory: the box is gone]"


@dataclass(frozen=True, slots=True)
class Harness:
    """`tools` by name (beside `submit`, which is the loop's own); `max_chars` bounds one observation."""

    budgets: Budgets = field(default_factory=Budgets)
    tools: Mapping[str, Tool] = field(default_factory=lambda: DEFAULT_TOOLS)
    max_chars: int = 4000

    async def run(
        self,
        session: Session,
        box: Sandbox,
        task: Task,
        *,
        workspace: str | None = None,
        log: Log = UNWRITTEN,
        park: asyncio.Event | None = None,
    ) -> StopReason | None:
        """Drive `session` in `box`, which holds the workspace of `task`, to its end; the turns are in the session.

        A session that has turns, or one pending, goes on: `box` must then hold the saved `workspace`, or
        `StartRefused` is raised. Returns None where `park` was set: the session stands between two turns.
        `task.limits.episode_s` bounds the sum of what the actions take (waiting for the policy has its own deadline).
        Raises `SandboxError` when the box fails (`BoxOutOfMemory`, with the turn recorded, where the turn's action
        ended it) and `PolicyError` when the policy does.
        """
        before = await _keep(box)
        if workspace is not None and before != workspace:
            raise StartRefused(f"the box holds the workspace {before[:12] or 'of no name'}, not {workspace[:12]}")
        ended = self._ended(session, task)  # a resumed one may have ended with its last turn
        while ended is None:
            if (limit := session.limit()) is not None:
                return limit
            if park is not None and park.is_set():
                return None
            if session.pending is None:
                await log.intent(await session.sample(before), session.turns)
            before = (await self._turn(session, box, task, log)).snapshot_after
            ended = self._ended(session, task)
        return ended

    async def _turn(self, session: Session, box: Sandbox, task: Task, log: Log) -> Turn:
        """Carry out what is pending in `session`, and record it."""
        said = await session.sample()
        left_s = task.limits.episode_s - spent_s(session.turns)
        name = f"{session.name}/{said.index}"
        place = Workplace(box, task.workspace, task.limits, left_s, self.max_chars, only_file(task), name)
        start = now()
        try:
            observation = await self._act(place, said.action)
            act_s = now() - start
            after = await _keep(box) if observation.changed else said.snapshot_before
        except BoxOutOfMemory:
            # Recorded, since it is what the policy is to learn from; the workspace is gone with the box.
            spans = {"act": now() - start, "snapshot": 0.0}
            log.result(session.record(observation=_GONE, snapshot_after="", timing=spans, failed=True))
            raise
        turn = session.record(
            observation=observation.text,
            snapshot_after=after,
            timing={"act": act_s, "snapshot": now() - start - act_s},
            failed=observation.failed,
        )
        log.result(turn)
        return turn

    def _ended(self, session: Session, task: Task) -> StopReason | None:
        """Why the last turn was the last, or None."""
        if not session.turns or session.pending is not None:
            return None
        last = session.turns[-1]
        if last.action.tool == "submit":
            return "submitted"
        if (cut := session.cut(last)) is not None:
            return cut
        return "time_limit" if spent_s(session.turns) >= task.limits.episode_s else None

    async def _act(self, place: Workplace, action: Action) -> Observation:
        if action.tool == "submit":
            return Observation("")
        if action.tool == "invalid":
            return Observation(f"[{action.arguments['reason']}]", failed=True)
        tool = self.tools.get(action.tool)
        if tool is None:
            return Observation(f"[there is no tool {action.tool} here]", failed=True)
        return await tool(place, action.arguments)


async def _keep(box: Sandbox) -> str:
    """Digest of the workspace now; empty where the policy made it one that cannot be kept (then none can resume)."""
    try:
        return await box.save()
    except BoxPathError:
        return ""
