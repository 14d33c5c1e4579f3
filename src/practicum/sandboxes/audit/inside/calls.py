"""System calls by number, so that no C library stands between a probe and the kernel.

Owns: the numbers for x86_64 and aarch64, `call`, `attempt`.
Invariant: a call that fails raises OSError with the kernel's own number.
Must not know: probes.
"""

import ctypes
import errno
import mmap
import os
import platform
from collections.abc import Callable

MACHINE = platform.machine()
_COLUMN = 0 if MACHINE == "x86_64" else 1

# name: (x86_64, aarch64); None where the architecture has no such call
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "ioprio_set": (251, 30),
    "prlimit64": (302, 261),
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "getpid": (39, 172),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "kcmp": (312, 272),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_secret": (447, 447),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
NEW_USER, NEW_NET, NEW_PID, NEW_UTS, NEW_IPC, NEW_MOUNT = (
    0x10000000, 0x40000000, 0x20000000, 0x04000000, 0x08000000, 0x00020000,
)  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def has(name: str) -> bool:
    """Whether this architecture has the call."""
    return NUMBERS[name][_COLUMN] is not None


def raw(number: int, *arguments: object) -> int:
    """The call `number`; OSError where the kernel returns one."""
    ready = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    answer = int(_libc.syscall(ctypes.c_long(number), *ready))
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def call(name: str, *arguments: object) -> int:
    """The call of that name."""
    number = NUMBERS[name][_COLUMN]
    if number is None:
        raise OSError(errno.ENOSYS, f"{MACHINE} has no {name}")
    return raw(number, *arguments)


def attempt(name: str, *arguments: object) -> tuple[str, Callable[[], object]]:
    """For `registry.judge`."""
    return name, lambda: call(name, *arguments)


def forking(name: str, *arguments: object) -> tuple[str, Callable[[], object]]:
    """Like `attempt`, for calls that return twice: the second process ends at once."""

    def attempt() -> object:
        pid = call(name, *arguments)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        return None

    return name, attempt


def run_machine_code(code: bytes) -> int:
    """Run x86_64 code that ends in `ret`; the number that it leaves."""
    area = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    return int(ctypes.CFUNCTYPE(ctypes.c_long)(address)())
