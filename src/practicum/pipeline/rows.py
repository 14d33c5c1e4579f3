"""Stored attempts of one run as a file for another trainer, or another run.

Owns: `export_rows`, `read_rows_of`, `keep_rows`; `rows.jsonl` in a run folder, the copy of what the run learns from.
Invariant: a file appears whole or not at all; every row says which attempt it is and which verifier judged it.
Must not know: models, losses.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from practicum.errors import ConfigError, TrainerError
from practicum.pipeline.runfolder import RunFolder
from practicum.tasks.taskset import load_taskset
from practicum.trajectories.durable import write_atomic
from practicum.trajectories.selection import pair_row, pairs, sft_row, successes

ROWS_FILE = "rows.jsonl"
Kind = Literal["sft", "pairs"]
NEVER = ("test", "validation", "admission", "branch")
"""Phases whose attempts are at tasks that are held out, nobody's work, or in part the same as others."""


def export_rows(run: Path, target: Path, *, kind: Kind, most: int = 8) -> dict[str, Any]:
    """Write the successes (`sft`) or the pairs (`pairs`, `most` a task) of `run` into `target`; what was done, as data.

    Attempts at held-out tasks are left out. Raises `ConfigError`, also where there is no row, and `StoreError`.
    """
    if target.exists():
        raise ConfigError(f"{target} is there already", fix="name a new file")
    with RunFolder.open(run) as folder:
        instructions = {task.id: task.instruction for task in load_taskset(run / "tasks") if task.split == "train"}
        phases = sorted({batch.phase for batch in folder.store.batches()} - set(NEVER))
        attempts = [t for phase in phases for t in folder.store.read(phase) if t.task_id in instructions]
    if kind == "sft":
        rows = [sft_row(each, instructions[each.task_id]) for each in successes(attempts)]
    else:
        rows = [pair_row(each, instructions[each.chosen.task_id]) for each in pairs(attempts, most=most)]
    if not rows:
        raise ConfigError(
            f"{run} has no {'success' if kind == 'sft' else 'task with a success and a failure'} to export",
            fix="its attempts at training tasks are listed by: practicum runs trajectory RUN",
        )
    data = b"".join(json.dumps(row, ensure_ascii=True, allow_nan=False).encode() + b"\n" for row in rows)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, data)
    return {
        "file": str(target),
        "kind": kind,
        "rows": len(rows),
        "tasks": len({row["task"] for row in rows}),
        "attempts": len(attempts),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def keep_rows(folder: RunFolder, source: str) -> None:
    """Copy the file `source` into the run folder once, so that a resume learns from the same. Raises `ConfigError`."""
    copy = folder.path / ROWS_FILE
    if copy.is_file():
        return
    try:
        data = Path(source).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"study.rows: cannot read {source}: {error.strerror or error}",
            fix="write it with: practicum runs export RUN FILE --as sft|pairs",
        ) from error
    write_atomic(copy, data)
    folder.audit("rows", source=source, sha256=hashlib.sha256(data).hexdigest())


Turns = tuple[str, ...]
"""A conversation's texts: the instruction, what was said, what was seen, what was said, …"""


def read_rows_of(path: Path, *, paired: bool) -> list[tuple[Turns, ...]]:
    """The conversations of each row: one to imitate, or with `paired` a better and a worse. Raises `TrainerError`."""
    found: list[tuple[Turns, ...]] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            if paired:
                found.append(tuple(_texts([*row["prompt"], *row[side]]) for side in ("chosen", "rejected")))
            else:
                found.append((_texts(row["messages"]),))
        except (ValueError, KeyError, TypeError) as error:
            wanted = "prompt, chosen and rejected" if paired else "messages"
            raise TrainerError(
                f"row {number} of {path} is not one of {wanted}: {error}",
                fix=f"practicum runs export RUN FILE --as {'pairs' if paired else 'sft'}",
            ) from error
    return found


def _texts(messages: Sequence[dict[str, str]]) -> Turns:
    """Raises `ValueError` where user and assistant do not take turns, or the assistant does not speak last."""
    for place, message in enumerate(messages):
        if message["role"] != ("assistant" if place % 2 else "user"):
            raise ValueError(f"message {place} is the {message['role']}'s")
    if not messages or len(messages) % 2:
        raise ValueError("the assistant does not speak last")
    return tuple(message["content"] for message in messages)
