"""A run's curriculum: which of its tasks a batch holds, from what is known of them to what their attempts came to.

Owns: `plan_of`, `next_batch`, `outcomes_of`, `equal_attempts`, `place_of`; `difficulty.jsonl` in a run folder, the
copy of what was measured on the tasks before.
Invariant: a batch that was drawn before an interruption is the same after it, because the sampler's state, drawn
batches included, is part of the run's state.
Must not know: how tasks are weighed, what trains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from practicum.curation.difficulty import FILE, Measured, opinion, read_difficulty, stated_rate, stratum_of_rate
from practicum.pipeline.run import Run
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.tasks.sampler import Curriculum, Outcome, Place, choose

_KIND = ("generator", "strategy", "family", "template", "bug_type", "kind")
"""What provenance says of tasks that are alike: the success on one tells something about the others."""


def plan_of(run: Run) -> Curriculum:
    """The curriculum over the tasks that the run admitted to train on. Raises `StoreError`."""
    known = read_difficulty(run.folder.path / FILE)
    places = {task.id: place_of(task, known.get(task.digest, ())) for task in run.tasks["train"]}
    return Curriculum(places, run.config.rollout.tasks_per_update, run.config.seed, run.config.curriculum)


def place_of(task: Task, measured: Sequence[Measured]) -> Place:
    """Stratum and kind of `task`: the stratum that was measured, else the one that its author states. Pure."""
    stratum = opinion(measured).stratum
    stated = stated_rate(task.difficulty)
    if stratum == "undetermined" and stated is not None:
        stratum = stratum_of_rate(stated)
    named = [str(task.provenance[key]) for key in _KIND if isinstance(task.provenance.get(key), (str, int))]
    return Place(stratum, "/".join([task.domain, *named]))


def next_batch(run: Run, plan: Curriculum, batch: int) -> list[str]:
    """The task ids of `batch`: those drawn already where a resume comes past it again."""
    state = run.state
    if batch in state.sampler.chosen:
        return list(state.sampler.chosen[batch])
    state.sampler, chosen = choose(plan, state.sampler)
    return chosen


def outcomes_of(trajectories: Iterable[Trajectory]) -> list[Outcome]:
    """What a batch came to, task by task, over the attempts that are not masked. Pure."""
    members: defaultdict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        if trajectory.reward is not None:
            members[trajectory.task_id].append(trajectory)
    return [
        Outcome(task, sum(t.passed for t in each), len(each), all(_equal(group) for group in _groups(each)))
        for task, each in sorted(members.items())
    ]


def equal_attempts(trajectories: Iterable[Trajectory]) -> int:
    """How many judged attempts were in groups of one reward: what they cost taught nothing. Pure."""
    judged = [trajectory for trajectory in trajectories if trajectory.reward is not None]
    return sum(len(group) for group in _groups(judged) if _equal(group))


def _groups(trajectories: Iterable[Trajectory]) -> list[list[Trajectory]]:
    groups: defaultdict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        groups[trajectory.group_id].append(trajectory)
    return list(groups.values())


def _equal(group: Sequence[Trajectory]) -> bool:
    return len({trajectory.reward for trajectory in group}) < 2
