"""Folders kept by name: made once, whole or absent, in use or prunable.

Owns: `Shelf`, `Making`, the stamps and leases that say what is in use.
Invariant: a name appears by one rename, when what it names is complete; of several processes that want it, one makes
it and the others wait; nothing that a living process has taken is pruned.
Must not know: what the folders hold.

A process that takes a name writes it to its own file below `state/leases/` first, which counts for as long as the
process lives (pid and start time). The time of the folder itself says when it was last taken.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from practicum.errors import CreateFailed
from practicum.sandboxes.ownership import host_identity, process_start

LOCK_S = 1800.0  # for another process to make what this one wants
_SHORT_S = 30.0
_LEFT_S = 86400.0  # a maker that is not known here may live in another container that shares the cache
_KINDS = ("layers", "trees")


class Making:
    """The right to make one name. `folder` is to be filled; `done` gives it its name; the end removes what is left."""

    def __init__(self, target: Path, lock: int, lock_path: Path) -> None:
        self._target, self._lock, self._lock_path = target, lock, lock_path
        self.folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=_temporary_prefix()))
        self.folder.chmod(0o755)

    def __enter__(self) -> Making:
        return self

    def done(self) -> Path:
        """The folder is complete."""
        try:
            self.folder.rename(self._target)
        except OSError:
            if not self._target.is_dir():  # otherwise another process made the same
                raise
        return self._target

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            remove(self.folder)
        finally:
            self._lock_path.unlink(missing_ok=True)
            os.close(self._lock)


class Shelf:
    """Named folders below `<root>/layers` and `<root>/trees`, with `<root>/state` for what is written about them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._state = root / "state"
        self._held: set[str] = set()
        self._holder = 0  # pid that `_held` belongs to

    def take(self, kind: str, name: str, build: Callable[[Path], None]) -> Path:
        """The folder of that name, filled by `build` if there is none; `CreateFailed` where that fails."""
        deadline = time.monotonic() + LOCK_S
        while (got := self.attempt(kind, name)) is None:
            self.check(kind, name, deadline)
            time.sleep(0.05)
        if isinstance(got, Path):
            return got
        with got, self._explained(kind, name):
            build(got.folder)
            return self._named(kind, name, got)

    def finish(self, kind: str, name: str, making: Making) -> Path:
        """Give what has been made its name, and take it."""
        with self._explained(kind, name):
            return self._named(kind, name, making)

    def _named(self, kind: str, name: str, making: Making) -> Path:
        with self._pruning_waits():
            folder = making.done()
            self._hold(kind, name)
            return folder

    @contextlib.contextmanager
    def _explained(self, kind: str, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CreateFailed(f"{kind[:-1]} {name} cannot be made in {self.root}: {error}") from error

    def attempt(self, kind: str, name: str) -> Path | Making | None:
        """The folder, or the right to make it, or None while another process is making it."""
        if found := self.find(kind, name):
            return found
        locks = self._state / "locks"
        locks.mkdir(exist_ok=True, mode=0o755)
        path = locks / f"{kind}-{name}"
        lock = _try_lock(path)
        if lock is None:
            return None
        if found := self.find(kind, name):  # made while the lock was another's
            path.unlink(missing_ok=True)
            os.close(lock)
            return found
        try:
            return Making(self.root / kind / name, lock, path)
        except OSError as error:
            os.close(lock)
            raise CreateFailed(f"{kind[:-1]} {name} cannot be made in {self.root}: {error}") from error

    def scratch(self) -> Path:
        """A folder beside the layers for what is not yet one. The caller removes it; else `prune` does, some day."""
        folder = Path(tempfile.mkdtemp(dir=self.root / "layers", prefix=_temporary_prefix()))
        folder.chmod(0o755)
        return folder

    def check(self, kind: str, name: str, deadline: float) -> None:
        """`CreateFailed` when the wait for another process has taken too long."""
        if time.monotonic() > deadline:
            raise CreateFailed(f"{kind[:-1]} {name} is being made by another process for more than {LOCK_S:.0f} s")

    def find(self, kind: str, name: str) -> Path | None:
        """The folder of that name, taken by this process from now on, or None."""
        target = self.root / kind / name
        if self._holds(f"{kind}/{name}") and target.is_dir():
            return target
        if not target.is_dir():
            return None
        with self._pruning_waits():
            if not target.is_dir():
                return None
            self._hold(kind, name)
        return target

    def _holds(self, entry: str) -> bool:
        return self._holder == os.getpid() and entry in self._held

    def _hold(self, kind: str, name: str) -> None:
        entry = f"{kind}/{name}"
        if self._holds(entry):
            return
        if self._holder != os.getpid():  # the first time, or in a child that was forked
            self._holder, self._held = os.getpid(), set()
        leases = self._state / "leases"
        leases.mkdir(exist_ok=True, mode=0o755)
        path = leases / f"{os.getpid()}-{process_start(os.getpid())}.jsonl"
        line = json.dumps(host_identity() | {"pid": os.getpid(), "start": process_start(os.getpid()), "entry": entry})
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, line.encode() + b"\n")
        finally:
            os.close(fd)
        self._held.add(entry)
        os.utime(self.root / kind / name)

    @contextlib.contextmanager
    def _pruning_waits(self, mode: int = fcntl.LOCK_SH) -> Iterator[None]:
        fd = os.open(self._state / "prune.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            deadline = time.monotonic() + _SHORT_S
            while not _locked(fd, mode):
                if time.monotonic() > deadline:
                    raise CreateFailed(f"the cache {self.root} is being pruned for more than {_SHORT_S:.0f} s")
                time.sleep(0.01)
            yield
        finally:
            os.close(fd)

    # --- pruning ------------------------------------------------------------------------------------------

    def prune(self, keep_days: float, spare: frozenset[str]) -> list[str]:
        """Remove what nobody took for `keep_days` days, and leftovers of dead makers; what was removed.

        `spare` are entries (`layers/…`) to keep in any case.
        """
        before = time.time() - keep_days * 86400.0
        condemned: list[tuple[str, Path]] = []
        with self._pruning_waits(fcntl.LOCK_EX):
            used = spare | self._in_use(before)
            for kind in _KINDS:
                for path in sorted((self.root / kind).iterdir()):
                    entry = f"{kind}/{path.name}"
                    if not path.is_dir() or entry in used:
                        continue
                    if path.name.startswith("."):
                        if not _maker_lives(path.name) and path.stat().st_mtime < time.time() - _LEFT_S:
                            condemned.append((entry, path))
                    elif path.stat().st_mtime < before:
                        hidden = path.with_name(f"{_temporary_prefix()}{path.name}")
                        path.rename(hidden)
                        condemned.append((entry, hidden))
        for _, path in condemned:
            remove(path)
        return [entry for entry, _ in condemned]

    def _in_use(self, before: float) -> frozenset[str]:
        """What living processes have taken. Leases of dead ones go; those of other hosts count until they are old."""
        used: set[str] = set()
        here = host_identity()
        for path in sorted((self._state / "leases").glob("*.jsonl")):
            lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
            same_host = bool(lines) and lines[0]["host"] == here["host"]
            if lines and all(lines[0][key] == value for key, value in here.items()):
                alive = process_start(lines[0]["pid"]) == lines[0]["start"]
            elif same_host and lines[0]["boot"] != here["boot"]:
                alive = False
            else:
                alive = path.stat().st_mtime >= before
            if alive:
                used |= {line["entry"] for line in lines}
            else:
                path.unlink(missing_ok=True)
        return frozenset(used)


def _temporary_prefix() -> str:
    return f".new-{os.getpid()}-{process_start(os.getpid())}-"


def _maker_lives(name: str) -> bool:
    parts = name.split("-")
    return len(parts) > 2 and parts[1].isdigit() and process_start(int(parts[1])) == parts[2]


def _locked(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock, or None. The file is removed by its holder, so it must still be the same."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if _locked(fd, fcntl.LOCK_EX) and path.exists() and os.fstat(fd).st_ino == path.stat().st_ino:
            return fd
    except FileNotFoundError:
        pass
    os.close(fd)
    return None


def remove(folder: Path) -> None:
    """Remove a folder whatever the modes of the folders in it; nothing where there is none."""
    if not folder.exists():
        return
    folder.chmod(0o755)
    for place, inner, _ in os.walk(folder):
        for path in (Path(place, name) for name in inner):
            if not path.is_symlink():
                path.chmod(0o755)  # before the walk goes on into it
    shutil.rmtree(folder)
