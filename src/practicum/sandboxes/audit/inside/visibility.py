"""Probes of what a process of the box can see: namespaces, processes, environment, descriptors.

Invariant: they read, and send no signal but number 0.
Must not know: how the box was made.
"""

import errno
import os
import socket
from functools import partial
from pathlib import Path

from .registry import Facts, Finding, blocked, judge, name_of, opened, opens, probe, unclear

_GROUP = "namespaces"
_SEE = "code sees or signals what is outside its box"
_SECRETS = "code reads secrets"


def _own_namespaces(facts: Facts, *kinds: str) -> Finding:
    """Whether the namespaces of these kinds are others than the host's."""
    seen = []
    for kind in kinds:
        host = facts["namespaces"].get(kind)
        try:
            own = os.readlink(f"/proc/self/ns/{kind}")
        except FileNotFoundError:
            seen.append(f"{kind}: ENOENT")
            continue
        if host is None:
            return unclear(f"the host does not tell its own {kind} namespace")
        if own == host:
            return opened(f"{own} is the host's")
        seen.append(own)
    return blocked(", ".join(seen))


@probe("P01", _GROUP, "look for the host's process namespace", "a namespace of its own", threat=_SEE)
def process_namespace(facts: Facts) -> Finding:
    return _own_namespaces(facts, "pid")


@probe("P02", _GROUP, "look for the host's network namespace", "a namespace of its own", threat="code uses the network")
def network_namespace(facts: Facts) -> Finding:
    return _own_namespaces(facts, "net")


@probe("P03", _GROUP, "look for the host's ipc namespace", "a namespace of its own", threat=_SEE)
def ipc_namespace(facts: Facts) -> Finding:
    return _own_namespaces(facts, "ipc")


@probe("P04", _GROUP, "look for the host's name", "a uts namespace of its own, another name", threat=_SEE)
def uts_namespace(facts: Facts) -> Finding:
    if socket.gethostname() == facts["hostname"]:
        return opened("the name is the host's")
    return _own_namespaces(facts, "uts")


@probe("P05", _GROUP, "look for the host's control-group namespace", "a namespace of its own", threat=_SEE)
def cgroup_namespace(facts: Facts) -> Finding:
    return _own_namespaces(facts, "cgroup")


@probe("P06", _GROUP, "look for the host's user and mount namespaces", "namespaces of its own", threat=_SEE)
def user_and_mount_namespaces(facts: Facts) -> Finding:
    return _own_namespaces(facts, "user", "mnt")


@probe("P07", _GROUP, "find a process of the host in /proc", "only processes of the box are listed", threat=_SEE)
def only_own_processes(facts: Facts) -> Finding:
    token = facts["bystander_token"].encode()
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        if token in words:
            return opened(f"process {pid} is the host's")
    return blocked(f"{len(pids)} processes, none of them the host's")


@probe("P08", _GROUP, "signal a process of the host (signal 0)", "ESRCH or EPERM", threat=_SEE)
def signal_outside(facts: Facts) -> Finding:
    pids = [facts["bystander"], *facts["host_pids"]]
    attempts = [(f"kill({pid}, 0)", partial(os.kill, pid, 0)) for pid in pids]
    # A number may mean a process of the box: only where it is certain that it does not, it says anything.
    own = {int(name) for name in os.listdir("/proc") if name.isdigit()} if not _sees_host(facts) else set()
    return judge(
        [item for item, pid in zip(attempts, pids, strict=True) if pid not in own],
        refusals=(errno.ESRCH, errno.EPERM),
    )


def _sees_host(facts: Facts) -> bool:
    finding: Finding = only_own_processes(facts)
    return finding.status == "open"


@probe("P09", _GROUP, "find a variable of the launcher in any environment", "no process has it", threat=_SECRETS)
def no_host_environment(facts: Facts) -> Finding:
    secrets = [text.encode() for text in facts["secrets"]]
    read = closed = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            text = Path(f"/proc/{name}/environ").read_bytes()
        except PermissionError:
            closed += 1
            continue
        except (FileNotFoundError, ProcessLookupError):
            continue
        read += 1
        if any(secret in text for secret in secrets):
            return opened(f"the environment of process {name} holds it")
    return blocked(f"not in {read} environments, {closed} unreadable")


@probe("P10", _GROUP, "find an open descriptor beyond the streams", "only pipes and /dev/null", threat=_SEE)
def open_descriptors(facts: Facts) -> Finding:
    """The runner adds one pipe for the finding, and the listing itself one descriptor."""
    targets = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            targets[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # that of the listing
            continue
    streams = {fd: target for fd, target in targets.items() if fd <= 2}
    others = sorted(target for fd, target in targets.items() if fd > 2)
    odd = [target for target in streams.values() if not target.startswith(("pipe:", "/dev/null"))]
    odd += others[:-1] if others and others[-1].startswith("pipe:") else others
    return opened(", ".join(odd)) if odd else blocked("pipes and /dev/null only")


@probe(
    "P11",
    _GROUP,
    "look into the first process: memory, descriptors, environment, root",
    "EACCES or EPERM",
    threat="code takes over the agent that serves the host",
)
def first_process_is_closed(facts: Facts) -> Finding:
    base = f"/proc/{facts['first']}"
    links = [(name, partial(os.readlink, f"{base}/{name}")) for name in ("root", "cwd", "exe", "ns/mnt")]
    files = [(name, opens(f"{base}/{name}", os.O_RDONLY)) for name in ("environ", "auxv")]
    descriptors = ("fd", partial(_follow_all, f"{base}/fd"))
    memory = ("mem", opens(f"{base}/mem", os.O_RDWR))
    return judge([memory, descriptors, *files, *links])


def _follow_all(folder: str) -> None:
    """Where any of its links leads. That they are there, and their numbers, is no secret."""
    for name in os.listdir(folder):
        os.readlink(f"{folder}/{name}")


@probe("P12", _GROUP, "reach a controlling terminal", "ENXIO: there is none", threat=_SEE)
def no_terminal(facts: Facts) -> Finding:
    for stream in (0, 1, 2):
        if os.isatty(stream):
            return opened(f"stream {stream} is a terminal")
    try:
        os.close(os.open(facts["terminal"], os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY))
    except OSError as error:
        refused = error.errno in (errno.ENXIO, errno.ENOENT, errno.EACCES, errno.EPERM)
        return (blocked if refused else unclear)(name_of(error.errno or 0))
    return opened("it opens")
