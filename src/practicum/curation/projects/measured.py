"""What was measured on an untouched project, on disk, so that a run that was stopped goes on.

Owns: `TASKSET/.practicum/baseline.jsonl`, `Measured`.
Invariant: an entry holds for one state of a project, its layer included, and one version of what is measured; it is
written whole and durably or not at all.
Must not know: what is measured, what follows from it.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

from practicum.curation.projects.suiterun import SuiteRun
from practicum.errors import StoreError
from practicum.trajectories.durable import append_line, cut_torn_line

NAME = "baseline.jsonl"
VERSION = 1  # of what is measured and how it is written


class Measured:
    """Entries of one project by name. Without a folder they are kept in memory only."""

    def __init__(self, out: Path | None, project: str) -> None:
        self._path = out / ".practicum" / NAME if out is not None else None
        self._project = project
        self._found: dict[str, Any] = {}
        if self._path is None or not self._path.exists():
            return
        cut_torn_line(self._path)
        for number, line in enumerate(self._path.read_text("utf-8").splitlines(), 1):
            try:
                version, of, name, value = json.loads(line)
            except (ValueError, TypeError) as error:
                raise StoreError(f"{self._path}:{number} cannot be read: {error}", fix="remove that line") from error
            if (version, of) == (VERSION, project):
                self._found[name] = value

    def get(self, name: str) -> Any:
        """The entry, or None."""
        return self._found.get(name)

    def put(self, name: str, value: Any) -> None:
        """Keep an entry (JSON-able). Raises `StoreError`."""
        self._found[name] = value
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            line = json.dumps([VERSION, self._project, name, value])
            append_line(self._path, line.encode(), sync=True)

    def run(self, name: str) -> SuiteRun | None:
        """The run of that name."""
        kept = self.get(name)
        if kept is None:
            return None
        fields = json.loads(zlib.decompress(base64.b64decode(kept)))
        covered = {
            test: {path: frozenset(lines) for path, lines in by_path.items()}
            for test, by_path in fields.pop("covered").items()
        }
        return SuiteRun(**{**fields, "uncollected": tuple(fields["uncollected"])}, covered=covered)

    def put_run(self, name: str, run: SuiteRun) -> None:
        """Keep a run."""
        covered = {
            test: {path: sorted(lines) for path, lines in by_path.items()} for test, by_path in run.covered.items()
        }
        fields = {name: getattr(run, name) for name in SuiteRun.__slots__} | {"covered": covered}
        self.put(name, base64.b64encode(zlib.compress(json.dumps(fields).encode(), 3)).decode())
