"""What the trainer's process and the rollout worker say to each other.

Owns: the messages, as frozen data that pickles.
Invariant: every order that is accepted is answered once, by `Done`, `Judged` or `Failed`.
Must not know: how orders are carried out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from practicum.config.sections import JudgeConfig, RolloutConfig, SandboxConfig, ScheduleConfig
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Submission, Verdict
from practicum.rollouts.attempt import AttemptSpec

if TYPE_CHECKING:  # it brings models with it, and these are messages
    from practicum.policies.local.trainee import Speaker

Who = Literal["oracle", "noop", "demonstrator", "model"]


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What a worker needs to know once. `speaker` says how the model speaks; `checkpoints` is the version store."""

    run_id: str
    seed: int
    sandbox: SandboxConfig
    rollout: RolloutConfig
    correct_rate: float
    speaker: Speaker
    checkpoints: Path
    snapshots: Path
    journal: Path
    schedule: ScheduleConfig = ScheduleConfig()
    judge: JudgeConfig | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """Make `specs`, with `who` acting; `version` names the weights where that is the model.

    `refills` replace attempts of their group that a fault took; of a group with more specs than `size`, the first so
    many that end count. At most `most` act at once. `flowing`: `version` is the least that may act, and a newer one may
    take over meanwhile.
    """

    id: str
    who: Who
    specs: tuple[AttemptSpec, ...]
    version: int = 0
    most: int | None = None
    refills: tuple[AttemptSpec, ...] = ()
    size: int | None = None
    flowing: bool = False


@dataclass(frozen=True, slots=True)
class Judge:
    """Judge `items` anew, by the very verifier that judges the run's attempts."""

    id: str
    items: tuple[tuple[Task, Submission], ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of these orders is on record for good: what the journal holds of them is not needed any more."""

    orders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """End: close every box, report what is left, exit."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker can make boxes. `host` tells for the record what they are made of."""

    host: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of the order's attempts have ended."""

    order: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Told:
    """Something for the record, as a metrics row: how many may act at once, a breaker that opened."""

    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """All attempts of an order, in its order; `seconds` of wall clock, `boxes` created since the last answer.

    `queues` says of each place where attempts wait how long they did so far in this run (`scheduling.waits`).
    """

    order: str
    trajectories: tuple[Trajectory, ...]
    seconds: float
    boxes: int
    queues: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts on all items of a `Judge`, in its order; `boxes` created since the last answer."""

    order: str
    verdicts: tuple[Verdict, ...]
    boxes: int


@dataclass(frozen=True, slots=True)
class Failed:
    """An order, or the worker itself (`order` empty), could not go on."""

    order: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class Closed:
    """The worker's last word: boxes it made in all, and those it could not see gone."""

    created: int
    leaked: int
    notes: tuple[str, ...] = field(default=())
