"""Checks of the sandbox contract that need real processes, limits or namespaces.

Owns: checks only; `conformance.py` runs them.
Invariant: each names the capability without which it would ask for what was never promised.
Must not know: any provider.
"""

from __future__ import annotations

import asyncio
import time

from practicum.errors import BoxOutOfMemory, BoxPathError, SandboxDied
from practicum.records.task import MIB, Limits
from practicum.records.tree import File
from practicum.sandboxes.conformance import Broken, check, expect, refuses, spec
from practicum.sandboxes.contract import CommandResult, Sandbox, SandboxProvider


async def sh(box: Sandbox, script: str, timeout_s: float = 10) -> CommandResult:
    return await box.run(["sh", "-c", script], timeout_s=timeout_s)


@check("exit codes and signals as a shell shows them", "isolation")
async def _codes(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        for script, code in {"exit 7": 7, "kill -TERM $$": 143, "kill -KILL $$": 137}.items():
            result = await sh(box, script)
            expect(result.exit_code == code, f"{script} gave {result.exit_code}")


@check("a file that cannot be executed gives 126", "isolation")
async def _not_executable(provider: SandboxProvider) -> None:
    async with provider.create(spec(files={"f": File(b"data")})) as box:
        expect((await box.run(["./f"], timeout_s=10)).exit_code == 126, "not 126")
        expect((await box.run(["true"], timeout_s=10, cwd="/nowhere")).exit_code != 0, "ran in a missing folder")


@check("an action that is asked for again is carried out once", "isolation", "reset")
async def _once(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        add = ["sh", "-c", "echo x >> f; cat f"]
        first = await box.run(add, timeout_s=10, action="a/1")
        expect(await box.run(add, timeout_s=10, action="a/1") == first, "asked again, it gave another result")
        both = await asyncio.gather(*(box.run(add, timeout_s=10, action="a/2") for _ in range(2)))
        expect(both[0] == both[1], "asked twice at once, it gave two results")
        expect((await box.read("f", max_bytes=10)) == b"x\nx\n", "it was carried out more than once")
        await box.reset()
        expect((await box.run(add, timeout_s=10, action="a/1")).stdout == b"x\n", "a reset box remembers")


@check("standard output and error stay apart", "isolation")
async def _streams(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        result = await sh(box, "printf out; printf err >&2")
        expect((result.stdout, result.stderr) == (b"out", b"err"), f"got {result}")


@check("an endless writer ends at its deadline", "isolation")
async def _flood(provider: SandboxProvider) -> None:
    async with provider.create(spec(limits=Limits(output_bytes=4096))) as box:
        result = await sh(box, "yes & yes >&2", timeout_s=0.5)
        expect(result.timed_out and result.truncated, f"got {result.timed_out=} {result.truncated=}")
        expect(len(result.stdout) <= 4096 and len(result.stderr) <= 4096, "more than the cap was kept")


@check("a grandchild that holds the pipe does not delay the result", "isolation")
async def _grandchild(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        for script in ("sleep 30 & echo done", "setsid sleep 30 & echo done"):
            start = time.monotonic()
            result = await sh(box, script)
            expect(result.stdout == b"done\n" and not result.timed_out, f"{script} gave {result}")
            expect(time.monotonic() - start < 5, f"{script} took {time.monotonic() - start:.1f} s")


@check("the process group is gone when the call ends", "isolation")
async def _group(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        await sh(box, "(while :; do echo x >> beat; sleep 0.02; done) >/dev/null 2>&1 & sleep 0.1")
        await sh(box, "trap '' TERM; while :; do echo x >> beat; sleep 0.02; done", timeout_s=0.2)
        before = await box.read("beat", max_bytes=MIB)
        await asyncio.sleep(0.2)
        expect(await box.read("beat", max_bytes=MIB) == before, "something still runs")


@check("a cancelled call kills its command", "isolation")
async def _cancel_kills(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        call = asyncio.create_task(sh(box, "while :; do echo x >> beat; sleep 0.02; done", timeout_s=60))
        await asyncio.sleep(0.3)
        call.cancel()
        await asyncio.wait([call], timeout=10)
        before = await box.read("beat", max_bytes=MIB)
        await asyncio.sleep(0.2)
        expect(await box.read("beat", max_bytes=MIB) == before, "it still runs")


@check("a command cannot end the box", "isolation", "lasting")
async def _unkillable(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        await sh(box, "kill -9 1; kill -9 -1; kill -STOP 1; true")
        expect((await sh(box, "echo on")).stdout == b"on\n", "the box is of no more use")


@check("a command can neither limit nor slow the box", "isolation", "lasting")
async def _uncrippled(provider: SandboxProvider) -> None:
    script = (
        "import os, resource\n"
        "for call in (lambda: resource.prlimit(1, resource.RLIMIT_AS, (1, 1)),\n"
        "             lambda: resource.prlimit(1, resource.RLIMIT_STACK, (65536, 65536)),\n"
        "             lambda: os.setpriority(os.PRIO_PROCESS, 1, 19), lambda: os.setpriority(os.PRIO_USER, 0, 19),\n"
        "             lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))):\n"
        "    try:\n        call()\n    except OSError:\n        print('refused')\n"
    )
    async with provider.create(spec()) as box:
        result = await box.run(["python3", "-c", script], timeout_s=20)
        expect(result.stdout == b"refused\n" * 5, f"got {result.stdout!r} {result.stderr!r}")
        expect((await sh(box, "ulimit -s")).stdout != b"64\n", "later commands have its limits")


@check("links are not followed", "isolation")
async def _links(provider: SandboxProvider) -> None:
    async with provider.create(spec(files={"real": File(b"real"), "d/f": File(b"f")})) as box:
        await sh(box, "ln -s /etc/passwd out; ln -s real in; ln -s d dir; ln -s /nowhere broken")
        for name in ("out", "in", "broken", "dir/f"):
            await refuses(box.read(name, max_bytes=10_000), BoxPathError, f"reading the link {name}")
        await refuses(box.write("dir/new", b""), BoxPathError, "writing through a link to a folder")
        await box.write("in", b"replaced")
        expect(await box.read("real", max_bytes=10) == b"real", "a write went through a link")
        expect(await box.read("in", max_bytes=10) == b"replaced", "a link was not replaced")
        listing = await box.list_tree("/app", max_bytes=1000)
        expect(set(listing.files) == {"real", "d/f", "in"}, f"listed {sorted(listing.files)}")
        expect(set(listing.irregular) == {"out", "dir", "broken"}, f"irregular {dict(listing.irregular)}")


@check("a workspace that holds more than files is not saved", "isolation", "snapshot")
async def _not_saved(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        await sh(box, "echo 1 > f; ln -s f link")
        await refuses(box.save(), BoxPathError, "saving a link")
        await sh(box, "rm link")
        expect(provider.snapshots.get(await box.save()) == {"f": File(b"1\n")}, "it was not saved without the link")


@check("pipes, sockets and closed folders are named, not opened", "isolation")
async def _irregular(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        await sh(box, "mkfifo p; mkdir shut; echo x > shut/f; chmod 0 shut; echo x > closed; chmod 0 closed")
        listing = await box.list_tree("/app", max_bytes=1000)
        expect(listing.files == {}, f"listed {sorted(listing.files)}")
        expect(listing.irregular.get("p") == "pipe", f"irregular {dict(listing.irregular)}")
        expect({"shut", "closed"} <= set(listing.irregular), f"irregular {dict(listing.irregular)}")
        await refuses(box.read("p", max_bytes=10), BoxPathError, "reading a pipe")


@check("a sparse giant and a crowd of files are bounded", "isolation")
async def _bounded(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        await sh(box, "truncate -s 50M big")
        await refuses(box.list_tree("/app", max_bytes=MIB), BoxPathError, "listing a sparse giant")
        await box.write("big", b"")
        await sh(box, "i=0; mkdir c; cd c; while [ $i -lt 21000 ]; do : > f$i; i=$((i+1)); done")
        await refuses(box.list_tree("/app", max_bytes=100 * MIB), BoxPathError, "listing 21,000 files")
        expect((await sh(box, "echo on")).stdout == b"on\n", "the box is of no more use")


@check("commands run without root, privileges or host variables", "isolation")
async def _unprivileged(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        result = await sh(
            box, "id -u; grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status; ls /proc | grep -c '^[0-9]'"
        )
        words = result.stdout.split()
        expect(words[0] != b"0", "commands are root")
        privileges = words[1:-1]
        expect(privileges[:4] == [b"CapEff:", b"0" * 16, b"CapBnd:", b"0" * 16], f"{words}")
        expect(privileges[4:] in ([b"NoNewPrivs:", b"1"], []), f"{words}")  # gVisor's status does not have the line
        expect(int(words[-1]) <= 6, "processes of others are visible")
        probe = await sh(box, "cat /proc/1/environ /proc/1/mem; ls /proc/1/fd; echo end")
        expect(
            probe.stdout.replace(b"HOME=/tmp\0", b"") == b"end\n", f"the first process is open: {probe.stdout[:200]!r}"
        )


@check("commands inherit three streams and nothing else", "isolation")
async def _descriptors(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        names = (await sh(box, "echo /proc/self/fd/*; ls /proc/self/fd")).stdout.split()
        expect({int(name) for name in names if name.isdigit()} <= {0, 1, 2, 3}, f"{names}")  # 3 is ls's own


@check("nothing outside the writable places can be written", "isolation")
async def _read_only_root(provider: SandboxProvider) -> None:
    async with provider.create(spec(readonly={"/given": {"f": File(b"")}})) as box:
        places = "/x /etc/x /usr/x /bin/x /dev/x /opt/x /given/x /proc/sys/kernel/core_pattern /sys/x"
        result = await sh(box, f"for p in {places}; do (: >> $p) 2>/dev/null && echo $p; done; true")
        expect(result.stdout == b"", f"written: {result.stdout!r}")
        expect(
            (await sh(box, ": > /tmp/x && : > /app/x && : > /dev/shm/x")).exit_code == 0, "cannot write where it may"
        )


@check("there is no network", "isolation", "no-network")
async def _network(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        result = await sh(box, "cat /proc/net/dev /proc/net/route")
        cards = [line.split(b":")[0].strip() for line in result.stdout.splitlines() if b":" in line]
        expect(cards == [b"lo"], f"interfaces {cards}")


@check("memory is limited, and its end is told apart", "memory-limit", "oom-report")
async def _memory(provider: SandboxProvider) -> None:
    async with provider.create(spec(limits=Limits(memory_bytes=96 * MIB))) as box:
        result = await box.run(["python3", "-c", "x = bytearray(200 << 20)"], timeout_s=20)
        expect(result.exit_code == 137 and result.oom_killed, f"got {result}")
        after = await sh(box, "echo on")
        expect(after.stdout == b"on\n" and not after.oom_killed, f"afterwards {after}")


@check("a box that its own commands drove out of memory says so", "memory-limit", "oom-report")
async def _out_of_memory(provider: SandboxProvider) -> None:
    async with provider.create(spec(limits=Limits(memory_bytes=64 * MIB, disk_bytes=256 * MIB))) as box:
        # What stays in memory when its writer is killed leaves the box no room to do anything else.
        try:
            for _ in range(10):
                result = await sh(box, "head -c 200000000 /dev/zero > /dev/shm/x")
                expect(result.exit_code != 0, "200 MB fit into 64 MiB")
        except BoxOutOfMemory:
            return
        except SandboxDied as error:
            raise Broken(f"it counts as the host's doing: {error}") from None


@check("processes are limited", "isolation", "pids-limit")
async def _pids(provider: SandboxProvider) -> None:
    async with provider.create(spec(limits=Limits(pids=16))) as box:
        script = "i=0; while [ $i -lt 64 ]; do sleep 20 & i=$((i+1)); done; echo all"
        result = await sh(box, script)
        expect(b"all" not in result.stdout, "64 processes were started")
        expect((await sh(box, "echo on")).stdout == b"on\n", "the box is of no more use")


@check("disk is limited", "isolation", "disk-limit")
async def _disk(provider: SandboxProvider) -> None:
    async with provider.create(spec(limits=Limits(disk_bytes=4 * MIB))) as box:
        for place in ("/app", "/tmp", "/dev/shm"):
            script = f"for i in 1 2 3 4 5 6 7 8; do head -c 1000000 /dev/zero > {place}/$i || exit 9; done"
            expect((await sh(box, script)).exit_code == 9, f"8 MB fit into {place}")
        await refuses(box.write("x", b"x" * MIB), BoxPathError, "writing to a full disk")


@check("the processor is limited", "cpu-limit")
async def _cpu(provider: SandboxProvider) -> None:
    async with provider.create(spec(limits=Limits(cpus=0.2))) as box:
        result = await sh(box, "while :; do :; done", timeout_s=1.0)
        expect(result.timed_out and result.cpu_s < 0.5, f"used {result.cpu_s:.2f} s in {result.wall_s:.2f} s")


@check("seconds of cpu and peak memory are measured", "isolation")
async def _usage(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        result = await box.run(["python3", "-c", "x = bytearray(50 << 20); sum(range(10**6))"], timeout_s=20)
        expect(result.cpu_s > 0 and result.wall_s > 0, f"got {result}")
        expect(50 * MIB < result.peak_memory_bytes < 200 * MIB, f"peak {result.peak_memory_bytes}")


@check("python and pytest of the layer work", "isolation")
async def _python(provider: SandboxProvider) -> None:
    tests = {"test_it.py": File(b"def test_good(): assert True\n\ndef test_bad(): assert 1 == 2\n")}
    async with provider.create(spec(files=tests)) as box:
        result = await box.run(["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"], timeout_s=60)
        expect(result.exit_code == 1 and b"1 failed, 1 passed" in result.stdout, f"got {result}")
        expect(set((await box.list_tree("/app", max_bytes=MIB)).files) == {"test_it.py"}, "it left something behind")
