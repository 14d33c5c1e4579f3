"""The checks of the sandbox contract about files and about a box's life.

Owns: checks only; they register themselves with `conformance`.
Invariant: as there. Must not know: any provider.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from practicum.errors import BoxPathError, CreateFailed, SandboxDied
from practicum.records.tree import File, tree_digest
from practicum.sandboxes.conformance import check, expect, refuses, spec
from practicum.sandboxes.contract import Sandbox, SandboxProvider

# --- files ---------------------------------------------------------------------------------------------------


@check("files of the spec are there")
async def _files(provider: SandboxProvider) -> None:
    tree = {"a.txt": File(b"a"), "d/run.sh": File(b"#!/bin/sh\n", 0o755), "d/empty": File(b"")}
    async with provider.create(spec(files=tree)) as box:
        expect((await box.list_tree("/app", max_bytes=1000)).files == tree, "the listing is not the tree")
        expect((await box.run(["cat", "d/run.sh"], timeout_s=10)).stdout == b"#!/bin/sh\n", "a command sees else")


@check("write then read, with odd names and replacement")
async def _round_trip(provider: SandboxProvider) -> None:
    names = ["plain", "deep/er/file", "sp ace", "ünï", "-dash", "new\nline", "a'b\"c", "\udcfe"]
    async with provider.create(spec()) as box:
        for name in names:
            await box.write(name, name.encode("utf-8", "surrogateescape"))
            await box.write(f"/app/{name}", b"\0" + name.encode("utf-8", "surrogateescape"), mode=0o755)
            data = await box.read(name, max_bytes=100)
            expect(data == b"\0" + name.encode("utf-8", "surrogateescape"), f"{name!r} came back as {data!r}")
        listing = await box.list_tree("/app", max_bytes=10_000)
        expect(set(listing.files) == set(names), f"listed {sorted(listing.files)}")
        expect(all(file.mode == 0o755 for file in listing.files.values()), "the mode was not kept")


@check("many files can be laid at once")
async def _upload(provider: SandboxProvider) -> None:
    tree = {f"d{i % 7}/f{i}": File(b"%d" % i, 0o755 if i % 2 else 0o644) for i in range(300)}
    async with provider.create(spec(files={"d0/f0": File(b"old"), "kept": File(b"k")})) as box:
        await box.upload("/app", tree)
        found = (await box.list_tree("/app", max_bytes=10_000)).files
        expect(found == tree | {"kept": File(b"k")}, "the workspace is not what was laid")


@check("large files are whole")
async def _large(provider: SandboxProvider) -> None:
    data = bytes(i * 7 % 251 for i in range(3_000_000))
    async with provider.create(spec()) as box:
        await box.write("large", data)
        expect(await box.read("large", max_bytes=len(data)) == data, "it came back changed")


@check("missing, folder and size are answers about a path")
async def _path_errors(provider: SandboxProvider) -> None:
    async with provider.create(spec(files={"d/f": File(b"12345")})) as box:
        await refuses(box.read("nothing", max_bytes=10), BoxPathError, "a missing file")
        await refuses(box.read("d", max_bytes=10), BoxPathError, "a folder")
        await refuses(box.read("d/f", max_bytes=4), BoxPathError, "a file above the size")
        await refuses(box.write("d", b""), BoxPathError, "writing over a folder")
        await refuses(box.write("d/f/g", b""), BoxPathError, "writing below a file")
        await refuses(box.list_tree("none", max_bytes=10), BoxPathError, "listing a missing folder")
        await refuses(box.list_tree("/app", max_bytes=4), BoxPathError, "listing above the size")
        await refuses(box.read("../app/d/f", max_bytes=10), BoxPathError, "a path with ..")
        expect(await box.read("d/f", max_bytes=5) == b"12345", "the box is of no more use")


@check("read-only trees can be read and not written")
async def _readonly(provider: SandboxProvider) -> None:
    async with provider.create(spec(readonly={"/given": {"x/y": File(b"fixed")}})) as box:
        expect(await box.read("/given/x/y", max_bytes=10) == b"fixed", "it cannot be read")
        expect((await box.run(["cat", "/given/x/y"], timeout_s=10)).stdout == b"fixed", "a command cannot read it")
        await refuses(box.write("/given/x/y", b"changed"), BoxPathError, "writing over a read-only file")
        await refuses(box.write("/given/new", b""), BoxPathError, "writing into a read-only folder")


@check("scratch folders start empty and take files")
async def _scratch(provider: SandboxProvider) -> None:
    async with provider.create(spec(scratch=("/logs/verifier",))) as box:
        expect((await box.list_tree("/logs/verifier", max_bytes=10)).files == {}, "it does not start empty")
        await box.write("/logs/verifier/reward.txt", b"1")
        expect((await box.run(["cat", "/logs/verifier/reward.txt"], timeout_s=10)).stdout == b"1", "not seen inside")
        expect((await box.list_tree("/app", max_bytes=10)).files == {}, "it shows up in the workspace")


# --- life ----------------------------------------------------------------------------------------------------


@check("a saved workspace is named by its content, and a fork begins there", "snapshot", "fork")
async def _save(provider: SandboxProvider) -> None:
    async with provider.create(spec(files={"a": File(b"1")})) as box:
        first = await box.save()
        expect(first == tree_digest({"a": File(b"1")}), "the id is not the tree's digest")
        await box.write("b", b"2", mode=0o755)
        second = await box.save()
        async with provider.fork(second, spec()) as other:
            expect(await other.save() == second, "the fork differs from what was saved")
            await other.write("a", b"changed")
        expect(await box.read("a", max_bytes=10) == b"1", "a fork changed its origin")
    expect(provider.snapshots.get(first) == {"a": File(b"1")}, "the store does not hold it")


@check("forking an unknown snapshot fails at create", "fork")
async def _fork_unknown(provider: SandboxProvider) -> None:
    await refuses(enter(provider.fork("0" * 64, spec())), CreateFailed, "an unknown snapshot")


@check("an unknown layer fails at create")
async def _layer(provider: SandboxProvider) -> None:
    await refuses(enter(provider.create(spec(layer="no-such-layer"))), CreateFailed, "an unknown layer")


async def enter(context: AbstractAsyncContextManager[Sandbox]) -> None:
    async with context:
        pass


@check("close is idempotent, and a closed box says so")
async def _close(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        await box.close()
        await box.close()
        await refuses(box.run(["true"], timeout_s=10), SandboxDied, "running in a closed box")
        await refuses(box.read("x", max_bytes=1), SandboxDied, "reading in a closed box")
        await refuses(box.write("x", b""), SandboxDied, "writing in a closed box")


@check("boxes do not see each other")
async def _apart(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as one, provider.create(spec()) as two:
        expect(one.id != two.id, "two boxes have one id")
        await one.write("mine", b"1")
        await one.write("/tmp/mine", b"1")
        await refuses(two.read("mine", max_bytes=1), BoxPathError, "another box's workspace")
        await refuses(two.read("/tmp/mine", max_bytes=1), BoxPathError, "another box's /tmp")


@check("a create id names one living box")
async def _one_id(provider: SandboxProvider) -> None:
    mine = spec()
    async with provider.create(mine):
        await refuses(enter(provider.create(mine)), CreateFailed, "a second box of one id")
    async with provider.create(mine) as again:
        expect((await again.run(["true"], timeout_s=10)).exit_code == 0, "the id cannot be used again")
