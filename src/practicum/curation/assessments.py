"""What all gates found on each task, kept beside the ledger that decides by it: `assessments.jsonl`.

Owns: `Assessments`, `gates_digest`, `assessment_line`.
Invariant: an assessment is kept once for each content and finding, and named by a digest that leaves time out; the
ledger holds that digest, so an altered line is no evidence.
Must not know: gates, decisions on tasks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from practicum.errors import StoreError
from practicum.records.assessment import Assessment, GateResult
from practicum.records.tree import digest_of
from practicum.trajectories.durable import append_line, cut_torn_line, failed

FILE = "assessments.jsonl"
RELEASED = "evidence.jsonl"
"""The same lines in a release, of the tasks that it holds."""
_HEAD = re.compile(rb'\{"content": "([0-9a-f]{64})", "gates": "([0-9a-f]{64})", ')


class Assessments:
    """The assessments beside a ledger. Of each content the last one counts; only where it stands is held in memory.

    Of a release, what it was released on counts until something is found later.
    """

    def __init__(self, path: Path) -> None:
        """`path` is that of `assessments.jsonl`. Raises `StoreError` where a file is there and cannot be read."""
        self.path = path
        self._places: dict[str, tuple[str, Path, int]] = {}
        self._scan(path.parent.parent / RELEASED)
        self._scan(path)

    def __contains__(self, content: str) -> bool:
        return content in self._places

    def named(self, content: str) -> str | None:
        """The digest of what was found on `content`."""
        return self._places[content][0] if content in self._places else None

    def get(self, content: str) -> Assessment | None:
        """The assessment of `content`; None where there is none, or where it is not what its digest says."""
        if content not in self._places:
            return None
        named, path, start = self._places[content]
        try:
            with open(path, "rb") as file:
                file.seek(start)
                found = _read(json.loads(file.readline()))
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError):
            return None
        return found if (found.content, gates_digest(found)) == (content, named) else None

    def keep(self, assessments: Iterable[Assessment]) -> None:
        """Keep each that says something new, on the disk when this returns. Raises `StoreError`."""
        lines = [assessment_line(each) for each in assessments if self.named(each.content) != gates_digest(each)]
        if not lines:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            cut_torn_line(self.path)
        except OSError as error:
            raise failed(self.path, error) from error
        append_line(self.path, b"\n".join(lines), sync=True)
        self._scan(self.path)

    def _scan(self, path: Path) -> None:
        try:
            with open(path, "rb") as file:
                start = 0
                for line in file:
                    found = _HEAD.match(line)
                    if found is not None and line.endswith(b"\n"):
                        self._places[found[1].decode()] = (found[2].decode(), path, start)
                    start += len(line)
        except FileNotFoundError:
            return  # nothing was assessed yet
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from error


def gates_digest(assessment: Assessment) -> str:
    """SHA-256 naming what was decided and what all gates found: everything but how long it took."""
    return digest_of([assessment.decision, {name: gate_json(found) for name, found in assessment.gates.items()}])


def gate_json(result: GateResult) -> dict[str, Any]:
    """One gate's finding as JSON data, without the time it took."""
    return {
        "passed": result.passed,
        "assessed": result.assessed,
        "reason": result.reason,
        "version": result.version,
        "evidence": json.loads(json.dumps(result.evidence, default=str)),
    }


def assessment_line(each: Assessment, *, timed: bool = True) -> bytes:
    """One line of the file, without its line break; with the seconds that each gate took only where `timed`."""
    seconds = {name: {"seconds": result.seconds} if timed else {} for name, result in each.gates.items()}
    row = {  # what is looked for comes first
        "content": each.content,
        "gates": gates_digest(each),
        "task": each.task,
        "digest": each.digest,
        "decision": each.decision,
        "reason": each.reason,
        "found": {name: gate_json(result) | seconds[name] for name, result in each.gates.items()},
    }
    return json.dumps(row).encode()


def _read(row: dict[str, Any]) -> Assessment:
    gates = {name: GateResult(gate=name, **found) for name, found in row["found"].items()}
    return Assessment(row["task"], row["digest"], row["content"], row["decision"], row["reason"], gates)
