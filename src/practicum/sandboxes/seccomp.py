"""The system-call filter of a box: a classic BPF program, assembled here.

Owns: the deny list and its assembly for x86_64 and aarch64.
Invariant: what is denied answers EPERM (an explicit refusal), except `clone3`, which answers ENOSYS so that
C libraries fall back to `clone`, whose flags a filter can read; a foreign architecture is killed.
Must not know: bubblewrap, boxes. An allow-list is stricter and is left for later.
"""

from __future__ import annotations

import errno
import platform
import struct

_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
_NUMBER, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24  # offsets in struct seccomp_data; low halves of the arguments
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET
_CLONE_NAMESPACES = 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
_TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_SOCKET_FAMILIES = (1, 2, 10)  # unix, inet, inet6; everything else (packet, netlink, vsock, …) is denied

# name: (x86_64, aarch64); None where the architecture has no such call
DENIED: dict[str, tuple[int | None, int | None]] = {
    "_sysctl": (156, None),
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "get_mempolicy": (239, 236),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mbind": (237, 235),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "set_mempolicy": (238, 237),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "uselib": (134, None),
    "vhangup": (153, 58),
}
_CLONE, _CLONE3, _IOCTL, _SOCKET, _PERSONALITY = (56, 220), (435, 435), (16, 29), (41, 198), (135, 92)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """`body` (which must end in returns) if the call is `number`."""
    return [_op(_JEQ, number, 0, len(body)), *body]


def _allow_only(offset: int, values: tuple[int, ...]) -> list[bytes]:
    tests = [_op(_JEQ, value, len(values) - i, 0) for i, value in enumerate(values)]
    return [_op(_LOAD, offset), *tests, _op(_RETURN, _EPERM), _op(_RETURN, _ALLOW)]


def _deny_only(offset: int, values: tuple[int, ...]) -> list[bytes]:
    tests = [_op(_JEQ, value, len(values) - i, 0) for i, value in enumerate(values)]
    return [_op(_LOAD, offset), *tests, _op(_RETURN, _ALLOW), _op(_RETURN, _EPERM)]


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """The program as `struct sock_filter[]`, or None for a machine it has not been written for."""
    machine = machine or platform.machine()
    if machine not in _AUDIT:
        return None
    column = 0 if machine == "x86_64" else 1
    program = [
        _op(_LOAD, _ARCH),
        _op(_JEQ, _AUDIT[machine], 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":  # the x32 calls have numbers of their own, which would slip past the list
        program += [_op(_JGE, 0x40000000, 0, 1), _op(_RETURN, _EPERM)]
    flags = [
        _op(_LOAD, _ARG0),
        _op(_JSET, _CLONE_NAMESPACES, 1, 0),
        _op(_RETURN, _ALLOW),
        _op(_RETURN, _EPERM),
    ]
    program += _when(_CLONE[column], flags)
    program += _when(_CLONE3[column], [_op(_RETURN, _ENOSYS)])
    program += _when(_IOCTL[column], _deny_only(_ARG1, _TERMINAL_INJECTION))
    program += _when(_SOCKET[column], _allow_only(_ARG0, _SOCKET_FAMILIES))
    program += _when(_PERSONALITY[column], _allow_only(_ARG0, (0, 0xFFFFFFFF)))
    for numbers in DENIED.values():
        number = numbers[column]
        if number is not None:
            program += _when(number, [_op(_RETURN, _EPERM)])
    program.append(_op(_RETURN, _ALLOW))
    return b"".join(program)
