"""What gates found, kept beside the task set: `checks.jsonl`.

Owns: `Cache`, `decided_on`.
Invariant: a line is on the disk before the next gate is asked, and is read back only for the same task, gate and
version of it, parameters, verifier and layer. What could not be found out is not kept. Lines form a chain of digests:
from one that does not follow on, and where the chain no longer holds what decisions were based on, nothing is used.
Must not know: what gates do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from practicum.curation.gates.contract import Case, Gate
from practicum.curation.ledger import Ledger
from practicum.errors import StoreError
from practicum.records.assessment import GateResult
from practicum.records.tree import digest_of
from practicum.trajectories.chain import Chain
from practicum.trajectories.durable import failed

FILE = "checks.jsonl"
SCHEMA = 2
_EVENT = "result"
_ROOM = "free space where the records are kept, or name another folder with --state DIR; run it again and it goes on"


class Cache:
    """Results by key. Without a `folder` nothing is kept; with `fresh` nothing is read.

    `altered` is the number of kept lines that were not believed and are gone. `reached` says whether the chain holds
    the line of digest `reaches`, which a decision named.
    """

    def __init__(self, folder: Path | None = None, *, fresh: bool = False, reaches: str | None = None) -> None:
        """Makes `folder` where it is missing. Raises `StoreError` where that, or reading, cannot be done."""
        self._known: dict[str, GateResult] = {}
        self._chain: Chain | None = None
        self.reused = self.altered = 0
        self.reached = reaches is None
        if folder is None:
            return
        path = folder / FILE
        try:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise failed(path, error) from error
            self._chain, entries = self._open(path, reaches)
        except StoreError as error:
            raise StoreError(error.message, fix="name another folder for the records with --state DIR") from error
        for entry in () if fresh else entries:
            self._take(entry)

    @property
    def head(self) -> str | None:
        """Digest of the last line; None where nothing is kept."""
        return self._chain.head if self._chain is not None else None

    def get(self, case: Case, gate: Gate) -> GateResult | None:
        """What `gate` found on this very task before, under the same conditions."""
        found = self._known.get(_key(case, gate))
        self.reused += found is not None
        return found

    def put(self, case: Case, gate: Gate, result: GateResult) -> None:
        """Keep what was found. Raises `StoreError`."""
        if self._chain is None or not result.assessed:
            return
        key = _key(case, gate)
        row = {"schema": SCHEMA, "key": key, "task": case.task.id, "content": case.task.content, **asdict(result)}
        line = json.loads(json.dumps(row, sort_keys=True, default=str))
        try:
            with self._chain.writing():
                self._chain.news()  # what another check has kept meanwhile
                self._chain.append([(_EVENT, line | {"digest": digest_of(line)})])
                self._chain.news()
        except StoreError as error:
            raise StoreError(error.message, fix=error.fix and _ROOM) from error
        self._known[key] = result

    def _open(self, path: Path, reaches: str | None) -> tuple[Chain, list[dict[str, Any]]]:
        chain = Chain(path)
        with chain.writing():
            entries, self.altered = chain.salvage(_sound)
            self.reached = reaches is None or reaches in {chain.head, *(entry["previous"] for entry in entries)}
            if entries and not self.reached:
                self.altered += len(entries)
                os.truncate(path, 0)
                return Chain(path), []
        return chain, entries

    def _take(self, entry: Mapping[str, Any]) -> None:
        try:
            row = dict(entry["data"])
            if row.pop("schema") != SCHEMA:
                return
            key = row.pop("key")
            del row["task"], row["content"], row["digest"]
            self._known[key] = GateResult(**row)
        except (ValueError, KeyError, TypeError, AttributeError):
            return  # asking again costs less than refusing to check


def _sound(entry: Mapping[str, Any]) -> bool:
    """Whether a line is as it was written, as far as it says itself."""
    row = entry.get("data")
    return isinstance(row, dict) and row.get("digest") == digest_of({k: v for k, v in row.items() if k != "digest"})


def decided_on(ledger: Path) -> str | None:
    """The head of the kept results when gates last decided, by the ledger there; None where it names none."""
    heads = ((entry.evidence or {}).get("checks") for entry in reversed(Ledger(ledger).entries))
    return next((head for head in heads if isinstance(head, str)), None)


def _key(case: Case, gate: Gate) -> str:
    settings: dict[str, Any] = {name: getattr(case.settings, name) for name in gate.parameters}
    return digest_of(
        {
            "content": case.task.content,
            "gate": gate.name,
            "version": gate.version,
            "parameters": settings,
            "verifier": case.bench.workshop.verifier.version,
            "layer": case.bench.layer_of(case.task.layer),
        }
    )
