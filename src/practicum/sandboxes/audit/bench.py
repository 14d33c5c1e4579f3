"""Boxes for probes: the usual one, or one that differs in a named way.

Owns: `Setting`, `Bench`.
Invariant: whatever a setting weakens, boxes are made by the provider under audit, so by its unprivileged user.
Must not know: any probe.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from practicum.errors import BoxOutOfMemory, SandboxError
from practicum.records.task import MIB, Limits
from practicum.records.tree import File, Tree
from practicum.sandboxes.audit.inside.registry import PROBES, Finding, blocked, unclear
from practicum.sandboxes.audit.naive import NaiveCollector, naive_command
from practicum.sandboxes.contract import BoxSpec, CommandResult, Sandbox, SandboxProvider, Snapshot
from practicum.sandboxes.profile import Profile

PLACE = "/audit"
RUN_S = 60.0
_USUAL = Limits(memory_bytes=256 * MIB, pids=64, disk_bytes=64 * MIB)
_ROOM = 16  # how many times the usual limits a roomy box has
_START = f"import sys; sys.path.insert(0, '{PLACE}'); from {{}} import {{}}"
_numbers = itertools.count()
Naive = Literal["collector", "runner"]


@dataclass(frozen=True, slots=True)
class Setting:
    """How boxes differ from the usual ones, to prove that probes notice.

    `facts` replaces targets by decoys, `prelude` is shell text that is run before the probes in their process,
    `learn` takes further facts from the box itself. A `roomy` box has many times the limits that probes are told.
    `naive` replaces the provider's collection of files, or its end of commands, by what a beginner would write,
    run inside the box. With `one_box`, both ends of a pair are one box.
    """

    name: str = "default"
    profile: Profile = Profile()
    user: Literal["agent", "root"] = "agent"
    facts: Mapping[str, Any] = field(default_factory=dict)
    prelude: str = ""
    learn: Callable[[Sandbox], Awaitable[Mapping[str, Any]]] | None = None
    roomy: bool = False
    naive: Naive | None = None
    one_box: bool = False


def programs() -> Tree:
    """What is laid into boxes."""
    folder = Path(__file__).with_name("inside")
    tree = {f"inside/{path.name}": File(path.read_bytes()) for path in sorted(folder.glob("*.py"))}
    return {**tree, "frozen/test.py": File(b"assert True\n")}


def python(module: str, function: str, *arguments: str) -> list[str]:
    """The command that calls a function of the programs."""
    return ["python3", "-I", "-S", "-c", _START.format(module, function) + f"; {function}()", *arguments]


@dataclass(frozen=True, slots=True)
class Bench:
    """A provider, the facts about its host, and a setting."""

    provider: SandboxProvider
    facts: Mapping[str, Any]
    setting: Setting = Setting()

    def limits(self, **fields: Any) -> Limits:
        """The limits that probes are told."""
        return replace(_USUAL, **fields)

    @asynccontextmanager
    async def box(self, **limits: Any) -> AsyncIterator[Sandbox]:
        """A box of this setting."""
        async with self.provider.create(self._spec(**limits)) as box:
            yield box

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot) -> AsyncIterator[Sandbox]:
        """A box of this setting that starts from `snapshot`."""
        async with self.provider.fork(snapshot, self._spec()) as box:
            yield box

    def _spec(self, **limits: Any) -> BoxSpec:
        told, setting = self.limits(**limits), self.setting
        if setting.roomy:
            told = replace(
                told,
                memory_bytes=told.memory_bytes * _ROOM,
                pids=told.pids * _ROOM,
                disk_bytes=told.disk_bytes * _ROOM,
                output_bytes=told.output_bytes * _ROOM,
                cpus=told.cpus * _ROOM,
            )
        return BoxSpec(
            create_id=f"audit-{next(_numbers)}",
            readonly={PLACE: programs()},
            limits=told,
            user=setting.user,
            profile=setting.profile,
        )

    @asynccontextmanager
    async def pair(self) -> AsyncIterator[tuple[Sandbox, Sandbox]]:
        """Two boxes that live side by side."""
        async with self.box() as one:
            if self.setting.one_box:
                yield one, one
            else:
                async with self.box() as other:
                    yield one, other

    async def command(self, box: Sandbox, argv: Sequence[str], *, timeout_s: float) -> CommandResult:
        """Run a command the provider's way, or a beginner's."""
        if self.setting.naive == "runner":
            return await box.run(naive_command(argv), timeout_s=RUN_S)
        return await box.run(argv, timeout_s=timeout_s)

    def collector(self, box: Sandbox) -> Sandbox | NaiveCollector:
        """What reads and writes files of the box for the host."""
        return NaiveCollector(box) if self.setting.naive == "collector" else box

    async def told(self, box: Sandbox, **limits: Any) -> dict[str, Any]:
        """All facts for probes in `box`."""
        limit = self.limits(**limits)
        names = ("memory_bytes", "pids", "disk_bytes", "cpus")
        fixed: dict[str, Any] = {"readonly": PLACE, "readonly_file": "frozen/test.py", "readonly_folder": "frozen"}
        fixed["limits"] = {name: getattr(limit, name) for name in names}
        learned = await self.setting.learn(box) if self.setting.learn else {}
        return {**self.facts, **fixed, **self.setting.facts, **learned}

    async def probes(self, ids: Sequence[str], box: Sandbox, **limits: Any) -> dict[str, Finding]:
        """Carry out probes in `box`, one after the other."""
        order = json.dumps({"ids": list(ids), "facts": await self.told(box, **limits)}).encode()
        argv = python("inside.main", "main")
        if self.setting.prelude:
            argv = ["sh", "-c", f'{self.setting.prelude}\nexec "$@"', "sh", *argv]
        try:
            done = await box.run(argv, timeout_s=RUN_S, stdin=order)
        except BoxOutOfMemory:
            return {id: _killed(id, "the box, for memory") for id in ids}
        except SandboxError as error:
            return {id: unclear(f"the box ended: {error.message}") for id in ids}
        try:
            answers = json.loads(done.stdout)
        except ValueError:
            if done.oom_killed:
                return {id: _killed(id, "for memory") for id in ids}
            said = done.stderr.decode(errors="replace").strip().splitlines()
            return {id: unclear(f"no answer: exit {done.exit_code}, {said[-1:]}") for id in ids}
        return {id: Finding(*answer) for id, answer in answers.items()}


def _killed(id: str, what: str) -> Finding:
    return blocked(f"killed: {what}") if PROBES[id].kills else unclear(f"killed: {what}")
