"""Which tasks a run uses, before anything is written: of a built-in family, or of a task set.

Owns: `Chosen`, `choose_tasks`, `generated`.
Invariant: where the set has a ledger, only what it admits is used; a choice that cannot be used is refused with the
command that mends it. Must not know: models, run folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from practicum.config.sections import TasksConfig
from practicum.curation.ledger import ledger_path, stages
from practicum.curation.release import release_of
from practicum.errors import TaskError
from practicum.records.task import Task
from practicum.tasks.functions import FunctionsSpec, generate_functions
from practicum.tasks.quickstart import FamilySpec, generate_family
from practicum.tasks.taskset import load_taskset


@dataclass(frozen=True, slots=True)
class Chosen:
    """`left_out` says by id why tasks of the set at `home` are not used; `release` is its digest, where it is one."""

    tasks: tuple[Task, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    home: Path | None = None
    release: str | None = None


def choose_tasks(config: TasksConfig, *, demonstrated: bool) -> Chosen:
    """The tasks of `config`, by split. `demonstrated`: tasks to train on that cannot be demonstrated are refused.

    Raises `TaskError` or `ConfigError`.
    """
    if config.path is None:
        return Chosen(tuple(generated(config)))
    release = release_of(Path(config.path))
    home = release.path if release else Path(config.path)
    given, left_out = _admitted_by_ledger(home, load_taskset(Path(config.path)))
    tasks: list[Task] = []
    for split, count in (("train", config.train), ("validation", config.validation), ("test", config.test)):
        found = [task for task in given if task.split == split][:count]
        if not found and left_out:
            name, why = next(iter(left_out.items()))
            raise TaskError(
                f"{config.path} has no admitted task of split {split!r}; its ledger leaves out {len(left_out)}, "
                f"such as {name}: {why}",
                fix=f"practicum tasks check {config.path}",
            )
        if not found:
            raise TaskError(
                f"{config.path} has no task of split {split!r}",
                fix=f"practicum tasks split {config.path} --by random --out DIR, and check what it writes",
            )
        tasks += found
    silent = next((task for task in tasks if task.split == "train" and "edit" not in task.provenance), None)
    if silent is not None and demonstrated:
        raise TaskError(
            f"task {silent.id} cannot be demonstrated: its [metadata] has no `edit`, and the warm start needs it",
            fix="start from a pretrained model without a warm start (policy.model, sft.steps = 0), or give "
            "edit = {path, line, old, new} in [metadata]",
        )
    return Chosen(tuple(tasks), left_out, home, release.digest if release else None)


def generated(config: TasksConfig) -> list[Task]:
    """Tasks of the family of `config`. Raises `ConfigError` where there are not so many."""
    counts = {"train": config.train, "validation": config.validation, "test": config.test}
    if config.family == "functions":
        return generate_functions(FunctionsSpec(seed=config.seed, **counts))
    return generate_family(FamilySpec(seed=config.seed, shown=config.family == "single-turn", **counts))


def _admitted_by_ledger(path: Path, tasks: Sequence[Task]) -> tuple[list[Task], dict[str, str]]:
    """Those of `tasks` that the ledger of the set at `path` admits, all where it has none; and why not the others."""
    ledger = ledger_path(path)
    if not ledger.is_file():
        return list(tasks), {}
    known = stages(ledger)
    admitted: list[Task] = []
    left_out: dict[str, str] = {}
    for task in tasks:
        now = known.get(task.content)
        if now is not None and now.stage == "admitted":
            admitted.append(task)
        else:
            said = f"{now.stage}: {now.entry.reason}" if now else "nothing is decided on it"
            left_out[task.id] = f"the ledger of the task set does not admit it: {said}"
    return admitted, left_out
