"""Probes and findings: one declaration for each probe, read on the host and carried out in the box.

Owns: `Probe`, `Finding`, `probe`, `PROBES`, the judgement of attempts.
Invariant: a probe is blocked only where every attempt met an explicit refusal; whatever else happened is `open`
(it worked, or it got past the control) or `unclear`, and both fail the audit.
Must not know: the host, the wire. It is laid into boxes, so it imports the standard library only.
"""

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["blocked", "open", "unclear"]
Attempt = tuple[str, Callable[[], object]]  # its name, and what raises OSError where it is refused
Facts = Mapping[str, Any]  # what the host says about itself, and the targets of the attempts


@dataclass(frozen=True, slots=True)
class Finding:
    """How one probe ended. `observed` is a short sentence."""

    status: Status
    observed: str


@dataclass(frozen=True, slots=True)
class Probe:
    """One attempt at escape or interference.

    `where`: in a box; in the second of two; or on the host, driving a provider. `limits` (fields of
    `records.task.Limits`) asks for a box of its own. `needs` names the capabilities that a provider must claim to
    have the control at all. `kills` says that being killed is a way to be refused, `root` that only the host's root
    can look.
    """

    id: str
    group: str
    tries: str
    expected: str
    threat: str
    function: Callable[..., Any]
    where: Literal["box", "pair", "host"] = "box"
    limits: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    kills: bool = False
    root: bool = False


PROBES: dict[str, Probe] = {}


def probe(id: str, group: str, tries: str, expected: str, *, threat: str, **more: Any) -> Callable[..., Any]:
    """Declare the decorated function as a probe."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        if id in PROBES:
            raise ValueError(f"{id} is declared twice")
        PROBES[id] = Probe(id, group, tries, expected, threat, function, **more)
        return function

    return declare


def blocked(observed: str) -> Finding:
    return Finding("blocked", observed)


def opened(observed: str) -> Finding:
    return Finding("open", observed)


def unclear(observed: str) -> Finding:
    return Finding("unclear", observed)


def name_of(number: int) -> str:
    """`EPERM` for 1, and so on."""
    return errno.errorcode.get(number, str(number))


def status_line(facts: Facts, name: str) -> str:
    """What the kernel says of this process under `name`; empty where it says nothing."""
    with open(facts["proc_status"]) as file:
        for line in file:
            if line.startswith(f"{name}:"):
                return line.split(":", 1)[1].strip()
    return ""


REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.ENOENT, errno.EROFS, errno.ENOSYS})
UNREACHED = frozenset({errno.ENETUNREACH, errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.ENODEV})


def judge(
    attempts: Iterable[Attempt],
    *,
    refusals: Iterable[int] = REFUSALS,
    past: Iterable[int] = (),
) -> Finding:
    """Carry out named attempts, each of which raises OSError where it is refused.

    `refusals` are the errors that count as one. An error in `past` comes from behind the control, so the attempt
    got through, though the call then failed for its arguments, which were chosen to do no harm.
    """
    refused: dict[str, list[str]] = {}
    got: list[str] = []
    other: list[str] = []
    for name, attempt in attempts:
        try:
            answer = attempt()
        except OSError as error:
            number = error.errno or 0
            if number in refusals:
                refused.setdefault(name_of(number), []).append(name)
            elif number in past:
                got.append(f"{name} got past the control ({name_of(number)})")
            else:
                other.append(f"{name}: {name_of(number)}")
        else:
            got.append(f"{name} worked" + (f" ({answer})" if isinstance(answer, str) and answer else ""))
    if got:
        return opened("; ".join(got[:4]))
    if other:
        return unclear("; ".join(other[:4]))
    if not refused:
        return unclear("nothing was tried")
    if len(refused) == 1:
        return blocked(next(iter(refused)))
    return blocked("; ".join(f"{error} ({_few(names)})" for error, names in refused.items()))


def _few(names: list[str]) -> str:
    """The first two, and how many more."""
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def opens(path: str, flags: int) -> Callable[[], object]:
    """An attempt to open `path`, which is closed again at once and neither read nor written."""

    def attempt() -> object:
        os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK))
        return None

    return attempt
