"""The built-in agent loop: sample, act in the box, observe, until the policy submits or a budget ends.

Owns: `Harness`.
Invariant: each turn is recorded with the snapshots around it; time that the policy or the host takes is never
charged to the attempt, only the time of its own actions is.
Must not know: how boxes are leased, what is judged, how tokens are made.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from practicum.errors import BoxOutOfMemory, BoxPathError
from practicum.records.task import Task
from practicum.records.trajectory import StopReason
from practicum.rollouts.observation import Observation
from practicum.rollouts.session import Budgets, Reply, Session
from practicum.rollouts.tools import DEFAULT_TOOLS, Tool, Workplace, only_file
from practicum.sandboxes.contract import Sandbox

_GONE = "[out of memory: the box is gone]"


@dataclass(frozen=True, slots=True)
class Harness:
    """`tools` by name (beside `submit`, which is the loop's own); `max_chars` bounds one observation."""

    budgets: Budgets = field(default_factory=Budgets)
    tools: Mapping[str, Tool] = field(default_factory=lambda: DEFAULT_TOOLS)
    max_chars: int = 4000

    async def run(self, session: Session, box: Sandbox, task: Task) -> StopReason:
        """Drive `session` in `box`, which holds the workspace of `task`, to its end; the turns are in the session.

        `task.limits.episode_s` bounds the sum of what the actions take (waiting for the policy has its own deadline).
        Raises `SandboxError` when the box fails (`BoxOutOfMemory`, with the turn recorded, where the turn's action
        ended it) and `PolicyError` when the policy does.
        """
        limits, target, spent_s = task.limits, only_file(task), 0.0
        before = await _keep(box)
        while (limit := session.limit()) is None:
            reply = await session.sample()
            place = Workplace(box, task.workspace, limits, limits.episode_s - spent_s, self.max_chars, target)
            start = time.perf_counter()
            try:
                observation = await self._act(place, reply)
                act_s = time.perf_counter() - start
                after = await _keep(box) if observation.changed else before
            except BoxOutOfMemory:
                # Recorded, since it is what the policy is to learn from; the workspace is gone with the box.
                spans = {"act": time.perf_counter() - start, "snapshot": 0.0}
                session.record(
                    reply, observation=_GONE, snapshot_before=before, snapshot_after="", timing=spans, failed=True
                )
                raise
            session.record(
                reply,
                observation=observation.text,
                snapshot_before=before,
                snapshot_after=after,
                timing={"act": act_s, "snapshot": time.perf_counter() - start - act_s},
                failed=observation.failed,
            )
            if reply.action.tool == "submit":
                return "submitted"
            if reply.cut is not None:
                return reply.cut
            spent_s += act_s
            if spent_s >= limits.episode_s:
                return "time_limit"
            before = after
        return limit

    async def _act(self, place: Workplace, reply: Reply) -> Observation:
        action = reply.action
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
