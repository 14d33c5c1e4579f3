"""Probes of a box's configuration, read from outside while it lives: what was applied, not what was asked for.

Invariant: facts come from the host's kernel (/proc, control groups) or from the filter program itself.
Must not know: how a provider configures anything.
"""

from __future__ import annotations

import asyncio
import dataclasses
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from practicum.sandboxes.audit.bench import Bench
from practicum.sandboxes.audit.inside.calls import NUMBERS
from practicum.sandboxes.audit.inside.registry import Finding, blocked, opened, probe, unclear
from practicum.sandboxes.audit.lifecycle import on_host, sleeper
from practicum.sandboxes.seccomp import seccomp_filter

_GROUP = "configuration"
_THREAT = "a control is configured and not applied"
_NOT_ONE = "no process of the host carries the box's command"
_OF_A_PROCESS = frozenset({"prlimit64"})  # refused where it is the first one that is meant
_FREE = frozenset(
    ["clone", "getpid", "ioctl", "ioprio_set", "pidfd_open", "personality", "shmctl", "shmget"]
)  # judged, or harmless


@asynccontextmanager
async def _living(bench: Bench) -> AsyncIterator[list[int]]:
    """The host's numbers of a box's command and of the processes above it up to the box's first; or none."""
    mark = sleeper()
    async with bench.box() as box:
        call = asyncio.create_task(box.run(["sleep", mark], timeout_s=30))
        try:
            pids: list[int] = []
            for _ in range(100):
                await asyncio.sleep(0.02)
                if pids := [pid for pid in on_host(mark) if _status(pid).get("Name") == "sleep"]:
                    break
            yield _chain(pids[0]) if pids else []
        finally:
            call.cancel()
            await asyncio.wait([call], timeout=10)


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _chain(pid: int) -> list[int]:
    """The process and its ancestors in the same process namespace, at most ten."""
    found, depth = [pid], len(_status(pid).get("NSpid", "").split())
    while len(found) < 10:
        parent = int(_status(found[-1]).get("PPid", "0"))
        if parent < 2 or len(_status(parent).get("NSpid", "").split()) != depth or depth < 2:
            return found
        found.append(parent)
    return found


async def box_uid(bench: Bench) -> int | None:
    """The host's uid of what runs in a box; None where no process of the host does."""
    async with _living(bench) as pids:
        return int(_status(pids[0])["Uid"].split()[0]) if pids else None


@probe(
    "P100",
    _GROUP,
    "have a process with the host's root, a privilege or no filter",
    "none, seen from outside",
    threat=_THREAT,
    where="host",
)
async def identity(bench: Bench) -> Finding:
    wrong: list[str] = []
    async with _living(bench) as pids:
        for pid in pids:
            status = _status(pid)
            uids = set(status["Uid"].split()[:3])
            caps = [name for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(status[name], 16)]
            wrong += [f"uid {uid}" for uid in uids if uid == "0"]
            wrong += caps
            wrong += [] if status["NoNewPrivs"] == "1" else ["privileges can be gained"]
            wrong += [] if status["Seccomp"] == "2" else ["no filter"]
    if not pids:
        return blocked(_NOT_ONE)
    if wrong:
        return opened(", ".join(dict.fromkeys(wrong)))
    return blocked(f"{len(pids)} processes of uid {', '.join(uids)}, no capability, filtered")


def _group_folders(pid: int) -> dict[str, Path]:
    """Controller → folder of the process's control group; the empty name for version 2."""
    mounts: dict[str, tuple[str, str]] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        names = [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in names:
            mounts.setdefault(name, (root, point))
    found = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            if name in mounts:
                root, point = mounts[name]
                found[name] = Path(point + path.removeprefix(root if root != "/" else ""))
    return found


def _applied(pid: int) -> dict[str, str]:
    """Limits of the process's control groups as the kernel shows them."""
    folders = _group_folders(pid)
    if "memory" in folders:
        files = {
            "memory": folders["memory"] / "memory.limit_in_bytes",
            "pids": folders["pids"] / "pids.max",
            "cpu": folders["cpu"] / "cpu.cfs_quota_us",
        }
    else:
        files = {"memory": folders[""] / "memory.max", "pids": folders[""] / "pids.max", "cpu": folders[""] / "cpu.max"}
    return {name: path.read_text().split()[0] if path.exists() else "max" for name, path in files.items()}


@probe(
    "P101",
    _GROUP,
    "have a limit that is asked for and not applied",
    "the kernel shows memory, processes and processor share as told",
    threat=_THREAT,
    where="host",
    needs=("memory-limit", "pids-limit", "cpu-limit"),
)
async def limits(bench: Bench) -> Finding:
    told = bench.limits()
    async with _living(bench) as pids:
        if not pids:
            return unclear(_NOT_ONE)
        found = await asyncio.to_thread(_applied, pids[0])
    small = {
        "memory": found["memory"].isdigit() and int(found["memory"]) <= told.memory_bytes,
        "pids": found["pids"].isdigit() and int(found["pids"]) <= told.pids + 4,  # and what the provider itself needs
        "cpu": found["cpu"].isdigit() and int(found["cpu"]) <= 100_000 * told.cpus,
    }
    text = ", ".join(f"{name} {value}" for name, value in found.items())
    return blocked(text) if all(small.values()) else opened(text)


@probe(
    "P102", _GROUP, "share a namespace with the host", "none is shared, seen from outside", threat=_THREAT, where="host"
)
async def namespaces(bench: Bench) -> Finding:
    async with _living(bench) as pids:
        if not pids:
            return blocked(_NOT_ONE)
        try:
            own = {kind: str(Path(f"/proc/{pids[0]}/ns/{kind}").readlink()) for kind in bench.facts["namespaces"]}
        except PermissionError:
            return unclear("this user may not look at the box's namespaces")
    shared = [kind for kind, name in own.items() if bench.facts["namespaces"][kind] == name]
    return opened(f"{', '.join(shared)} shared") if shared else blocked(f"{len(own)} kinds, none shared")


@probe(
    "P103",
    _GROUP,
    "have a mount that is writable, set-user-id or a device without need",
    "root read-only, nosuid everywhere",
    threat=_THREAT,
    where="host",
)
async def mounts(bench: Bench) -> Finding:
    async with _living(bench) as pids:
        if not pids:
            return blocked(_NOT_ONE)
        lines = Path(f"/proc/{pids[0]}/mountinfo").read_text().splitlines()
    wrong = []
    for line in lines:
        left, _, right = line.partition(" - ")
        place, options = left.split()[4], left.split()[5].split(",")
        kind = right.split()[0]
        if "nosuid" not in options:
            wrong.append(f"{place} without nosuid")
        if place == "/" and "ro" not in options:
            wrong.append("/ writable")
        if (
            "ro" not in options
            and kind not in ("tmpfs", "overlay", "proc", "devpts", "mqueue")
            and place[:5] != "/dev/"
        ):
            wrong.append(f"{place} ({kind}) writable")
    return opened(", ".join(wrong[:4])) if wrong else blocked(f"{len(lines)} mounts")


def decide(program: bytes, number: int, arch: int, first: int = 0) -> int:
    """What the filter answers to a call with this first argument, carried out as the kernel does."""
    data = struct.pack("=IIQQQQQQQ", number, arch, 0, first, 0, 0, 0, 0, 0)
    steps = list(struct.iter_unpack("=HBBI", program))
    accumulator = at = 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return int(value)
        else:
            taken = {0x05: True, 0x15: accumulator == value, 0x25: accumulator > value, 0x35: accumulator >= value}
            taken[0x45] = bool(accumulator & value)
            at += value if code == 0x05 else if_true if taken[code] else if_false


@probe(
    "P104",
    _GROUP,
    "have a filter that lets a dangerous, unknown or foreign call pass",
    "each is refused or killed",
    threat=_THREAT,
    where="host",
)
async def filter_program(bench: Bench) -> Finding:
    allow, passed, count = 0x7FFF0000, [], 0
    for column, (machine, arch) in enumerate((("x86_64", 0xC000003E), ("aarch64", 0xC00000B7))):
        given = bench.setting.facts.get("filter")
        program = bytes.fromhex(given) if given else seccomp_filter(machine)
        if program is None:
            return unclear(f"there is no filter for {machine}")
        numbers = {name: pair[column] for name, pair in NUMBERS.items() if name not in _FREE}
        asked = {
            name: (number, arch, int(name in _OF_A_PROCESS)) for name, number in numbers.items() if number is not None
        }
        asked |= {f"call {number}": (number, arch, 0) for number in (470, 1000, 0x40000000, 0x40000065, 0xFFFFFFFF)}
        asked["a call of a foreign architecture"] = (0, 0x40000003, 0)
        count += len(asked)
        passed += [f"{name} on {machine}" for name, call in asked.items() if decide(program, *call) == allow]
    return opened(", ".join(passed[:5])) if passed else blocked(f"{count} calls, none passes")


@probe(
    "P105",
    _GROUP,
    "run without limits for each process",
    "core, open files and file size are bounded",
    threat=_THREAT,
    where="host",
)
async def process_limits(bench: Bench) -> Finding:
    bounds = {"Max core file size": 1, "Max open files": 65536, "Max file size": bench.limits().disk_bytes}
    async with _living(bench) as pids:
        if not pids:
            return unclear(_NOT_ONE)
        text = Path(f"/proc/{pids[0]}/limits").read_text()
    hard = {line[:26].strip(): line[26:].split()[1] for line in text.splitlines()[1:]}
    wrong = [
        f"{name} {hard[name]}" for name, most in bounds.items() if hard[name] == "unlimited" or int(hard[name]) > most
    ]
    return opened(", ".join(wrong)) if wrong else blocked(", ".join(f"{name} {hard[name]}" for name in bounds))


@probe("P106", _GROUP, "have a switch of hardening off", "all are on", threat=_THREAT, where="host")
async def switches(bench: Bench) -> Finding:
    values = dataclasses.asdict(bench.setting.profile)
    off = [name for name, value in values.items() if value is False]
    return opened(f"off: {', '.join(off)}") if off else blocked(f"{len(values) - 1} switches, all on")


@probe(
    "P109",
    _GROUP,
    "start with the launcher's environment",
    "no process of the box holds a variable of the host",
    threat=_THREAT,
    where="host",
    root=True,
)
async def environment(bench: Bench) -> Finding:
    secrets = [text.encode() for text in bench.facts["secrets"]]
    async with _living(bench) as pids:
        if not pids:
            return blocked(_NOT_ONE)
        found = [Path(f"/proc/{pid}/environ").read_bytes() for pid in pids]
    if any(secret in text for text in found for secret in secrets):
        return opened("a process holds a variable of the host")
    names = sorted(
        {pair.split(b"=")[0].decode(errors="replace") for text in found for pair in text.split(b"\0") if pair}
    )
    return blocked(f"{len(pids)} processes with {', '.join(names)}")
