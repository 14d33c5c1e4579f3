"""The system-call filter of a box: a classic BPF program, assembled here.

Owns: the assembly of the allow-list for x86_64 and aarch64.
Invariant: only what is listed runs. What is known and refused answers EPERM (an explicit refusal), what is not known
answers ENOSYS, so that C libraries fall back to older calls; a foreign architecture is killed.
Must not know: bubblewrap, boxes, why a call is in the list.

The numbers are cut into ranges that share an answer, and the range is found by bisection: some seven comparisons for
any call. Kernels from 5.11 on remember the answers that do not depend on arguments, and pay nothing at all.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence

from practicum.sandboxes.syscalls import ALLOWED, JUDGED, MACHINES, MISSING, REFUSED, RULES, Calls, Rule, numbers

_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000  # from here on are the x32 calls of x86_64, which would slip past the list

Body = tuple[bytes, ...]  # instructions that end in a return on every way


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _answer(value: int) -> Body:
    return (_op(_RETURN, value),)


def _judge(rules: Sequence[Rule]) -> Body:
    """Refuse where the low half of an argument breaks one of the rules, else allow."""
    body: list[bytes] = []
    for rule in rules:
        body.append(_op(_LOAD, _ARGUMENTS + 8 * rule.position))
        listed = rule.only or rule.never
        if rule.only:  # a value that is listed jumps over the refusal
            body += [_op(_JEQ, value, len(listed) - i, 0) for i, value in enumerate(listed)]
        elif rule.never:  # a value that is listed jumps to the refusal, others over it by the last test
            body += [_op(_JEQ, value, len(listed) - 1 - i, int(i == len(listed) - 1)) for i, value in enumerate(listed)]
        else:
            body.append(_op(_JSET, rule.without, 0, 1))
        body.append(_op(_RETURN, _EPERM))
    return (*body, _op(_RETURN, _ALLOW))


def _bodies(machine: str, namespaces: bool) -> dict[int, Body]:
    """What is done about each known number."""
    found: dict[int, Body] = {}

    def enter(calls: Calls, body: Body) -> None:
        found.update(dict.fromkeys(numbers(calls, machine).values(), body))

    enter(ALLOWED, _answer(_ALLOW))
    enter(REFUSED, _answer(_EPERM))
    enter({name: JUDGED[name] for name in MISSING}, _answer(_ENOSYS))
    for call in {rule.call for rule in RULES}:
        enter({call: JUDGED[call]}, _judge([rule for rule in RULES if rule.call == call]))
    if namespaces:
        enter({"unshare": REFUSED["unshare"], "clone": JUDGED["clone"]}, _answer(_ALLOW))
    return found


def _ranges(bodies: dict[int, Body]) -> list[tuple[int, Body]]:
    """(first number, body) for every range of numbers that share a body; the last has no end."""
    found: list[tuple[int, Body]] = []
    for number in range(max(bodies) + 2):
        body = bodies.get(number, _answer(_ENOSYS))
        if not found or found[-1][1] != body:
            found.append((number, body))
    return found


def _bisect(ranges: Sequence[tuple[int, Body]]) -> list[bytes]:
    """Instructions that end in the body of the range in which the loaded number lies."""
    if len(ranges) == 1:
        return list(ranges[0][1])
    middle = len(ranges) // 2
    below, above = _bisect(ranges[:middle]), _bisect(ranges[middle:])
    return [_op(_JGE, ranges[middle][0], len(below), 0), *below, *above]


def seccomp_filter(machine: str | None = None, *, namespaces: bool = False) -> bytes | None:
    """The program as `struct sock_filter[]`, or None for a machine it has not been written for.

    `namespaces` lets new namespaces be made, which only the audit asks for, to see its probes notice.
    """
    machine = machine or platform.machine()
    if machine not in MACHINES:
        return None
    ranges = _ranges(_bodies(machine, namespaces))
    if machine == "x86_64":
        ranges.append((_X32, _answer(_EPERM)))
    check = [_op(_LOAD, _ARCH), _op(_JEQ, _AUDIT[machine], 1, 0), _op(_RETURN, _KILL), _op(_LOAD, _NUMBER)]
    return b"".join([*check, *_bisect(ranges)])
