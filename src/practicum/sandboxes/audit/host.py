"""What the audit puts on the host for probes to find, and what it tells them about the host.

Owns: `HostMarks`: a marked file, sockets, listeners, a process, a variable; the facts for probes.
Invariant: everything is bound to this host's loopback or to a folder of the audit's own, and is gone when the
context ends; nothing that it holds is worth stealing.
Must not know: providers, probes.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from practicum.sandboxes.launch import SANDBOX_UID

VARIABLE = "PRACTICUM_AUDIT_SECRET"
_KINDS = ("pid", "net", "ipc", "uts", "cgroup", "user", "mnt")
_SETTINGS = ("core_pattern", "modprobe", "hostname", "panic", "poweroff_cmd", "randomize_va_space", "sysrq")
_MORE_SETTINGS = ("vm/overcommit_memory", "fs/suid_dumpable", "fs/binfmt_misc/register", "net/ipv4/ip_forward")
_DEVICES = (
    "mem",
    "kmem",
    "port",
    "kmsg",
    "kvm",
    "fuse",
    "loop-control",
    "sda",
    "vda",
    "nvme0n1",
    "vfio/vfio",
    "uinput",
)
_CGROUP = "/sys/fs/cgroup"


def _namespaces() -> dict[str, str]:
    found = {}
    for kind in _KINDS:
        path = Path(f"/proc/self/ns/{kind}")
        if os.path.lexists(path):
            found[kind] = str(path.readlink())
    return found


def _own_address() -> list[str]:
    """The address that this host would use to reach others; connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:  # a host without a network
            return []
        return [probe.getsockname()[0]]


class _Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.transport.sendto(data, addr)


async def _hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _listeners(stack: AsyncExitStack, folder: Path, token: str) -> dict[str, Any]:
    """Ports and names that answer."""

    async def serve(server: asyncio.Server) -> asyncio.Server:
        return await stack.enter_async_context(server)

    four = await serve(await asyncio.start_server(_hang_up, "127.0.0.1", 0))
    try:
        six = await serve(await asyncio.start_server(_hang_up, "::1", 0))
        six_port = six.sockets[0].getsockname()[1]
    except OSError:  # a host without version 6
        six_port = 0
    await serve(await asyncio.start_unix_server(_hang_up, f"\0{token}"))
    await serve(await asyncio.start_unix_server(_hang_up, folder / "socket"))
    (folder / "socket").chmod(0o777)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(_Echo, local_addr=("127.0.0.1", 0))
    stack.callback(transport.close)
    return {
        "tcp_port": four.sockets[0].getsockname()[1],
        "tcp6_port": six_port,
        "udp_port": transport.get_extra_info("sockname")[1],
        "abstract": token,
        "unix_socket": str(folder / "socket"),
    }


def _bystander(token: str) -> subprocess.Popen[bytes]:
    """A process of the user that boxes run as, outside of all boxes. It ends when its input does."""
    user = SANDBOX_UID if os.geteuid() == 0 else None
    return subprocess.Popen(
        ["/bin/sh", "-c", "read line", f"bystander-{token}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={VARIABLE: token},
        cwd="/",
        user=user,
        group=user,
        extra_groups=[] if user is not None else None,
    )


@asynccontextmanager
async def host_marks() -> AsyncIterator[dict[str, Any]]:
    """The marks, while the context lasts: the facts that probes are given.

    The variable is set in this process, so that whatever is launched from here would inherit it.
    """
    token = f"practicum-audit-{secrets.token_hex(8)}"
    folder = Path(tempfile.mkdtemp(prefix="practicum-escape-"))
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        folder.chmod(0o755)
        canary = folder / "canary"
        canary.write_text(token)
        canary.chmod(0o644)
        before = os.environ.get(VARIABLE)
        stack.callback(_set, VARIABLE, before)
        os.environ[VARIABLE] = token
        listeners = await _listeners(stack, folder, token)
        bystander = _bystander(token)
        stack.callback(_end, bystander)
        yield {"token": token, "folder": str(folder), "canary": str(canary)} | listeners | _facts(token, bystander.pid)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(5)


def _facts(token: str, bystander: int) -> dict[str, Any]:
    """What does not change, and what probes aim at; a proof may replace any of it by a decoy."""
    return {
        "namespaces": _namespaces(),
        "hostname": socket.gethostname(),
        "bystander": bystander,
        "bystander_token": f"bystander-{token}",
        "host_pids": [os.getpid(), os.getppid()],
        "pair_token": f"pair-{token}",
        "secrets": [token, "PRACTICUM_HOST_SECRET"],
        "addresses": _own_address(),
        "host_roots": ["/host"],
        "first": "1",
        "terminal": "/dev/tty",
        "proc_status": "/proc/self/status",
        "mountinfo": "/proc/self/mountinfo",
        "niceness": -5,
        "path": "",
        "places": ["/app", "/tmp", "/dev/shm"],
        "core_pattern": _text("/proc/sys/kernel/core_pattern"),
        "settings": [f"/proc/sys/kernel/{name}" for name in _SETTINGS]
        + [f"/proc/sys/{name}" for name in _MORE_SETTINGS],
        "triggers": [
            "/proc/sysrq-trigger",
            "/proc/sys/vm/drop_caches",
            "/proc/acpi/wakeup",
            "/proc/irq/0/smp_affinity",
        ],
        "kernel_memory": ["/proc/kcore", "/proc/kmsg", "/dev/core", "/proc/kpagecount", "/proc/timer_list"],
        "devices": [f"/dev/{name}" for name in _DEVICES],
        "device_folders": ["/dev"],
        "tunnels": ["/dev/net/tun", "/dev/vhost-net", "/dev/ppp"],
        "cgroup_files": [
            f"{_CGROUP}/{name}" for name in ("cgroup.procs", "memory/memory.limit_in_bytes", "memory/release_agent")
        ],
        "kernel_folders": ["/sys/kernel", "/sys/kernel/debug", "/sys/firmware", "/sys/class", "/sys/fs", "/proc/scsi"],
    }


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:  # a host that hides it cannot be harmed by it
        return ""
