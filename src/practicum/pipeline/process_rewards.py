"""Credit by turn: how far the work had come before and after each turn, found out by execution.

Owns: `selected`, `potentials_of`; the states between turns as submissions to judge.
Invariant: what a turn is paid is a difference of potential, which cannot change what is best to do; states are judged
by the run's own judge, and one that cannot be judged leaves its whole attempt with the credit of its outcome alone.
Must not know: losses, boxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from practicum.errors import StoreError, SubmissionError
from practicum.pipeline.orders import Judge
from practicum.pipeline.run import Run
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Submission, Verdict
from practicum.sandboxes.snapshots import DirectorySnapshots
from practicum.training.methods import Method
from practicum.training.policy_gradient import Selection, select, select_by_turn
from practicum.verification.submission import submission_from_workspace

State = tuple[str, str]
"""A task's id and the digest of a submission to it."""


def selected(run: Run, trajectories: Sequence[Trajectory], method: Method, batch: int) -> Selection:
    """What may train of `trajectories`: with credit by outcome, or by turn where the configuration says so."""
    if run.config.rl.process == "none":
        return select(trajectories, method.advantages, size=run.config.rollout.group_size)
    tasks = {task.id: task for task in run.tasks["train"]}
    judged = [each for each in trajectories if each.reward is not None and each.task_id in tasks]
    snapshots = DirectorySnapshots(run.folder.path / "snapshots")
    states = {each.id: _states(each, tasks[each.task_id], snapshots) for each in judged}
    known = {
        (each.task_id, each.submission.digest): each.verdict
        for each in judged
        if each.submission is not None and each.verdict is not None
    }
    verdicts = known | _judge(run, judged, tasks, states, known, batch)
    potentials = {
        each.id: potentials_of(tasks[each.task_id], [verdicts.get(_key(each, state)) for state in states[each.id]])
        for each in judged
    }
    run.show(_row(batch + 1, potentials))
    return select_by_turn(trajectories, potentials, size=run.config.rollout.group_size)


def potentials_of(task: Task, verdicts: Sequence[Verdict | None]) -> list[float] | None:
    """Potential of each state of an attempt at `task` by its verdict; None where there is none to be had. Pure.

    It is the share of the tests that are to pass which do, and 0 where the build or a test that passed before fails:
    between 0 and 1, and a function of the state alone.
    """
    found: list[float] = []
    for verdict in verdicts:
        if verdict is None or verdict.status != "valid":
            return None
        check, passes = task.verification, [name for name, status in verdict.tests.items() if status == "passed"]
        holds = verdict.outcome not in ("build_failed", "tampered") and set(check.pass_to_pass) <= set(passes)
        found.append(len(set(check.fail_to_pass) & set(passes)) / len(check.fail_to_pass) if holds else 0.0)
    return found or None


def _states(trajectory: Trajectory, task: Task, snapshots: DirectorySnapshots) -> list[Submission]:
    """What would have left the box before each turn and after the last; nothing where a state was not kept."""
    digests = [turn.snapshot_before for turn in trajectory.turns]
    digests += [turn.snapshot_after for turn in trajectory.turns[-1:]]
    kept: dict[str, Submission] = {}
    for digest in digests:
        if digest not in kept:
            try:
                kept[digest] = submission_from_workspace(task, snapshots.get(digest))
            except (StoreError, SubmissionError):
                return []
    return [kept[digest] for digest in digests]


def _judge(
    run: Run,
    judged: Sequence[Trajectory],
    tasks: Mapping[str, Task],
    states: Mapping[str, list[Submission]],
    known: Mapping[State, Verdict],
    batch: int,
) -> dict[State, Verdict]:
    """The verdicts on the states that no attempt ended in, each judged once."""
    asked: dict[State, tuple[Task, Submission]] = {}
    for trajectory in judged:
        for state in states[trajectory.id]:
            if (key := _key(trajectory, state)) not in known:
                asked[key] = (tasks[trajectory.task_id], state)
    if not asked:
        return {}
    order = f"process-{batch}"
    with run.meter.span("process rewards"):
        run.process.send(Judge(order, tuple(asked.values())))
        answer = run.process.wait_judged(order)
    run.state.boxes_created += answer.boxes
    return dict(zip(asked, answer.verdicts, strict=True))


def _key(trajectory: Trajectory, state: Submission) -> State:
    return trajectory.task_id, state.digest


def _row(update: int, potentials: Mapping[str, list[float] | None]) -> dict[str, int | str]:
    """What the states came to: turns that got on, turns that fell back, attempts without credit by turn."""
    steps = [after - before for each in potentials.values() if each for before, after in pairwise(each)]
    return {
        "kind": "process",
        "update": update,
        "turns": len(steps),
        "up": sum(step > 0 for step in steps),
        "down": sum(step < 0 for step in steps),
        "without": sum(each is None for each in potentials.values()),
    }
