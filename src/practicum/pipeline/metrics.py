"""The rows of `metrics.jsonl`: what they mean, and how they are appended, read, mended and rewritten.

Owns: the schema below and the file's format, one JSON object a line.
Invariant: a line is whole or it is the last and torn; readers leave a torn line out, a writer cuts it off first.
Must not know: who measures.

Every row has `kind`; keys may be missing or null where nothing was measured, and further keys are kept.

    {"kind": "admission", "task", "split", "admitted": bool, "reason": str | null}       one task vetted
    {"kind": "sft", "step", "loss", "epoch"}                                             one step of the warm start
    {"kind": "update", "update": n ≥ 1, "phase": "rl", "success", "reward", "entropy", "groups_with_signal",
     "staleness", "episodes", "boxes_per_s", "loss", "kl", "clip_fraction", "time": {stage: seconds},
     "episode_time": {state: share}, "tokens_used": {"trained", "lost": {why: n}, "share"},
     "staleness_tokens": {age: n}, "queues": {place: waits}, "bound": {"episodes_per_s", "binding_term", "terms",
     "achieved_per_s", "fraction"}, "partial_groups": n, "spares": {"given_up": n, "given_up_s", "kept_s"},
     "equal_attempts": judged attempts in groups of one reward, "tasks": {"active", "retired", "parked", "withdrawn"}}
    {"kind": "evaluation", "split": "validation" | "test", "update", "rate", "low", "high", "n"}
    {"kind": "canary", "update", "look": name, "judged": n, "deviations": [{"name", "said"}], "blamed": [task]}
                                                                 one look at canaries; tasks `blamed` are at fault alone
    {"kind": "quarantine", "update", "task", "rule", "reason", "masked": n}      a task leaves; n of its attempts masked
    {"kind": "correction", "update", "task", "form", "false_positive", "false_negative", "raw": [r], "corrected": [r],
     "clipped": n}                                                     rewards of one task, as judged and as trained
    {"kind": "update", "phase": "study", "update", "rows" | "pairs": n, "loss", "accuracy", "margin", "time"}
                                                                 one of `study`; accuracy and margin with pairs only
    {"kind": "reward_model", "update": 0, "pairs": n, "held_back": n, "accuracy", "accuracy_training", "loss"}
    {"kind": "proxy", "split", "update", "proxy": mean opinion, "gold": share that passed, "n"}   of the same attempts
    {"kind": "process", "update", "turns": n, "up": n, "down": n, "without": n}     credit by turn: turns that got on …
    {"kind": "guard", "update", "reason"}                a step towards this update was not taken; the weights stayed
    {"kind": "signal", "signal": name, "missing": n, "reason", "update"}                  verdicts lack a signal
    {"kind": "concurrency", "cap", "before", "reason"}                    how many attempts may act at once from now on
    {"kind": "breaker", "key", "state", "before", "reason"}                    a circuit breaker opened, or closed again
    {"kind": "journal", "lost": bytes, "reason"}                                      the end of the journal was damaged
    {"kind": "fault", "fault": error kind, "handled": "retried" | "masked" | …, "message", "count": 1, "update"}

`success` and `groups_with_signal` are shares in [0, 1], `reward` and `staleness` means over the attempts of the
update, `entropy` nats per sampled token. An evaluation at update n looks at the policy after n updates.
A row of update n is written before the checkpoint of n, so that a resume neither loses nor repeats it.
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from practicum.errors import StoreError
from practicum.trajectories.durable import append_line, write_atomic

Row = dict[str, Any]


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append one row. Raises `StoreError`; the file is then as before."""
    append_line(path, json.dumps(plain(row), allow_nan=False).encode())


def read_rows(path: Path) -> list[Row]:
    """All whole rows; none where there is no file. Raises `StoreError` for a whole line that is not an object."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    rows: list[Row] = []
    for number, line in enumerate(lines[:-1], 1):  # the last element is empty, or a torn line
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise StoreError(f"{path} line {number} is not a JSON object", fix="remove the line to go on without it")
        rows.append(row)
    return rows


def rewrite_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace the file by `rows`, all or nothing. Raises `StoreError`."""
    write_atomic(path, b"".join(json.dumps(plain(row), allow_nan=False).encode() + b"\n" for row in rows))


def plain(value: Any) -> Any:
    """`value` as JSON data: mappings, lists, paths, and numbers of any library; what is not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} is not JSON data")
