"""Gate `environment`: does the layer build, does a box of it start, and does the workspace fit?

Owns: `GATE`, `agent_box`. Invariant: what a layer's makings cannot give is the task's fault, whatever the host failed
to do is not. Must not know: what the work is.
"""

from __future__ import annotations

import uuid

from practicum.curation.gates.contract import Case, Found, Gate, NotAssessed
from practicum.errors import BoxOutOfMemory, BoxPathError, LayerFailed, SandboxError
from practicum.records.task import Task
from practicum.sandboxes.contract import BoxSpec


def agent_box(task: Task) -> BoxSpec:
    """A box like the one that an agent is given, and of its own."""
    return BoxSpec(
        f"gate-{uuid.uuid4().hex[:12]}", task.layer, workdir=task.workspace, files=task.files, limits=task.limits
    )


async def _assess(case: Case) -> Found:
    task = case.task
    most = 2 * task.limits.disk_bytes
    try:
        async with case.turn(), case.bench.workshop.provider.create(agent_box(task)) as box:
            done = await box.run(["/bin/sh", "-c", "id -u; pwd"], timeout_s=task.limits.command_s)
            listing = await box.list_tree(task.workspace, max_bytes=most)
    except LayerFailed as error:
        return Found(False, f"the layer cannot be built: {error.message}", {"layer": str(task.layer)})
    except (BoxPathError, BoxOutOfMemory) as error:
        return Found(False, f"the workspace does not fit: {error.message}", {"layer": str(task.layer)})
    except SandboxError as error:
        raise NotAssessed(f"no box could be had: {error.message}", fault=True) from error
    absent = sorted(task.files.keys() - listing.files.keys())
    evidence = {
        "layer": str(task.layer),
        "layer_digest": case.bench.layer_of(task.layer),
        "files": len(listing.files),
        "bytes": sum(len(file.data) for file in listing.files.values()),
        "of_disk_bytes": task.limits.disk_bytes,
        "shell": done.exit_code,
    }
    if done.exit_code != 0:
        return Found(False, f"a shell in the box ends with {done.exit_code}", evidence)
    if absent:
        return Found(False, f"{absent[0]} is not in the box", evidence)
    return Found(True, "the layer builds, a box starts and the workspace fits", evidence)


GATE = Gate("environment", "1", "one box", "rejected", _assess, needs=("schema",))
