"""practicum's side: `warm` makes the model that both sides begin with, `learn` trains it and says what that cost.

    python ours.py warm FOLDER SETTING…       a run up to version 0, in FOLDER/run, and that version in FOLDER/model
    python ours.py learn FOLDER OUT SETTING…  a copy of that run goes on, as `practicum train --resume` would

Owns: nothing but measuring: what runs is `practicum.pipeline.train`, with records, checkpoints and all.
Invariant: what is counted is `learn`, from the first batch asked for to the last version published.
Must not know: the other side.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

from clock import PARTS, Parts, Spent, spent
from words import without_letters, write_folder

import practicum.pipeline.train as training
import practicum.pipeline.worker as working
from practicum.config import load_config
from practicum.pipeline import learn as learning
from practicum.pipeline.console import RunConsole
from practicum.pipeline.orders import WorkerSetup
from practicum.pipeline.prepare import train_tokenizer
from practicum.pipeline.run import Run
from practicum.policies.local.generator import Generator
from practicum.policies.local.renderer import LocalRenderer
from practicum.policies.local.saved import Saved
from practicum.policies.local.tokenizer import Tokenizer
from practicum.records.task import Task
from practicum.records.trajectory import Trajectory
from practicum.trajectories.store import TrajectoryStore
from practicum.weights.store import VersionStore

_PARTS_FILE = "TRL_BENCHMARK_PARTS"
_serve = working.serve


def serve(connection: Connection, setup: WorkerSetup) -> None:
    """The worker's entry point, with a clock on the model and on its words."""
    parts = Parts(Path(os.environ[_PARTS_FILE] + ".worker"))
    parts.time(Generator, "generate", "generation")
    for name in ("start", "extend", "decode", "parse"):
        parts.time(LocalRenderer, name, "text")
    _serve(connection, setup)


def _with_tokenizer() -> AbstractContextManager[Any]:
    """The run's tokenizer, as the other side can have it."""

    def trained(tasks: Sequence[Task]) -> Tokenizer:
        return without_letters(train_tokenizer(tasks))

    return patch.object(training, "train_tokenizer", trained)


def warm(folder: Path, settings: list[str]) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt  # a run that was stopped can be continued

    try:
        with RunConsole() as console, _with_tokenizer(), patch.object(training, "learn", stop):
            training.train(load_config("quickstart", settings), root=folder, resume=None, console=console)
    except KeyboardInterrupt:
        (made,) = folder.glob("quickstart-*")
        made.rename(folder / "run")
    versions = VersionStore(folder / "run" / "checkpoints")
    model, renderer = Saved(versions.read, versions.fetch).build(0)
    assert isinstance(renderer, LocalRenderer)
    write_folder(model, renderer.tokenizer, folder / "model")


def learn(folder: Path, out: Path, settings: list[str]) -> None:
    file, copy = out.with_suffix(".parts"), out.with_suffix(".run")
    shutil.rmtree(copy, ignore_errors=True)  # of a call that was interrupted
    shutil.copytree(folder / "run", copy)
    os.environ[_PARTS_FILE] = str(file)
    parts = Parts(file)
    parts.time(learning, "update", "forward and backward")
    parts.time(learning, "publish", "records")
    parts.time(Run, "commit", "records")
    parts.time(TrajectoryStore, "append", "records")
    found: dict[str, Any] = {}

    def measured(run: Run, *others: Any) -> None:
        (worker,) = (each.pid for each in multiprocessing.active_children() if each.name == "rollouts")
        assert worker is not None
        # Here, since a run is not resumed with other settings: these are of the updates alone, of which there are none.
        run.config = load_config(copy / "config.toml", settings)
        theirs = Parts(file.with_suffix(".parts.worker"))
        pids = (os.getpid(), worker)
        before, parts_before = spent(pids), _sum(parts, theirs)
        learning.learn(run, *others)
        cost = spent(pids).since(before)
        done = {name: seconds - parts_before[name] for name, seconds in _sum(parts, theirs).items()}
        found.update(_outcome(run, cost, done, worker))

    with (
        RunConsole() as console,
        _with_tokenizer(),
        patch.object(training, "learn", measured),
        patch.object(working, "serve", serve),
    ):
        training.train(load_config(copy / "config.toml"), root=copy.parent, resume=copy, console=console)
    shutil.rmtree(copy)
    out.write_text(json.dumps(found))


def _sum(*each: Parts) -> dict[str, float]:
    read = [parts.read() for parts in each]
    return {name: sum(seconds[name] for seconds in read) for name in PARTS}


def _outcome(run: Run, cost: Spent, parts: dict[str, float], worker: int) -> dict[str, Any]:
    store = run.folder.store
    batches = [store.load(batch) for batch in store.batches("rl")]
    rows = [row for row in run.folder.metrics() if row["kind"] == "update"]
    episodes = [trajectory for batch in batches for trajectory in batch]
    turns = [turn for trajectory in episodes for turn in trajectory.turns]
    return {
        "trainer": cost.own[os.getpid()],
        "worker": cost.own[worker],
        "boxes": cost.boxes,
        "wall": cost.wall,
        "parts": parts,
        "groups": [_groups(batch) for batch in batches],
        "episodes": len(episodes),
        "turns": len(turns),
        "sampled": sum(len(turn.sampled_ids) for turn in turns),
        "reward": [row["reward"] for row in rows],
        "signal": [row["groups_with_signal"] for row in rows],
        "entropy": [row["entropy"] for row in rows],
    }


def _groups(batch: Sequence[Trajectory]) -> list[tuple[str, list[bool]]]:
    """Task of each group and which of its attempts passed, those aside that the machine is at fault for."""
    groups: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for each in batch:
        groups[each.group_id, each.task_id] += [each.passed] if each.reward is not None else []
    return [(task, passed) for (_, task), passed in groups.items()]


def main(verb: str, folder: str, *more: str) -> None:
    if verb == "warm":
        warm(Path(folder), list(more))
    else:
        learn(Path(folder), Path(more[0]), list(more[1:]))


if __name__ == "__main__":
    main(*sys.argv[1:])
