"""Settings in which a control is missing, and the probes that must notice.

Owns: `Proof`, `all_proofs`, `proofs_for`.
Invariant: no setting gives a box more privilege on the host than an ordinary user has; what takes resources without
limits is bounded by the probe itself. A probe without a proof is named, with the reason.
Must not know: how a provider honours a profile.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from practicum.sandboxes.audit.bench import Setting
from practicum.sandboxes.contract import Sandbox
from practicum.sandboxes.profile import Profile


@dataclass(frozen=True, slots=True)
class Proof:
    """In `setting`, each probe of `should_fire` must find its way open."""

    setting: Setting
    should_fire: tuple[str, ...]


def _ids(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _weak(name: str, ids: str, *, user: str = "agent", **off: bool) -> Proof:
    return Proof(Setting(name, Profile(name, **off), user=user), _ids(ids))  # type: ignore[arg-type]


async def _own_namespaces(box: Sandbox) -> Mapping[str, Any]:
    kinds = ("user", "mnt")
    done = await box.run(["readlink", *(f"/proc/self/ns/{kind}" for kind in kinds)], timeout_s=10)
    return {"namespaces": dict(zip(kinds, done.stdout.decode().split(), strict=True))}


_DECOY = "mkdir -p /tmp/decoy/frozen; : > /tmp/decoy/file; : > /tmp/decoy/test.py"
_STATUS = "printf 'NoNewPrivs:\\t0\\nSeccomp:\\t0\\n' > /tmp/status; echo '1 0 0:1 / / rw - tmpfs t rw' > /tmp/mounts"
_ALLOW_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000).hex()


def _decoys() -> Proof:
    """Targets that can be opened, in the place of those that cannot: whatever refuses them, it is not the probe."""
    facts = {
        "settings": ["/tmp/decoy/file"],
        "triggers": ["/tmp/decoy/file"],
        "kernel_memory": [],
        "cgroup_files": ["/tmp/decoy/file"],
        "kernel_folders": ["/usr"],
        "devices": ["/dev/null"],
        "terminal": "/dev/null",
        "readonly": "/tmp/decoy",
        "readonly_file": "test.py",
        "readonly_folder": "frozen",
        "first": "self",
        "proc_status": "/tmp/status",
        "mountinfo": "/tmp/mounts",
        "niceness": 5,
        "path": "/tmp:/usr/bin",
    }
    setting = Setting("decoys", facts=facts, prelude=f"{_DECOY}; {_STATUS}")
    return Proof(setting, _ids("P11 P12 P14 P15 P38 P44 P45 P46 P47 P48 P50 P51"))


def all_proofs() -> list[Proof]:
    """Every proof that some host can give."""
    return [
        _weak("no process namespace", "P01 P07 P08 P83 P87 P102 P106", pid_namespace=False),
        _weak("host network", "P02 P52 P53 P54 P55 P56 P57 P81 P102", net_namespace=False),
        _weak("no ipc namespace", "P03 P82 P102", ipc_namespace=False),
        _weak("no uts namespace", "P04 P102", uts_namespace=False),
        _weak("no control-group namespace", "P05 P102", cgroup_namespace=False),
        _weak(
            "no system-call filter",
            "P16 P23 P24 P25 P26 P27 P28 P30 P31 P32 P34 P35 P36 P37 P100 P110",
            seccomp=False,
        ),
        _weak("nested user namespaces, no filter", "P20", no_nested_userns=False, seccomp=False),
        _weak("capabilities kept", "P13 P100", user="root", drop_capabilities=False),
        _weak(
            "capabilities kept, no filter",
            "P13 P17 P18 P19 P21 P22 P33 P39 P58 P59",
            user="root",
            drop_capabilities=False,
            seccomp=False,
            no_nested_userns=False,
        ),
        _weak("environment not cleared", "P109", clear_environment=False),
        Proof(Setting("a variable of the host", prelude="export PRACTICUM_HOST_SECRET=x"), ("P09",)),
        _weak("host file system", "P41 P42 P49", own_filesystem=False),
        _weak("writable root", "P40 P103", readonly_root=False),
        _weak("host devices", "P43", minimal_dev=False),
        _weak("no limits", "P60 P61 P62 P63 P64 P65 P70 P71 P72 P101 P105", limits=False),
        Proof(Setting("sixteen times the room", roomy=True), _ids("P60 P61 P62 P63 P64 P66 P67 P68 P69 P70 P73 P101")),
        _decoys(),
        Proof(Setting("told its own namespaces", learn=_own_namespaces), ("P06",)),
        Proof(Setting("a descriptor left open", prelude="exec 7</etc/passwd"), ("P10",)),
        Proof(Setting("a filter that allows all", facts={"filter": _ALLOW_ALL}), ("P104",)),
        Proof(Setting("a beginner's collector", naive="collector"), _ids("P89 P90 P91 P92 P93 P94 P95 P96 P97")),
        Proof(Setting("a beginner's runner", naive="runner"), _ids("P74 P75 P76 P77 P78 P86")),
        Proof(Setting("one box for two", one_box=True), _ids("P79 P80 P81 P82 P83 P84 P85 P88 P99 P107 P108")),
    ]


def _kernel(name: str) -> str:
    path = Path("/proc/sys", name)
    return path.read_text().strip() if os.path.lexists(path) else ""


# Probes whose control cannot be seen to be missing on some hosts, because the kernel itself refuses there.
_IF: dict[str, tuple[Callable[[], bool], str]] = {
    "P27": (lambda: Path("/proc/sys/vm/unprivileged_userfaultfd").exists(), "the kernel has no userfaultfd"),
    "P28": (lambda: _kernel("kernel/io_uring_disabled") in ("", "0"), "kernel.io_uring_disabled is set"),
    "P25": (
        lambda: _kernel("kernel/perf_event_paranoid") in ("-1", "0", "1", "2"),
        "kernel.perf_event_paranoid is set",
    ),
    "P24": (lambda: _kernel("kernel/unprivileged_bpf_disabled") == "0", "kernel.unprivileged_bpf_disabled is set"),
}
_NEVER = {
    "P29": "the kernel refuses them as well; P104 shows that the filter does",
    "P98": "it would take a host that runs what it finds",
}


def proofs_for(facts: Mapping[str, Any], ids: Sequence[str]) -> tuple[list[Proof], dict[str, str]]:
    """The proofs that this host can give, and the probes among `ids` without one, each with the reason."""
    impossible = {id: why for id, (possible, why) in _IF.items() if not possible()}
    if not facts["addresses"]:
        impossible |= dict.fromkeys(("P52", "P53", "P54"), "this host has no network to be reached")
    proofs = []
    for proof in all_proofs():
        kept = tuple(id for id in proof.should_fire if id in ids and id not in impossible)
        proofs.append(Proof(proof.setting, kept))
    covered = {id for proof in proofs for id in proof.should_fire}
    reasons = {**_NEVER, **impossible}
    return proofs, {id: reasons.get(id, "there is no switch for its control") for id in ids if id not in covered}
