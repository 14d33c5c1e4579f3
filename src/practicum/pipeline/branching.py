"""Branches of a stored trajectory: other continuations from one of its turns, kept in its run folder.

Owns: `branch`, the phase `branch` of a run's trajectories.
Invariant: the run's own tasks, snapshots and judge are used; a turn that cannot be gone on from is refused before
anything is made; what came of the branches is stored before it is told.
Must not know: who asked, how it is shown.
"""

from __future__ import annotations

import os
from pathlib import Path

from practicum.errors import ConfigError, StartRefused
from practicum.pipeline.agents import AgentChoice, open_agent
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.signals import open_signals
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.rollouts.branching import branch_specs, check_branch
from practicum.rollouts.workshop import Workshop, run_specs
from practicum.sandboxes.provider import open_provider
from practicum.sandboxes.snapshots import DirectorySnapshots
from practicum.tasks.taskset import load_taskset
from practicum.verification.opening import open_verifier

PHASE = "branch"


async def branch(
    run: Path, trajectory_id: str, turn: int, count: int, choice: AgentChoice
) -> tuple[Trajectory, list[Trajectory]]:
    """The trunk, and `count` new continuations of it in which turn number `turn` is sampled anew.

    Asked again, the numbers and seeds go on. Raises `ConfigError` where the run has no such trajectory or turn, or its
    record and the present tasks, snapshots or policy disagree; `StoreError` where the run is being written to.
    """
    with RunFolder.open(run, write=True) as folder:
        trunk, update = _trunk(folder, trajectory_id)
        task = _task(folder, trunk)
        config = folder.config
        snapshots = DirectorySnapshots(folder.path / "snapshots")
        most = min(count, config.sandbox.max_concurrent, 2 * (os.cpu_count() or 1))
        group = f"{trunk.id}@{turn}"
        first = sum(row["group_id"] == group for row in folder.store.rows(["group_id"], PHASE))
        async with open_agent(choice) as agent:
            specs = branch_specs(trunk, task, turn, count, agent, first=first)
            try:
                check_branch(specs[0], agent, snapshots)
            except StartRefused as error:
                raise ConfigError(
                    f"{trunk.id} cannot be gone on from at turn {turn}: {error.message}",
                    fix="choose another turn, or a policy that speaks and reads as the run's does",
                ) from error
            limits_by = config.sandbox.limits_by
            async with (
                open_provider(run_id=folder.id, limits_by=limits_by, snapshots=snapshots) as provider,
                open_verifier(provider, max_concurrent=most, seed=config.seed) as executing,
                open_signals(provider, executing, config.judge) as verifier,
            ):
                branches = await run_specs(Workshop(provider, verifier, most), agent, specs)
        folder.store.append(PHASE, update, branches)
        folder.audit("branched", trunk=trunk.id, turn=turn, branches=[each.id for each in branches])
    return trunk, branches


def _trunk(folder: RunFolder, name: str) -> tuple[Trajectory, int]:
    """The trajectory named `name`, and the update that its batch belongs to."""
    for batch in folder.store.batches():
        for trajectory in folder.store.load(batch):
            if trajectory.id == name:
                return trajectory, batch.update
    raise ConfigError(
        f"there is no trajectory {name!r} in {folder.path}",
        fix=f"`practicum runs trajectory {folder.path}` lists the ids",
    )


def _task(folder: RunFolder, trunk: Trajectory) -> Task:
    for task in load_taskset(folder.path / "tasks"):
        if task.id == trunk.task_id:
            return task
    raise ConfigError(
        f"the task {trunk.task_id!r} of {trunk.id} is not in {folder.path / 'tasks'}",
        fix="restore the run's tasks, or branch from another trajectory",
    )
