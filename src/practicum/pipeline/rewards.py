"""The rewards that train: those of the verdicts, corrected for their noise, or the opinion of a learnt model.

Owns: `Rewards`, `open_rewards`; `noise.json` in a run folder, the copy of the error rates that the run trains by.
Invariant: stored verdicts are never changed: a correction exists only on the way to the trainer, and is logged beside
what it was made from. A task whose verdicts say too little does not train.
Must not know: how rates were measured, or rewards become credit.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from practicum.config.learning import RewardConfig
from practicum.curation.soundness.noise import read_noise
from practicum.errors import ConfigError
from practicum.pipeline.runfolder import RunFolder
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.trajectories.durable import write_atomic
from practicum.verification.calibration.corrections import Corrected, corrected_reward
from practicum.verification.calibration.noise import NoiseEstimate, use_problem

if TYPE_CHECKING:
    from practicum.pipeline.proxy import Proxy
    from practicum.pipeline.run import Run

NOISE_FILE = "noise.json"
Show = Callable[[dict[str, Any]], None]


class Rewards:
    """What a run's configuration says about rewards, with the error rates that it names, by task digest.

    `proxy` is the model whose opinion trains in place of verdicts, once there is one.
    """

    def __init__(self, config: RewardConfig, estimates: Mapping[str, NoiseEstimate]) -> None:
        self._config = config
        self._estimates = estimates
        self.proxy: Proxy | None = None

    def spent(self, run: Run) -> bool:
        """Whether the rewards have nothing more to teach; only a learnt model's opinion comes to that."""
        return self.proxy is not None and self.proxy.spent(run)

    def fit(self, tasks: Sequence[Task], show: Show) -> list[Task]:
        """Those of `tasks` whose verdicts say enough to train on; `show` gets an admission row of each other one."""
        if self._config.noise is None:
            return list(tasks)
        kept = []
        for task in tasks:
            problem = use_problem(self._estimates.get(task.digest), min_youden=self._config.min_youden)
            if problem is None:
                kept.append(task)
            else:
                show({"kind": "admission", "task": task.id, "split": task.split, "admitted": False, "reason": problem})
        return kept

    def corrected(self, trajectories: Sequence[Trajectory], show: Show, *, update: int) -> list[Trajectory]:
        """`trajectories` with the rewards that train; `show` gets a row for each task, raw beside corrected."""
        if self.proxy is not None:
            return self.proxy.replaced(trajectories, show, update=update)
        if self._config.correction == "none":
            return list(trajectories)
        changed: list[Trajectory] = []
        pairs: defaultdict[tuple[str, str], list[Corrected]] = defaultdict(list)
        for trajectory in trajectories:
            pair = self._correct(trajectory)
            if pair is None or trajectory.verdict is None:
                changed.append(trajectory)
                continue
            pairs[trajectory.task_id, trajectory.task_digest].append(pair)
            changed.append(replace(trajectory, verdict=replace(trajectory.verdict, reward=pair.value)))
        for (task, digest), each in sorted(pairs.items()):
            found = self._estimates[digest]
            show(
                {
                    "kind": "correction",
                    "update": update,
                    "task": task,
                    "form": self._config.correction,
                    "false_positive": found.false_positive.value,
                    "false_negative": found.false_negative.value,
                    "raw": [pair.raw for pair in each],
                    "corrected": [pair.value for pair in each],
                    "clipped": sum(pair.clipped for pair in each),
                }
            )
        return changed

    def _correct(self, trajectory: Trajectory) -> Corrected | None:
        if trajectory.fault is not None or trajectory.verdict is None:
            return None
        found = self._estimates.get(trajectory.task_digest)
        return corrected_reward(trajectory.verdict, self._config.correction, found)


def open_rewards(folder: RunFolder, config: RewardConfig) -> Rewards:
    """The rewards of a run. Its error rates are copied into the run folder once, and read from there.

    Raises `ConfigError` where they cannot be read.
    """
    if config.noise is None:
        return Rewards(config, {})
    copy = folder.path / NOISE_FILE
    if not copy.is_file():
        try:
            data = Path(config.noise).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"reward.noise: cannot read {config.noise}: {error.strerror or error}",
                fix="write it with: practicum verifier noise TASKSET",
            ) from error
        write_atomic(copy, data)
        folder.audit("noise", source=config.noise, sha256=hashlib.sha256(data).hexdigest())
    return Rewards(config, read_noise(copy))
