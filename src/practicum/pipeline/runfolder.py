"""The run folder: everything one run leaves on disk.

Owns: the layout of `runs/<id>/`, its lock, its metrics and its status.
Invariant: one process at a time writes to a folder; after `kill -9` at any point the folder can be opened and
continued, and what `truncate_after` leaves equals the record of an unbroken run up to there.
Must not know: how the rows are made.

    config.toml      the resolved configuration
    metrics.jsonl    one JSON object a line (schema: `pipeline.metrics`)
    trajectories/    the store
    checkpoints/     policy versions
    journal          attempts in flight (`trajectories.journal`)
    tasks/           generated tasks, where the run made its own
    audit.jsonl      hash-chained decisions (`trajectories.chain`)
    summary.json     written once, at the end: its presence says that the run finished
    report.html      self-contained
    noise.json       error rates that the run trains by (`pipeline.rewards`), where it has any
    suspect.json     after a bad look at the canaries, until a resume (`pipeline.canaries`)
    rescored/        verdicts of a later judge (`pipeline.rescoring`); rescoring.json where the run went on with them
    spotchecks.jsonl rulings of people, and estimates.json what they come to (`pipeline.spotchecks`)
    aside/           what a resume set apart because it was newer than the checkpoint
    lock             held while a run writes; names its pid
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from practicum.config import RunConfig, load_config
from practicum.errors import ConfigError, StoreError
from practicum.pipeline.metrics import append_row, plain, read_rows, rewrite_rows
from practicum.trajectories import chain as audit
from practicum.trajectories.durable import cut_torn_line, failed, write_atomic
from practicum.trajectories.store import TrajectoryStore

Status = Literal["running", "finished", "interrupted"]
LOCK_WAIT_S = 0.5  # a reader that asks for the status holds the lock for a moment


class RunFolder:
    """One run on disk. A context manager: leaving it gives the lock back."""

    def __init__(self, path: Path, lock: int | None = None) -> None:
        self.path = path
        self.store = TrajectoryStore(path / "trajectories")
        self._lock = lock

    @classmethod
    def create(cls, root: Path, config: RunConfig, *, source: Mapping[str, Any] | None = None) -> RunFolder:
        """A new folder under `root`, locked: `<name>-<UTC time>`, and `-2` … where that is taken.

        `source` is what the configuration was read from. Raises `StoreError`.
        """
        stem = f"{config.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        try:
            root.mkdir(parents=True, exist_ok=True)
            path = _fresh(root, stem)
            (path / "trajectories").mkdir()
            (path / "checkpoints").mkdir()
        except OSError as error:
            raise failed(root / stem, error) from error
        folder = cls(path)
        try:
            folder._lock = _acquire(path)
            write_atomic(path / "config.toml", config.to_toml().encode())
            folder.audit("created", config=config.model_dump(mode="json"), source=source)
        except StoreError:
            folder.close()
            shutil.rmtree(path)  # ours since a moment ago, and nothing is left half-written
            raise
        return folder

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> RunFolder:
        """An existing folder; `write` takes the lock and mends what `kill -9` may have torn.

        Raises `ConfigError` where `path` is no run folder, `StoreError` where another process writes to it.
        """
        if not (path / "config.toml").is_file():
            raise ConfigError(
                f"{path} is not a run folder: it has no config.toml", fix="`practicum runs list` names them"
            )
        if not write:
            return cls(path)
        folder = cls(path, _acquire(path))
        try:
            for torn in (folder.metrics_path, folder.audit_path):
                cut_torn_line(torn)
            for left in [*path.glob(".tmp-*"), *path.glob("*/.tmp-*")]:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        except OSError as error:
            folder.close()
            raise failed(path, error) from error
        return folder

    def close(self) -> None:
        """Give the lock back. Idempotent."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def config(self) -> RunConfig:
        """The resolved configuration. Raises `ConfigError` where it no longer loads."""
        return load_config(self.path / "config.toml")

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def audit_path(self) -> Path:
        return self.path / "audit.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def journal_path(self) -> Path:
        return self.path / "journal"

    @property
    def report_path(self) -> Path:
        return self.path / "report.html"

    @property
    def status(self) -> Status:
        """`running` while a process holds the lock; `finished` with a summary; otherwise `interrupted`."""
        if self._lock is not None or _holder(self.path) is not None:
            return "running"
        return "finished" if (self.path / "summary.json").is_file() else "interrupted"

    def append_metric(self, row: Mapping[str, Any]) -> None:
        """Append one row; numbers that JSON does not know (NaN, infinities) become null. Raises `StoreError`."""
        append_row(self.metrics_path, row)

    def metrics(self) -> list[dict[str, Any]]:
        """All rows; a last line torn by `kill -9` is left out. Raises `StoreError` for any other damage."""
        return read_rows(self.metrics_path)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write summary.json, which makes the run `finished`; the audit trail's head goes with it."""
        self.audit("finished")
        document = {**summary, "audit_head": audit.head(self.audit_path)}
        write_atomic(self.path / "summary.json", json.dumps(plain(document), indent=2, allow_nan=False).encode())

    def summary(self) -> dict[str, Any] | None:
        """The document of `write_summary`, or None where the run has not finished."""
        path = self.path / "summary.json"
        try:
            document: dict[str, Any] = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be read: {error}") from error
        return document

    def audit(self, event: str, **data: Any) -> None:
        """Append a decision to the hash-chained trail, on the disk when this returns. Raises `StoreError`."""
        audit.append(self.audit_path, event, plain(data))

    def verify_audit(self) -> int:
        """Number of entries of an unbroken trail. Raises `StoreError` naming the first that was altered.

        Where the run finished, entries missing from the end are found too.
        """
        summary = self.summary() or {}
        return audit.verify(self.audit_path, reaches=summary.get("audit_head"))

    def forget_flights(self) -> None:
        """Forget the attempts in flight, where the weights they were made with will not come again."""
        write_atomic(self.journal_path, b"")

    def truncate_after(self, update: int) -> None:
        """Set apart every metric row and trajectory file of later updates, and the summary.

        Rows without an `update` belong to the warm start and stay; with `update` below 0 (no checkpoint at all)
        everything goes. Moved, not deleted: to `aside/<n>/`. Safe to repeat after an interruption.
        """
        rows = self.metrics()
        kept = [row for row in rows if update >= 0 and row.get("update", 0) <= update]
        gone = [row for row in rows if update < 0 or row.get("update", 0) > update]
        aside = self.path / "aside" / f"{len(list((self.path / 'aside').glob('*'))):03d}"
        moved = self.store.move_after(update, aside)
        summary = self.path / "summary.json"
        if not gone and not moved and not summary.exists():
            return
        try:
            aside.mkdir(parents=True, exist_ok=True)
            if summary.exists():
                summary.replace(aside / summary.name)
        except OSError as error:
            raise failed(aside, error) from error
        rewrite_rows(aside / "metrics.jsonl", gone)
        rewrite_rows(self.metrics_path, kept)
        self.audit("truncated", after=update, rows=len(gone), files=[b.path.name for b in moved])


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One line of `practicum runs list`. `updates` counts update rows; `problem` says why one is unreadable."""

    id: str
    path: Path
    status: Status
    updates: int = 0
    summary: dict[str, Any] | None = None
    problem: str | None = None


def list_runs(root: Path) -> list[RunInfo]:
    """The runs under `root`, oldest first; a damaged one is listed with its problem."""
    paths = [(path.stat().st_mtime_ns, path.parent) for path in root.glob("*/config.toml")]
    return [_info(RunFolder(path)) for _, path in sorted(paths)]


def _info(folder: RunFolder) -> RunInfo:
    try:
        updates = sum(row.get("kind") == "update" for row in folder.metrics())
        return RunInfo(folder.id, folder.path, folder.status, updates, folder.summary())
    except StoreError as error:
        return RunInfo(folder.id, folder.path, "interrupted", problem=error.message)


def _fresh(root: Path, stem: str) -> Path:
    for number in range(1, 1000):
        path = root / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise StoreError(f"a thousand runs named {stem} are under {root} already", fix="give this run another name")


def _acquire(path: Path) -> int:
    """Take the folder's lock and write our pid into it; the kernel gives it back when the process ends."""
    try:
        fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise failed(path / "lock", error) from error
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
                os.close(fd)
                raise StoreError(
                    f"{path} is being written by another run (pid {holder})",
                    fix="wait for it to end or stop it; two runs never share a folder",
                ) from None
            time.sleep(0.02)
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        os.close(fd)
        raise failed(path / "lock", error) from error
    return fd


def _holder(path: Path) -> str | None:
    """The pid that holds the lock, or None."""
    try:
        fd = os.open(path / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path / 'lock'}: {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(fd)
    return None
