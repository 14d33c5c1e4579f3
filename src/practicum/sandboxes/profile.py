"""What is hardened about a box.

Owns: `Profile`.
Invariant: everything is on by default; only `practicum sandbox audit` switches something off, to prove that its
probes would notice.
Must not know: how a runtime honours it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """One switch for each control of a box. `name` is what reports call the profile.

    The namespaces are the box's own; the user and mount namespaces are always. `no_nested_userns` forbids further
    user namespaces inside. `clear_environment` starts the first process without the launcher's variables.
    `readonly_root` leaves only the workspace and the scratch folders writable. `minimal_dev` gives a /dev of a few
    harmless devices instead of the host's. `own_filesystem` hides the host's root, which is otherwise at /host,
    read-only. `limits` joins the box's control groups and sets limits for each process. `new_session` takes the
    controlling terminal away.
    """

    name: str = "default"
    pid_namespace: bool = True
    net_namespace: bool = True
    ipc_namespace: bool = True
    uts_namespace: bool = True
    cgroup_namespace: bool = True
    no_nested_userns: bool = True
    drop_capabilities: bool = True
    seccomp: bool = True
    clear_environment: bool = True
    readonly_root: bool = True
    minimal_dev: bool = True
    own_filesystem: bool = True
    limits: bool = True
    new_session: bool = True
