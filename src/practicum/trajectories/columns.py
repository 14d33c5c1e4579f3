"""Trajectories as Arrow tables, and back.

Owns: the schema of a stored trajectory and both directions of the conversion.
Invariant: `from_table(to_table(batch)) == batch`, whatever a model said: NUL, lone surrogates and binary
content are data. Floats keep their 64 bits.
Must not know: files.

Two columns are encoded. `prompt_suffix` holds what a turn's prompt adds where it extends the previous turn's
prompt and sample (`prompt_kept` ids long; 0 where it does not): the prompt is those ids and the suffix. Text that
UTF-8 cannot hold (a lone surrogate) is escaped as U+FDD0 and four hex digits, and so is U+FDD0 itself; all
other text is stored as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from practicum.errors import StoreError
from practicum.records.trajectory import Action, Fault, Trajectory, Turn
from practicum.records.tree import Change, File
from practicum.records.verdict import Finding, Signal, Submission, Verdict

SCHEMA_VERSION = 1
_UNSAFE = re.compile("[\ud800-\udfff\ufdd0]")
_ESCAPED = re.compile("\ufdd0([0-9a-f]{4})")

Row = dict[str, Any]


def to_table(batch: Sequence[Trajectory], *, phase: str, update: int) -> Any:
    """A `pyarrow.Table` with one row per trajectory. Raises `StoreError` for what no column can hold."""
    import pyarrow as pa

    rows = [row_of(trajectory, phase, update) for trajectory in batch]
    metadata = {
        b"practicum.schema": str(SCHEMA_VERSION).encode(),
        b"practicum.phase": phase.encode(),
        b"practicum.update": str(update).encode(),
    }
    try:
        return pa.Table.from_pylist(rows, schema=schema().with_metadata(metadata))
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise StoreError(f"a trajectory of {phase} {update} holds a value that cannot be stored: {error}") from error


def from_table(table: Any) -> list[Trajectory]:
    """The trajectories in a table made by `to_table`."""
    return [trajectory_of(row) for row in table.to_pylist()]


@cache
def schema() -> Any:
    """The Arrow schema. Strings are UTF-8, times in seconds, ids and seeds 64-bit integers."""
    import pyarrow as pa

    text, whole, real = pa.string(), pa.int64(), pa.float64()
    numbers = pa.map_(text, real)
    finding = pa.struct([("kind", text), ("path", text), ("evidence", text), ("severity", text)])
    signal = pa.struct([("name", text), ("score", real), ("weight", real), ("reliability", real)])
    file = pa.struct([("data", pa.binary()), ("mode", whole)])
    change = pa.struct([("path", text), ("kind", text), ("file", file)])
    turn = pa.struct(
        [
            ("index", whole),
            ("prompt_kept", whole),
            ("prompt_suffix", pa.list_(whole)),
            ("sampled_ids", pa.list_(whole)),
            ("logprobs", pa.list_(real)),
            ("policy_version", whole),
            ("stop_reason", text),
            ("text", text),
            ("action", pa.struct([("tool", text), ("arguments", pa.map_(text, text))])),
            ("observation", text),
            ("snapshot_before", text),
            ("snapshot_after", text),
            ("timing", numbers),
            ("failed", pa.bool_()),
        ]
    )
    verdict = pa.struct(
        [
            ("status", text),
            ("outcome", text),
            ("reward", real),
            ("tests", pa.map_(text, text)),
            ("signals", pa.list_(signal)),
            ("findings", pa.list_(finding)),
            ("evidence", text),
            ("reason", text),
            ("verifier_version", text),
        ]
    )
    flat = [(name, text) for name in ("id", "group_id", "phase", "task_id", "task_digest", "stop_reason")]
    flat += [(name, text) for name in ("fault_kind", "fault_message", "status", "outcome")]
    flat += [(name, whole) for name in ("update", "n_turns", "n_tokens", "policy_version", "seed")]
    submission = pa.struct([("changes", pa.list_(change)), ("findings", pa.list_(finding))])
    nested = [("cost", numbers), ("submission", submission), ("verdict", verdict), ("turns", pa.list_(turn))]
    return pa.schema([*flat, ("reward", real), *nested])


def pack(text: str) -> str:
    """`text` with what UTF-8 cannot hold escaped; other text is returned as it is."""
    return _UNSAFE.sub(lambda match: f"\ufdd0{ord(match[0]):04x}", text)


def unpack(text: str) -> str:
    """The inverse of `pack`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def row_of(trajectory: Trajectory, phase: str, update: int) -> Row:
    """`trajectory` as plain data: one row of the table."""
    fault, verdict, submission = trajectory.fault, trajectory.verdict, trajectory.submission
    return {
        "id": pack(trajectory.id),
        "group_id": pack(trajectory.group_id),
        "phase": phase,
        "update": update,
        "task_id": pack(trajectory.task_id),
        "task_digest": pack(trajectory.task_digest),
        "stop_reason": trajectory.stop_reason,
        "fault_kind": pack(fault.kind) if fault else None,
        "fault_message": pack(fault.message) if fault else None,
        "status": verdict.status if verdict else None,
        "outcome": verdict.outcome if verdict else None,
        "reward": trajectory.reward,
        "n_turns": len(trajectory.turns),
        "n_tokens": sum(len(turn.sampled_ids) for turn in trajectory.turns),
        "policy_version": trajectory.policy_version,
        "seed": trajectory.seed,
        "cost": _numbers(trajectory.cost),
        "submission": _submission_row(submission) if submission else None,
        "verdict": _verdict_row(trajectory.id, verdict) if verdict else None,
        "turns": turn_rows(trajectory.turns),
    }


def turn_rows(turns: Sequence[Turn]) -> list[Row]:
    """Turns that follow each other as plain data."""
    rows: list[Row] = []
    seen: tuple[int, ...] = ()
    for turn in turns:
        kept = len(seen) if turn.prompt_ids[: len(seen)] == seen else 0
        rows.append(
            {
                "index": turn.index,
                "prompt_kept": kept,
                "prompt_suffix": turn.prompt_ids[kept:],
                "sampled_ids": turn.sampled_ids,
                "logprobs": turn.logprobs,
                "policy_version": turn.policy_version,
                "stop_reason": turn.stop_reason,
                "text": pack(turn.text),
                "action": {"tool": pack(turn.action.tool), "arguments": _texts(turn.action.arguments)},
                "observation": pack(turn.observation),
                "snapshot_before": pack(turn.snapshot_before),
                "snapshot_after": pack(turn.snapshot_after),
                "timing": _numbers(turn.timing),
                "failed": turn.failed,
            }
        )
        seen = turn.prompt_ids + turn.sampled_ids
    return rows


def _submission_row(submission: Submission) -> Row:
    changes = [
        {
            "path": pack(change.path),
            "kind": change.kind,
            "file": {"data": change.file.data, "mode": change.file.mode} if change.file else None,
        }
        for change in submission.changes
    ]
    return {"changes": changes, "findings": _findings_rows(submission.findings)}


def _verdict_row(owner: str, verdict: Verdict) -> Row:
    try:
        evidence = json.dumps(dict(verdict.evidence))
    except (TypeError, ValueError) as error:
        raise StoreError(f"the evidence in the verdict of {owner} is not JSON data: {error}") from error
    return {
        "status": verdict.status,
        "outcome": verdict.outcome,
        "reward": verdict.reward,
        "tests": _texts(verdict.tests),
        "signals": [
            {"name": pack(s.name), "score": s.score, "weight": s.weight, "reliability": s.reliability}
            for s in verdict.signals
        ],
        "findings": _findings_rows(verdict.findings),
        "evidence": evidence,
        "reason": None if verdict.reason is None else pack(verdict.reason),
        "verifier_version": pack(verdict.verifier_version),
    }


def _findings_rows(findings: Sequence[Finding]) -> list[Row]:
    return [
        {"kind": pack(f.kind), "path": pack(f.path), "evidence": pack(f.evidence), "severity": f.severity}
        for f in findings
    ]


def _texts(mapping: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(pack(key), pack(value)) for key, value in mapping.items()]


def _numbers(mapping: Mapping[str, float]) -> list[tuple[str, float]]:
    return [(pack(key), value) for key, value in mapping.items()]


def trajectory_of(row: Row) -> Trajectory:
    """The inverse of `row_of`."""
    return Trajectory(
        id=unpack(row["id"]),
        group_id=unpack(row["group_id"]),
        task_id=unpack(row["task_id"]),
        task_digest=unpack(row["task_digest"]),
        turns=turns_of(row["turns"]),
        stop_reason=row["stop_reason"],
        fault=None if row["fault_kind"] is None else Fault(unpack(row["fault_kind"]), unpack(row["fault_message"])),
        submission=None if row["submission"] is None else _submission(row["submission"]),
        verdict=None if row["verdict"] is None else _verdict(row["verdict"]),
        cost=_numbers_of(row["cost"]),
        seed=row["seed"],
    )


def turns_of(rows: Sequence[Row]) -> tuple[Turn, ...]:
    """The inverse of `turn_rows`."""
    turns: list[Turn] = []
    seen: tuple[int, ...] = ()
    for row in rows:
        prompt = seen[: row["prompt_kept"]] + tuple(row["prompt_suffix"])
        sampled = tuple(row["sampled_ids"])
        turns.append(
            Turn(
                index=row["index"],
                prompt_ids=prompt,
                sampled_ids=sampled,
                logprobs=tuple(row["logprobs"]),
                policy_version=row["policy_version"],
                stop_reason=row["stop_reason"],
                text=unpack(row["text"]),
                action=Action(unpack(row["action"]["tool"]), _texts_of(row["action"]["arguments"])),
                observation=unpack(row["observation"]),
                snapshot_before=unpack(row["snapshot_before"]),
                snapshot_after=unpack(row["snapshot_after"]),
                timing=_numbers_of(row["timing"]),
                failed=row.get("failed"),  # a file written before there was such a column says nothing
            )
        )
        seen = prompt + sampled
    return tuple(turns)


def _submission(row: Row) -> Submission:
    changes = tuple(
        Change(unpack(c["path"]), c["kind"], None if c["file"] is None else File(c["file"]["data"], c["file"]["mode"]))
        for c in row["changes"]
    )
    return Submission(changes, _findings(row["findings"]))


def _verdict(row: Row) -> Verdict:
    tests: dict[str, Any] = _texts_of(row["tests"])
    return Verdict(
        status=row["status"],
        outcome=row["outcome"],
        reward=row["reward"],
        tests=tests,
        signals=tuple(Signal(unpack(s["name"]), s["score"], s["weight"], s["reliability"]) for s in row["signals"]),
        findings=_findings(row["findings"]),
        evidence=json.loads(row["evidence"]),
        reason=None if row["reason"] is None else unpack(row["reason"]),
        verifier_version=unpack(row["verifier_version"]),
    )


def _findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    return tuple(Finding(unpack(f["kind"]), unpack(f["path"]), unpack(f["evidence"]), f["severity"]) for f in rows)


def _texts_of(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    return {unpack(key): unpack(value) for key, value in pairs}


def _numbers_of(pairs: Sequence[tuple[str, float]]) -> dict[str, float]:
    return {unpack(key): value for key, value in pairs}
