"""How much cpu a piece of work took, whichever processes did it.

Owns: `Meter`, `open_meter`.
Invariant: both sides of a comparison are read from the same counters; `by` says which these are.
Must not know: boxes, what is measured.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from practicum.sandboxes.cgroups import remove_folders

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Meter:
    """Seconds of cpu that this process and everything it started have used."""

    def __init__(self, by: str, folder: str, read: Callable[[str], float]) -> None:
        self.by = by
        self.folder = folder  # the control group this process is in, or nothing where none could be made
        self._read = read
        self._groups = [folder] if folder else []
        self._processes: list[int] = []

    def include(self, process: int, groups: Sequence[str]) -> None:
        """Count what a long-lived child has done, and control groups that are not below this process's own."""
        if self.folder:
            if (
                self.by == _UNIFIED
            ):  # of version 1, the one hierarchy that counts cpu need not be the one that limits it
                self._groups += [group for group in groups if not f"{group}/".startswith(f"{self.folder}/")]
        else:
            self._processes.append(process)

    @property
    def group(self) -> str:
        """The path of this process's group within its hierarchy; a name of its own where it could not be given one."""
        own = _own_path("" if self.by == _UNIFIED else "cpuacct") if self.folder else None
        return own or f"/practicum-bench-{os.getpid()}"

    def seconds(self) -> float:
        if self.folder:
            return sum(self._read(group) for group in self._groups)
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in used) + sum(_of_process(pid) for pid in self._processes)


def _of_process(pid: int) -> float:
    """What a living process and its reaped children have used."""
    text = Path(f"/proc/{pid}/stat").read_text()
    return sum(int(ticks) for ticks in text[text.rindex(")") + 2 :].split()[11:15]) * _TICK_S


def _unified(folder: str) -> float:
    (line,) = (line for line in Path(folder, "cpu.stat").read_text().splitlines() if line.startswith("usage_usec "))
    return int(line.split()[1]) / 1e6


def _accounted(folder: str) -> float:
    return int(Path(folder, "cpuacct.usage").read_text()) / 1e9


_UNIFIED, _ACCOUNTED = "cpu.stat of a control group (version 2)", "cpuacct.usage of a control group (version 1)"
_RUSAGE = "getrusage of the harness and its children, and /proc/PID/stat of the process that starts boxes"
_KINDS = (("cpuacct", _ACCOUNTED, _accounted), ("", _UNIFIED, _unified))


@contextlib.contextmanager
def open_meter() -> Iterator[Meter]:
    """A meter for this process, which is in a control group of its own until the end where one can be had."""
    for controller, by, read in _KINDS:
        before = _own_group(controller)
        if before is None:
            continue
        folder = f"{before}/practicum-bench-{os.getpid()}"
        try:
            Path(folder).mkdir()
            Path(folder, "cgroup.procs").write_text(str(os.getpid()))
            read(folder)
        except OSError:
            remove_folders([folder], 0.0)
            continue
        try:
            yield Meter(by, folder, read)
        finally:
            Path(before, "cgroup.procs").write_text(str(os.getpid()))
            if left := remove_folders([folder], 5.0):
                raise OSError(f"control groups are left: {', '.join(left)}")
        return
    yield Meter(_RUSAGE, "", _accounted)


def _own_path(controller: str) -> str | None:
    """The path of this process's group in the hierarchy of `controller`, or in the unified one for an empty name."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, names, path = line.split(":", 2)
        if controller in names.split(",") if controller else number == "0":
            return path
    return None


def _own_group(controller: str) -> str | None:
    """The folder of this process's group in that hierarchy, where it is mounted."""
    own = _own_path(controller)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if own is not None and (
            kind == "cgroup" and controller in options.split(",") if controller else kind == "cgroup2"
        ):
            folder = point + (own[len(root) :] if root != "/" and own.startswith(root) else own).rstrip("/")
            return folder if Path(folder).is_dir() else point
    return None
