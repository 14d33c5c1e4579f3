"""An audit from start to end: every probe against the usual box, then the proofs that they notice.

Owns: `audit`, `Report`, `ProbeRow`, `ProofRow`.
Invariant: each probe has exactly one row; whatever goes wrong while it is carried out is `unclear`, which fails.
Must not know: the command line, any provider.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Literal

from practicum.errors import CreateFailed, PracticumError, UnsupportedControl
from practicum.sandboxes.audit import collection, configuration, endings, lifecycle  # noqa: F401  they declare their probes
from practicum.sandboxes.audit.bench import Bench, python
from practicum.sandboxes.audit.host import host_marks
from practicum.sandboxes.audit.inside import main as _inside  # noqa: F401  the probes that run in boxes
from practicum.sandboxes.audit.inside.registry import PROBES, Finding, Probe, unclear
from practicum.sandboxes.audit.proofs import Proof, all_proofs, proofs_for
from practicum.sandboxes.contract import SandboxProvider

_AT_ONCE = 2
_JOB_S = 90.0
_USERS: tuple[Literal["agent", "root"], ...] = ("agent", "root")
_ORDER = {"blocked": 0, "unclear": 1, "open": 2}
MakeProvider = Callable[[], AbstractAsyncContextManager[SandboxProvider]]
OnDone = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One probe's outcome, the worse of those as the box's user and as its root."""

    probe: Probe
    finding: Finding

    @property
    def ok(self) -> bool:
        return self.finding.status == "blocked"


@dataclass(frozen=True, slots=True)
class ProofRow:
    """What fired where it should: `observed` is what each said that did not."""

    profile: str
    should_fire: tuple[str, ...]
    fired: tuple[str, ...]
    observed: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return set(self.fired) == set(self.should_fire)


@dataclass(frozen=True, slots=True)
class Report:
    """`unclaimed` maps probes to what it takes that this host or provider does not have; `unproven` to the reason."""

    provider: str
    uid: int | None
    probes: tuple[ProbeRow, ...]
    proofs: tuple[ProofRow, ...]
    unclaimed: Mapping[str, str]
    unproven: Mapping[str, str]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.probes) and all(row.ok for row in self.proofs)


def _jobs(bench: Bench, ids: Sequence[str]) -> list[Callable[[], Awaitable[dict[str, Finding]]]]:
    """Pieces of work that can run side by side."""
    probes = [PROBES[id] for id in ids]
    shared = [p.id for p in probes if p.where == "box" and not p.limits]
    pairs = [p.id for p in probes if p.where == "pair"]

    async def in_one_box() -> dict[str, Finding]:
        async with bench.box() as box:
            return await bench.probes(shared, box)

    async def in_a_pair() -> dict[str, Finding]:
        async with bench.pair() as (first, second):
            facts = await bench.told(first)
            argv = python("inside.cross", "leave", json.dumps(facts), facts["pair_token"])
            script = 'setsid "$@" >/tmp/said 2>&1 </dev/null & until grep -q ready /tmp/said; do sleep 0.01; done'
            await first.run(["sh", "-c", script, "sh", *argv], timeout_s=10)
            return await bench.probes(pairs, second)

    def alone(probe: Probe) -> Callable[[], Awaitable[dict[str, Finding]]]:
        async def job() -> dict[str, Finding]:
            if probe.where == "host":
                return {probe.id: await probe.function(bench)}
            async with bench.box(**probe.limits) as box:
                return await bench.probes([probe.id], box, **probe.limits)

        return job

    jobs = [alone(p) for p in probes if p.where == "host" or (p.where == "box" and p.limits)]
    return ([in_one_box] if shared else []) + ([in_a_pair] if pairs else []) + jobs


async def carry_out(bench: Bench, ids: Sequence[str], turn: asyncio.Semaphore) -> dict[str, Finding]:
    """The finding of each probe in `ids`."""

    async def guarded(job: Callable[[], Awaitable[dict[str, Finding]]]) -> dict[str, Finding]:
        async with turn:
            try:
                async with asyncio.timeout(_JOB_S):
                    return await job()
            except TimeoutError:
                return {"": unclear(f"no end within {_JOB_S:g} s")}
            except (PracticumError, OSError, ValueError) as error:
                return {"": unclear(f"{type(error).__name__}: {error}")}

    found: dict[str, Finding] = {}
    for part in await asyncio.gather(*(guarded(job) for job in _jobs(bench, ids))):
        found |= part
    failed = found.pop("", unclear("it was not carried out"))
    return {id: found.get(id, failed) for id in ids}


async def _default(bench: Bench, ids: Sequence[str], turn: asyncio.Semaphore, on_done: OnDone) -> list[ProbeRow]:
    worst: dict[str, Finding] = {}
    for user in _USERS:
        found = await carry_out(replace(bench, setting=replace(bench.setting, user=user)), ids, turn)
        on_done(f"probes as {user}")
        for id, finding in found.items():
            kept = worst.get(id)
            if kept is None or _ORDER[finding.status] > _ORDER[kept.status]:
                told = finding if user == "agent" else Finding(finding.status, f"as root: {finding.observed}")
                worst[id] = told
    return [ProbeRow(PROBES[id], worst[id]) for id in ids]


async def _prove(bench: Bench, proof: Proof, turn: asyncio.Semaphore) -> ProofRow | None:
    """None where the provider cannot make such a box."""
    ids, bench = proof.should_fire, replace(bench, setting=proof.setting)
    try:
        async with bench.box():
            pass
    except UnsupportedControl:
        return None
    found = await carry_out(bench, ids, turn)
    fired = tuple(id for id in ids if found[id].status == "open")
    silent = {id: f"{found[id].status}: {found[id].observed}" for id in ids if id not in fired}
    return ProofRow(proof.setting.name, ids, fired, silent)


def steps() -> int:
    """How often an audit says that something has ended."""
    return len(_USERS) + len(all_proofs())


async def audit(
    make_provider: MakeProvider, *, only: Iterable[str] | None = None, on_done: OnDone = lambda _: None
) -> Report:
    """Audit a provider. `only` narrows it to some probes; `on_done` is told what has just ended.

    Raises `CreateFailed` or `UnsupportedControl`, with a fix, where the host cannot make the usual box at all.
    """
    turn = asyncio.Semaphore(_AT_ONCE)
    async with host_marks() as facts, make_provider() as provider:
        bench = Bench(provider, facts)
        await _first_box(bench)
        chosen = [id for id in sorted(PROBES, key=_number) if only is None or id in set(only)]
        unclaimed = {id: missing for id in chosen if (missing := _missing(PROBES[id], provider))}
        ids = [id for id in chosen if id not in unclaimed]
        rows = await _default(bench, ids, turn, on_done)
        uid = await configuration.box_uid(bench)
        proofs, unproven = proofs_for(facts, ids)
        proved: list[ProofRow] = []
        for proof in proofs:
            row = await _prove(bench, proof, turn) if proof.should_fire else None
            proved += [row] if row else []
            on_done(proof.setting.name)
        given = {id for row in proved for id in row.should_fire}
        unproven |= {id: "the provider cannot weaken its control" for id in ids if id not in given | unproven.keys()}
        return Report(provider.name, uid, tuple(rows), tuple(proved), unclaimed, unproven)


async def _first_box(bench: Bench) -> None:
    """The obstacle, if there is one, as an error of its own and not as a hundred findings."""
    try:
        async with bench.box() as box:
            done = await box.run(["python3", "-c", "import ctypes"], timeout_s=20)
    except CreateFailed as error:
        raise _named(error) from error
    if done.exit_code:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise CreateFailed(f"the audit needs python3 with ctypes in the box: {said[-1:]}")


def _named(error: CreateFailed) -> CreateFailed:
    """The obstacle behind a runtime's last words, with the line that fixes it."""
    from practicum.sandboxes.doctor import classify_failure, read_kernel_facts

    if error.fix:
        return error
    obstacle = classify_failure(error.message, read_kernel_facts())
    return CreateFailed(f"{obstacle.name}: {error.message}", fix=obstacle.fix)


def _missing(probe: Probe, provider: SandboxProvider) -> str:
    missing = [need for need in probe.needs if need not in provider.capabilities]
    return ", ".join(missing + (["the host's root to look"] if probe.root and os.geteuid() != 0 else []))


def _number(id: str) -> int:
    return int(id[1:])
