"""The checks of the sandbox contract about snapshots, forks, resets and states.

Owns: checks only; they register themselves with `conformance`.
Invariant: as there. Must not know: any provider.
"""

from __future__ import annotations

import asyncio

from practicum.errors import BoxPathError, CreateFailed, SnapshotRefused
from practicum.records.task import MIB, Limits
from practicum.records.tree import File
from practicum.sandboxes.conformance import check, expect, refuses, spec
from practicum.sandboxes.conformance_files import enter
from practicum.sandboxes.contract import SandboxProvider


@check("forks begin at the snapshot and go their own ways", "snapshot", "fork")
async def _forks(provider: SandboxProvider) -> None:
    async with provider.create(spec(files={"a": File(b"1"), "d/gone": File(b"x")})) as box:
        await box.write("b", b"2", mode=0o755)
        await box.write("/tmp/note", b"n")
        snapshot = await box.snapshot()
        await box.write("a", b"later")
        async with provider.fork(snapshot, spec()) as one, provider.fork(snapshot, spec()) as two:
            for fork in (one, two):
                files = (await fork.list_tree("/app", max_bytes=1000)).files
                expect(files == {"a": File(b"1"), "b": File(b"2", 0o755), "d/gone": File(b"x")}, f"it holds {files}")
            await one.write("a", b"one")
            expect(await two.read("a", max_bytes=10) == b"1", "one fork sees the other's change")
        expect(await box.read("a", max_bytes=10) == b"later", "a fork changed its origin")
        provider.release(snapshot)
        provider.release(snapshot)
        await refuses(enter(provider.fork(snapshot, spec())), CreateFailed, "a released snapshot")


@check("a snapshot outlives its box, and can be stacked upon", "snapshot", "fork")
async def _outlives(provider: SandboxProvider) -> None:
    async with provider.create(spec(files={"a": File(b"1")})) as box:
        await box.write("b", b"2")
        first = await box.snapshot()
    async with provider.fork(first, spec()) as middle:
        await middle.write("c", b"3")
        second = await middle.snapshot()
    provider.release(first)
    async with provider.fork(second, spec()) as last:
        files = (await last.list_tree("/app", max_bytes=1000)).files
        expect(files == {name: File(data) for name, data in (("a", b"1"), ("b", b"2"), ("c", b"3"))}, f"{files}")
    provider.release(second)


@check("deletions and replacements are part of a snapshot", "isolation", "snapshot", "fork")
async def _deletions(provider: SandboxProvider) -> None:
    tree = {"a": File(b"1"), "d/x": File(b"x"), "d/y": File(b"y"), "e/z": File(b"z")}
    async with provider.create(spec(files=tree)) as box:
        before = await box.snapshot()
        await box.run(["sh", "-c", "rm a; rm -r d; mkdir d; echo n > d/new; rm -r e; echo f > e"], timeout_s=10)
        after = await box.snapshot()
        async with provider.fork(after, spec()) as fork:
            files = (await fork.list_tree("/app", max_bytes=1000)).files
            expect(files == {"d/new": File(b"n\n"), "e": File(b"f\n")}, f"it holds {files}")
        async with provider.fork(before, spec()) as fork:
            expect((await fork.list_tree("/app", max_bytes=1000)).files == tree, "the earlier one has changed")
        for snapshot in (before, after):
            provider.release(snapshot)


@check("a snapshot says where commands start, and is refused while one runs", "isolation", "snapshot")
async def _refused(provider: SandboxProvider) -> None:
    async with provider.create(spec(env={"COLOUR": "blue"})) as box:
        snapshot = await box.snapshot()
        expect(snapshot.cwd == "/app" and snapshot.env.get("COLOUR") == "blue", f"got {snapshot}")
        expect(snapshot.running == (), f"something is said to run: {snapshot.running}")
        running = asyncio.create_task(box.run(["sleep", "5"], timeout_s=10))
        await asyncio.sleep(0.2)
        await refuses(box.snapshot(), SnapshotRefused, "a snapshot while a command runs")
        await refuses(box.reset(), SnapshotRefused, "a reset while a command runs")
        expect((await box.status()).state == "running", "it is not said to run")
        running.cancel()
        await asyncio.wait([running], timeout=10)
        expect((await box.status()).state == "idle", "it is not said to be idle")


@check("processes left running are reported, and go on", "isolation", "snapshot", "fork")
async def _reported(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        script = "(setsid sh -c 'while :; do echo x >> beat; sleep 0.02; done' >/dev/null 2>&1 &); sleep 0.2"
        await box.run(["sh", "-c", script], timeout_s=10)
        snapshot = await box.snapshot()
        expect("sh" in snapshot.running, f"reported {snapshot.running}")
        before = await box.read("beat", max_bytes=MIB)
        await asyncio.sleep(0.2)
        expect(len(await box.read("beat", max_bytes=MIB)) > len(before), "the snapshot stopped it")
        async with provider.fork(snapshot, spec()) as fork:
            expect((await fork.status()).running == (), "the fork has processes")
            expect((await fork.read("beat", max_bytes=MIB)).startswith(b"x"), "the fork lacks the file")
        provider.release(snapshot)


@check("a reset brings the box back to its creation", "reset")
async def _reset(provider: SandboxProvider) -> None:
    tree = {"a": File(b"1"), "d/b": File(b"2", 0o755)}
    async with provider.create(spec(files=tree, scratch=("/logs",))) as box:
        await box.write("a", b"changed")
        await box.write("new", b"x")
        await box.write("/tmp/x", b"x")
        await box.write("/logs/x", b"x")
        await box.reset()
        expect((await box.list_tree("/app", max_bytes=1000)).files == tree, "the workspace is not as it was")
        for place in ("/tmp/x", "/logs/x"):
            await refuses(box.read(place, max_bytes=10), BoxPathError, f"{place} after a reset")
        expect((await box.run(["cat", "a"], timeout_s=10)).stdout == b"1", "commands see something else")
        expect((await box.status()).state == "idle", "it is not idle")


@check("a reset leaves no process and no shared memory", "isolation", "reset")
async def _reset_ends(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        script = "(setsid sleep 60 >/dev/null 2>&1 &); sleep 0.2; echo x > /dev/shm/x"
        await box.run(["sh", "-c", f"{script}; ipcmk -M 4096 -Q -S 2 2>/dev/null; true"], timeout_s=10)
        expect("sleep" in (await box.status()).running, "the process did not stay")
        await box.reset()
        expect((await box.status()).running == (), f"left: {(await box.status()).running}")
        result = await box.run(["sh", "-c", "ls /dev/shm; ls /proc | grep -c '^[0-9]'"], timeout_s=10)
        expect(int(result.stdout.split()[-1]) <= 6 and b"x" not in result.stdout.split(), f"found {result.stdout!r}")
        counts = await box.run(["sh", "-c", "cat /proc/sysvipc/* | grep -vc key"], timeout_s=10)
        expect(counts.stdout.strip() in (b"0", b""), f"IPC objects are left: {counts.stdout!r}")


@check("a fork is reset to where it was forked", "reset", "fork", "snapshot")
async def _reset_fork(provider: SandboxProvider) -> None:
    async with provider.create(spec(files={"a": File(b"1")})) as box:
        await box.write("b", b"2")
        snapshot = await box.snapshot()
    async with provider.fork(snapshot, spec()) as fork:
        provider.release(snapshot)
        await fork.write("a", b"changed")
        await fork.reset()
        files = (await fork.list_tree("/app", max_bytes=1000)).files
        expect(files == {"a": File(b"1"), "b": File(b"2")}, f"it holds {files}")


@check("a box can become a snapshot, and be reset to its creation after that", "snapshot", "reset")
async def _restore(provider: SandboxProvider) -> None:
    async with provider.create(spec(files={"a": File(b"1")})) as origin, provider.create(spec()) as box:
        await origin.write("b", b"2")
        snapshot = await origin.snapshot()
        await box.write("mine", b"x")
        await box.restore(snapshot)
        files = (await box.list_tree("/app", max_bytes=1000)).files
        expect(files == {"a": File(b"1"), "b": File(b"2")}, f"it holds {files}")
        await box.write("a", b"changed")
        await box.reset()
        expect((await box.list_tree("/app", max_bytes=1000)).files == {}, "it is not as it was created")
        expect(await origin.read("a", max_bytes=10) == b"1", "the origin was changed")
        provider.release(snapshot)
        await refuses(box.restore(snapshot), CreateFailed, "a released snapshot")


@check("a fork can become what was saved beside a running process", "isolation", "snapshot", "fork", "reset")
async def _restore_saved(provider: SandboxProvider) -> None:
    async with provider.create(spec(files={"a": File(b"1")})) as origin:
        start = await origin.snapshot()
        await origin.run(["sh", "-c", "echo 2 > b; (setsid sleep 60 >/dev/null 2>&1 &); sleep 0.2"], timeout_s=10)
        saved = await origin.snapshot()
        expect("sleep" in saved.running, "nothing ran when it was saved")
    async with provider.fork(start, spec()) as fork:
        await fork.restore(saved)
        files = (await fork.list_tree("/app", max_bytes=1000)).files
        expect(files == {"a": File(b"1"), "b": File(b"2\n")}, f"it holds {files}")
        await fork.reset()
        files = (await fork.list_tree("/app", max_bytes=1000)).files
        expect(files == {"a": File(b"1")}, f"after a reset it holds {files}")


@check("all that is written shares one limit", "isolation", "copy-on-write")
async def _one_disk(provider: SandboxProvider) -> None:
    limits = Limits(disk_bytes=4 * MIB)
    async with provider.create(spec(limits=limits, scratch=("/logs",))) as box:
        fill = "for d in /app /tmp /logs /dev/shm; do head -c 3M /dev/zero > $d/f; done; du -cb /app/f /tmp/f /logs/f"
        result = await box.run(["sh", "-c", fill + " /dev/shm/f | tail -1"], timeout_s=20)
        total = int(result.stdout.split()[0])
        expect(total <= 4 * MIB, f"{total} bytes were written in all")
        await box.reset()
        again = await box.run(["sh", "-c", "head -c 3M /dev/zero > f && echo ok"], timeout_s=20)
        expect(again.stdout == b"ok\n", "a reset did not give the space back")


@check("read-only places can be supplied anew, and stay read-only", "isolation", "copy-on-write")
async def _supply(provider: SandboxProvider) -> None:
    first, second = {"t": File(b"1")}, {"d/u": File(b"2")}
    async with provider.create(spec(readonly={"/given": first, "/kept": first})) as box:
        await box.supply({"/given": second})
        expect((await box.list_tree("/given", max_bytes=100)).files == second, "it was not exchanged")
        script = "cat /given/d/u; echo x > /given/d/u; echo x > /given/new; rm -rf /given/d; chmod 777 /given"
        result = await box.run(["sh", "-c", f"{script} 2>/dev/null; cat /given/d/u /kept/t"], timeout_s=10)
        expect(result.stdout == b"221", f"commands see or do something else: {result.stdout!r}")
        await refuses(box.write("/given/x", b""), BoxPathError, "writing into a supplied place")
        await box.reset()
        expect(set((await box.list_tree("/given", max_bytes=100)).files) == {"t"}, "a reset did not bring it back")


@check("a reset leaves no connection that holds a port", "isolation", "reset")
async def _reset_ports(provider: SandboxProvider) -> None:
    use = (
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 8080)); s.listen();"
        " c = socket.create_connection(('127.0.0.1', 8080)); a, _ = s.accept(); a.close(); c.close(); print('done')"
    )
    async with provider.create(spec(files={"a": File(b"1")})) as box:
        for _ in range(2):
            result = await box.run(["python3", "-c", use], timeout_s=20)
            expect(result.stdout == b"done\n", f"the port is taken: {result.stderr!r}")
            await box.reset()
        expect((await box.list_tree("/app", max_bytes=10)).files == {"a": File(b"1")}, "it is not as created")
