"""Which candidates of which project were tried already, on disk beside the tasks.

Owns: `TASKSET/.practicum/synthesis.jsonl`, `Journal`, `Entry`.
Invariant: a candidate is written down after its task stands whole, so one that was cut off is tried again and no task
is lost; a line that a killed writer left torn is dropped.
Must not know: how candidates are tried.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from practicum.errors import StoreError
from practicum.trajectories.durable import append_line, cut_torn_line

NAME = "synthesis.jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one candidate. `task` is the id of the task made of it, or empty; then `reason` says why."""

    project: str
    candidate: str
    strategy: str
    kind: str
    task: str = ""
    reason: str = ""
    detail: str = ""
    killed: bool = False


class Journal:
    """The candidates of one project that were tried with the same settings, and where new ones are written down."""

    def __init__(self, out: Path, project: str) -> None:
        folder = out / ".practicum"
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / NAME
        self._project = project
        cut_torn_line(self._path)
        self._tried: dict[str, Entry] = {}
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                entry = Entry(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise StoreError(f"{self._path}:{number} cannot be read: {error}", fix="remove that line") from error
            if entry.project == project:
                self._tried[entry.candidate] = entry

    def __contains__(self, candidate: str) -> bool:
        return candidate in self._tried

    @property
    def tried(self) -> frozenset[str]:
        """Keys of the candidates that are written down."""
        return frozenset(self._tried)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was written down, in order."""
        return tuple(self._tried.values())

    @property
    def kept(self) -> tuple[str, ...]:
        """Ids of the tasks that were made before and since, in order."""
        return tuple(entry.task for entry in self._tried.values() if entry.task)

    def add(self, entry: Entry) -> None:
        """Write down what became of a candidate. Raises `StoreError`."""
        append_line(self._path, json.dumps(dataclasses.asdict(entry), ensure_ascii=False).encode())
        self._tried[entry.candidate] = entry
