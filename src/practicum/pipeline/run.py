"""What the stages of one training run share, and the state from which it continues.

Owns: `Run`, `RunState`, seeds of attempts, counting of faults.
Invariant: a state is committed only after everything it counts is on disk; seeds depend on the run's seed and the
attempt's name alone.
Must not know: what the stages do.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

from practicum.config import RunConfig
from practicum.curation.drift import Tally
from practicum.errors import StoreError
from practicum.pipeline.console import RunConsole
from practicum.pipeline.orders import Done, Settled
from practicum.pipeline.rollout_process import RolloutProcess
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.signals import missing_rows
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.rollouts.attempt import AttemptSpec
from practicum.rollouts.collector import SPARE
from practicum.tasks.sampler import SamplerState
from practicum.telemetry import Meter
from practicum.trajectories.durable import write_atomic
from practicum.weights.store import VersionStore

if TYPE_CHECKING:
    from practicum.pipeline.rescoring import Replay
    from practicum.policies.local.trainee import Trainee

STATE_FILE = "state.json"


@dataclass
class RunState:
    """Counters that a resume takes over. `version` is the number of updates made, `learned` of those with signal.

    Batches of the first `trusted` updates were followed by a good look at the canaries. `tallies` counts by task what
    attempts came to; `attempts_equal` of `attempts` were in groups of one reward, which taught nothing. `sampler` says
    what the next batch holds. `born`: groups in the flow that were begun and have not trained, with their versions.
    """

    version: int = 0
    learned: int = 0
    trusted: int = 0
    best_version: int = 0
    best_rate: float = -1.0
    episodes: int = 0
    boxes_created: int = 0
    boxes_leaked: int = 0
    sampler: SamplerState = field(default_factory=SamplerState)
    tallies: dict[str, Tally] = field(default_factory=dict)
    attempts: int = 0
    attempts_equal: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    signals_missing: dict[str, int] = field(default_factory=dict)
    born: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As data that JSON keeps exactly."""
        document = {each.name: getattr(self, each.name) for each in fields(self)}
        tallies = {task: each.to_json() for task, each in self.tallies.items()}
        return document | {"sampler": self.sampler.to_json(), "tallies": tallies}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """What `to_json` gave. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
        # States of before the curriculum know outcomes only as rates; their sampler begins anew.
        given = {name: value for name, value in document.items() if name != "outcomes"}
        given["sampler"] = SamplerState.from_json(given["sampler"]) if "sampler" in given else SamplerState()
        given["tallies"] = {task: Tally(**each) for task, each in given.get("tallies", {}).items()}
        return cls(**given)


@dataclass
class Run:
    """One run in progress. `tasks` holds the admitted tasks of each split, `replay` batches not to be sampled."""

    folder: RunFolder
    config: RunConfig
    console: RunConsole
    process: RolloutProcess
    trainee: Trainee
    tasks: dict[str, list[Task]]
    replay: Replay
    state: RunState = field(default_factory=RunState)
    meter: Meter = field(default_factory=Meter)

    def __post_init__(self) -> None:
        self.versions = VersionStore(self.folder.checkpoints)
        self._accounted: list[str] = []
        self.renderer = self.trainee.renderer

    def show(self, row: dict[str, Any]) -> None:
        """Put a metrics row on disk and before the person."""
        self.folder.append_metric(row)
        self.console.show(row)

    def account(self, done: Done, *, update: int) -> list[Trajectory]:
        """Count what an order came to; faults and missing signals get a row each kind. Returns its trajectories."""
        trajectories = list(done.trajectories)
        self._accounted.append(done.order)
        self.state.episodes += len(trajectories)
        self.state.boxes_created += done.boxes
        lost = (t.fault for t in trajectories if t.fault is not None and t.fault.kind != SPARE)
        faults = Counter((fault.kind, fault.message) for fault in lost)
        for (kind, message), count in sorted(faults.items()):
            self.state.faults[kind] = self.state.faults.get(kind, 0) + count
            row = {"kind": "fault", "fault": kind, "handled": "masked", "message": message[:500], "count": count}
            self.show(row | {"update": update})
        for lack in missing_rows(trajectories, update=update):
            name, missing = lack["signal"], self.state.signals_missing
            missing[name] = missing.get(name, 0) + lack["missing"]
            self.show(lack)
        return trajectories

    def commit(self) -> None:
        """From here a resume continues. Raises `StoreError`."""
        for stage, seconds in self.meter.seconds.items():
            self.state.seconds[stage] = self.state.seconds.get(stage, 0.0) + seconds
        self.meter.seconds.clear()
        text = json.dumps(self.state.to_json(), indent=1)
        write_atomic(self.versions.path(self.state.version) / STATE_FILE, text.encode())
        if self._accounted:  # all of it is in the store, and will not be asked for again
            self.process.send(Settled(tuple(self._accounted)))
            self._accounted.clear()


def last_state(versions: VersionStore) -> RunState | None:
    """The newest committed state, or None where nothing was committed."""
    for version in reversed(versions.versions()):
        if (versions.path(version) / STATE_FILE).is_file():
            try:
                return RunState.from_json(json.loads(versions.read(version, STATE_FILE)))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise StoreError(f"{versions.path(version) / STATE_FILE} is damaged: {error}") from error
    return None


def seed_of(run_seed: int, name: str) -> int:
    """Seed in [0, 2⁶³) of the attempt `name`."""
    return int.from_bytes(hashlib.sha256(f"{run_seed}:{name}".encode()).digest()[:8], "big") >> 1


def specs_of(
    run_seed: int, groups: Iterable[tuple[str, Task]], *, size: int = 1, temperature: float = 1.0
) -> tuple[AttemptSpec, ...]:
    """`size` attempts for each named group."""
    return tuple(
        AttemptSpec(
            task=task, group_id=name, index=index, seed=seed_of(run_seed, f"{name}/{index}"), temperature=temperature
        )
        for name, task in groups
        for index in range(size)
    )


def split_of(tasks: Sequence[Task], split: str) -> list[Task]:
    return [task for task in tasks if task.split == split]
