"""Audits of real boxes, and of providers that do less than they say."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from practicum.errors import CreateFailed, UnsupportedControl
from practicum.sandboxes.audit.host import VARIABLE, host_marks
from practicum.sandboxes.audit.report import document, text
from practicum.sandboxes.audit.run import Report, audit
from practicum.sandboxes.contract import BoxSpec, Sandbox, SandboxProvider, Snapshot, SnapshotId, SnapshotStore
from practicum.sandboxes.fake import FakeProvider
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.profile import Profile
from practicum.sandboxes.provider import open_provider


class Changed:
    """A provider that makes other boxes than it was asked for."""

    def __init__(self, inner: SandboxProvider, change: Callable[[BoxSpec], BoxSpec]) -> None:
        self._inner, self._change = inner, change
        self.name, self.capabilities = inner.name, inner.capabilities

    @property
    def snapshots(self) -> SnapshotStore:
        return self._inner.snapshots

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._inner.create(self._change(spec))

    def fork(self, snapshot: Snapshot | SnapshotId, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._inner.fork(snapshot, self._change(spec))

    def release(self, snapshot: Snapshot) -> None:
        self._inner.release(snapshot)


def audited(cache: LayerCache, only: Sequence[str], change: Callable[[BoxSpec], BoxSpec] = lambda spec: spec) -> Report:
    @asynccontextmanager
    async def make() -> AsyncIterator[SandboxProvider]:
        async with open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider:
            yield Changed(provider, change)

    return asyncio.run(audit(make, only=only))


def test_the_usual_box_is_blocked_and_weakened_ones_are_noticed(cache: LayerCache) -> None:
    """Some probes of each kind: in the box, in one of its own, in a pair, from outside."""
    ids = ("P16", "P13", "P65", "P81", "P89", "P74", "P100")
    report = audited(cache, ids)
    assert report.ok, text(report)
    assert {row.probe.id for row in report.probes} == set(ids)
    assert {id for row in report.proofs for id in row.fired} == set(ids)
    assert report.uid == (64123 if os.geteuid() == 0 else os.geteuid())


def test_a_missing_control_fails_the_audit(cache: LayerCache) -> None:
    """A provider that forgets the filter is found out, with what was seen in its place."""
    report = audited(cache, ["P16", "P13"], lambda spec: replace(spec, profile=Profile(seccomp=False)))
    assert not report.ok
    assert {row.probe.id: row.ok for row in report.probes} == {"P13": True, "P16": False}
    (wrong,) = [row for row in document(report)["probes"] if not row["ok"]]
    assert (wrong["status"], wrong["observed"]) == ("open", "Seccomp is '0'")
    assert "✗ P16" in text(report)
    assert "expected: mode 2" in text(report)


def test_a_probe_that_does_not_fire_fails_the_audit(cache: LayerCache) -> None:
    """A provider that ignores the weakening gives no proof, and all probes being blocked is not enough."""
    report = audited(cache, ["P16"], lambda spec: replace(spec, profile=Profile()))
    assert all(row.ok for row in report.probes)
    assert not report.ok
    (row,) = document(report)["weakened"]
    assert (row["should_fire"], row["fired"]) == (["P16"], [])
    assert "P16 did not: blocked: mode 2" in text(report)


def test_what_cannot_be_weakened_is_not_proven(cache: LayerCache) -> None:
    """A provider that refuses to weaken a control has not shown that its absence would be noticed, nor failed."""

    def change(spec: BoxSpec) -> BoxSpec:
        if not spec.profile.seccomp:
            raise UnsupportedControl("the filter cannot be left out")
        return spec

    report = audited(cache, ["P16"], change)
    assert report.ok
    assert report.proofs == ()
    assert report.unproven == {"P16": "the provider cannot weaken its control"}


def test_root_of_the_box_is_tried_too(cache: LayerCache) -> None:
    """What only the box's root can do is found, and said to be so."""

    def change(spec: BoxSpec) -> BoxSpec:
        return replace(spec, profile=Profile(drop_capabilities=False)) if spec.user == "root" else spec

    (row,) = audited(cache, ["P13"], change).probes
    assert not row.ok
    assert row.finding.observed.startswith("as root: ")


def test_what_a_provider_does_not_claim_is_named_and_not_tried() -> None:
    """A probe of a control that the provider does not claim is neither blocked nor open."""

    @asynccontextmanager
    async def make() -> AsyncIterator[SandboxProvider]:
        yield FakeProvider({"python3": lambda call: (0, b"{}", b"")})

    report = asyncio.run(audit(make, only=["P63", "P70"]))
    assert report.unclaimed == {"P63": "memory-limit", "P70": "cpu-limit"}
    assert len(report.probes) == len(report.proofs) == 0
    assert "2 not tried" in text(report)


def test_an_obstacle_is_one_error_with_its_fix() -> None:
    """Where no box can be made, the reason is found as the doctor finds it, and nothing of the audit stays."""
    said = "box a did not come up: bwrap: No permissions to create new namespace"

    class Refusing(FakeProvider):
        def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
            raise CreateFailed(said)

    @asynccontextmanager
    async def make() -> AsyncIterator[SandboxProvider]:
        yield Refusing()

    with pytest.raises(CreateFailed, match="No permissions") as error:
        asyncio.run(audit(make))
    assert error.value.fix
    assert error.value.exit_code == 3
    assert VARIABLE not in os.environ


def test_marks_are_gone_afterwards() -> None:
    """Files, process and variable of the audit exist while it lasts and not a moment longer."""

    async def use() -> tuple[str, int]:
        async with host_marks() as facts:
            assert Path(facts["canary"]).read_text() == facts["token"] == os.environ[VARIABLE]
            assert b"bystander" in Path(f"/proc/{facts['bystander']}/cmdline").read_bytes()
            return facts["folder"], facts["bystander"]

    folder, bystander = asyncio.run(use())
    assert not Path(folder).exists()
    assert not Path(f"/proc/{bystander}").exists()
    assert VARIABLE not in os.environ
