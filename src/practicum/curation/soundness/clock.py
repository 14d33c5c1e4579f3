"""Boxes in which it is another day.

Owns: `OtherDay`, `moves_clock`.
Invariant: boxes are as they would be, but that Python code started with its site packages (suites of pytest and
unittest) finds the time of day moved; the same replacement with a shift of 0 tells what it does by itself. Programs
that are not Python, and Python started without its site, see the host's clock.
Must not know: what is judged in the boxes.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import cache
from importlib import resources

from practicum.records.task import Task
from practicum.records.tree import File, Tree
from practicum.sandboxes.contract import (
    BoxSpec,
    Capability,
    Sandbox,
    SandboxProvider,
    Snapshot,
    SnapshotId,
    SnapshotStore,
)

_PLACE = "/clock"


def moves_clock(task: Task) -> bool:
    """Whether the tests of `task` run where the time of day can be moved."""
    return task.verification.runner in ("pytest", "unittest")


@cache
def _tree() -> Tree:
    source = resources.files("practicum.curation.soundness.inside") / "clock.py"
    return {"sitecustomize.py": File(source.read_bytes())}


class OtherDay:
    """A `SandboxProvider` whose boxes' time of day is `shift_s` seconds later than that of `inner`."""

    def __init__(self, inner: SandboxProvider, shift_s: int) -> None:
        self._inner = inner
        self._shift_s = shift_s

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._inner.capabilities

    @property
    def snapshots(self) -> SnapshotStore:
        return self._inner.snapshots

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._inner.create(self._moved(spec))

    def fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._inner.fork(snapshot, self._moved(spec))

    def release(self, snapshot: Snapshot) -> None:
        self._inner.release(snapshot)

    def _moved(self, spec: BoxSpec) -> BoxSpec:
        env = {**spec.env, "PYTHONPATH": _PLACE, "PRACTICUM_CLOCK_S": str(self._shift_s)}
        return replace(spec, readonly={**spec.readonly, _PLACE: _tree()}, env=env)
