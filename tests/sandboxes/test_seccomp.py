"""The system-call filter: what the program decides, and what it does in a real box."""

from __future__ import annotations

import asyncio
import errno
import struct

import pytest

from practicum.sandboxes.bubblewrap import open_bubblewrap
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.seccomp import DENIED, seccomp_filter

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def decide(program: bytes, number: int, arch: int, arg0: int = 0, arg1: int = 0) -> int:
    """Run the program as the kernel would."""
    data = struct.pack("=IIQQQQQQQ", number, arch, 0, arg0, arg1, 0, 0, 0, 0)
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
            taken = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[code]
            at += if_true if taken else if_false


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_program_decides(machine: str, column: int) -> None:
    """Denied calls are refused, everyday calls pass, calls with flags are judged by their flags."""
    program = seccomp_filter(machine)
    assert program is not None
    arch = AUDIT[machine]
    for name, numbers in DENIED.items():
        number = numbers[column]
        if number is not None:
            assert decide(program, number, arch) == EPERM, name
    everyday = {"read": (0, 63), "openat": (257, 56), "execve": (59, 221), "mmap": (9, 222), "exit_group": (231, 94)}
    for name, pair in everyday.items():
        assert decide(program, pair[column], arch) == ALLOW, name
    clone, clone3 = (56, 220)[column], 435
    assert decide(program, clone, arch, 0x1200011) == ALLOW  # fork
    assert decide(program, clone, arch, 0x3D0F00) == ALLOW  # a thread
    assert decide(program, clone, arch, 0x10000000 | 17) == EPERM  # a new user namespace
    assert decide(program, clone3, arch) == ENOSYS
    socket = (41, 198)[column]
    assert [decide(program, socket, arch, family) for family in (1, 2, 10)] == [ALLOW] * 3
    assert [decide(program, socket, arch, family) for family in (16, 17, 38, 40)] == [EPERM] * 4
    ioctl = (16, 29)[column]
    assert decide(program, ioctl, arch, 0, 0x5412) == EPERM
    assert decide(program, ioctl, arch, 0, 0x5401) == ALLOW
    personality = (135, 92)[column]
    assert decide(program, personality, arch, 0xFFFFFFFF) == ALLOW
    assert decide(program, personality, arch, 0x40000) == EPERM
    assert decide(program, 0, 0x40000003) == KILL  # the 32-bit calls of the same machine
    if machine == "x86_64":
        assert decide(program, 0x40000000 | 101, arch) == EPERM  # ptrace by its x32 number


def test_unknown_machine_has_no_program() -> None:
    """A machine for which no program was written gets none, which the provider turns into an error."""
    assert seccomp_filter("riscv64") is None


# These are open to unprivileged processes by default, so that EPERM can only come from the filter.
PROBE = """
import ctypes, errno, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
column = 0 if platform.machine() == "x86_64" else 1
calls = {"keyctl": ((250, 219), (0, -3, 0)), "add_key": ((248, 217), (b"user", b"x", b"y", 1, -3)),
         "io_uring_setup": ((425, 425), (1, ctypes.create_string_buffer(256))),
         "ptrace": ((101, 117), (0, 0, 0, 0)), "personality": ((135, 92), (0x40000,)),
         "process_vm_readv": ((310, 270), (1, 0, 0, 0, 0, 0)), "unshare": ((272, 97), (0x10000000,)),
         "clone3": ((435, 435), (0, 0)), "mount": ((165, 40), (b"none", b"/tmp", b"tmpfs", 0, 0))}
for name, (numbers, args) in calls.items():
    ctypes.set_errno(0)
    result = libc.syscall(numbers[column], *args)
    print(name, errno.errorcode.get(ctypes.get_errno(), result))
for name in ("AF_NETLINK", "AF_PACKET", "AF_VSOCK"):
    try:
        socket.socket(getattr(socket, name), socket.SOCK_DGRAM).close()
        print(name, "opened")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
import threading
thread = threading.Thread(target=print, args=("thread", "runs")); thread.start(); thread.join()
"""


def test_filter_works_in_a_box(cache: LayerCache) -> None:
    """Calls that any process may make are refused in a box, while threads and sockets of the box work."""

    async def probe() -> bytes:
        async with (
            open_bubblewrap(limits_by="cgroup-or-rlimit", cache=cache) as provider,
            provider.create(BoxSpec("seccomp")) as box,
        ):
            result = await box.run(["python3", "-c", PROBE], timeout_s=20)
            assert result.exit_code == 0, result
            return result.stdout

    found = dict(line.split() for line in asyncio.run(probe()).decode().splitlines())
    assert found.pop("thread") == "runs"
    assert found.pop("clone3") == "ENOSYS"
    assert set(found.values()) == {"EPERM"}, found
