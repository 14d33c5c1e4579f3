"""Whether a run can do its work on this host, found out before anything is made.

Owns: `check_feasible`.
Invariant: what is refused could never have worked, whatever the luck; the message shows the arithmetic and the keys.
Must not know: how runs are scheduled.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path

from practicum.config import RunConfig
from practicum.records.task import Task
from practicum.rollouts.attempt import Patience
from practicum.scheduling.feasible import Plan, problems, refuse

MIB = 1 << 20
BOX = {"memory_bytes": 1.0 * MIB, "processes": 3.0, "open files": 4.0}
"""What a box takes while nothing runs in it: measured with 500 of them, and rounded in its favour."""
_NAMES = {
    "per_update": "rollout.tasks_per_update",
    "group_size": "rollout.group_size",
    "max_staleness": "rollout.max_staleness",
    "boxes": "sandbox.max_concurrent",
    "verifiers": "sandbox.verify_concurrent",
    "queue_size": "schedule.backlog",
    "lease_s": "schedule.attempt_s",
    "episode_s": "limits.episode_s of a task",
    "verify_deadline_s": "the deadline of a judgement, which is fixed",
    "verify_s": "timeout_s of a task's verification",
}


def check_feasible(config: RunConfig, tasks: Sequence[Task], host: Mapping[str, float] | None = None) -> None:
    """Raises `ConfigError` for a run that can never do its work. `host` says what there is in place of this one."""
    rollout, sandbox = config.rollout, config.sandbox
    plan = Plan(
        per_update=rollout.tasks_per_update,
        group_size=rollout.group_size,
        max_staleness=rollout.max_staleness,
        boxes=sandbox.max_concurrent,
        verifiers=sandbox.verify_concurrent,
        spares=config.schedule.spares,
        queue_size=config.schedule.backlog,
        host=host if host is not None else this_host(),
        box=BOX,
        episode_s=max((task.limits.episode_s for task in tasks), default=None),
        verify_s=max((task.verification.timeout_s for task in tasks), default=None),
        verify_deadline_s=Patience().verify_s,
        lease_s=config.schedule.attempt_s,
    )
    refuse(problems(plan), _NAMES)


def this_host() -> dict[str, float]:
    """Memory that can still be had, in bytes, and processes and open files that this user may have."""
    found: dict[str, float] = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            found["memory_bytes"] = float(value.split()[0]) * 1024
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    unlimited = limit == resource.RLIM_INFINITY or os.getuid() == 0
    found["processes"] = float(most if unlimited else min(most, limit))
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if files != resource.RLIM_INFINITY:
        found["open files"] = float(files)
    return found
