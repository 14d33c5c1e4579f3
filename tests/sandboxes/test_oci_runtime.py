"""OCI runtimes: what they are told, that it says the same as the filter, and boxes that really run by them."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.errors import CreateFailed, UnsupportedControl
from practicum.records.tree import File
from practicum.sandboxes.contract import BoxSpec, CommandResult
from practicum.sandboxes.launch import Mount, sandbox_user
from practicum.sandboxes.layers import Layer, LayerCache
from practicum.sandboxes.native import program_in
from practicum.sandboxes.oci_config import runc_config, runsc_config, seccomp_section
from practicum.sandboxes.oci_runtime import OCI_RUNTIMES, Found, Runc, Runsc, find_program, find_runtime
from practicum.sandboxes.profile import Profile
from practicum.sandboxes.provider import open_provider
from practicum.sandboxes.syscalls import ALLOWED, JUDGED, REFUSED

ALLOW, EPERM, ENOSYS = "allow", errno.EPERM, errno.ENOSYS
USUAL = Profile()
LAYER = Layer("test", "", {}, (("usr/bin", "/bin"), ("x", "/opt/deep/link")), {})
MOUNTS = [
    Mount("/usr", "/usr"),
    Mount("/app", "/hub/p/0", follows=True),
    Mount("/mem", "", writable=True, size=4096, mode=0o1777),
    Mount("/dev/shm", "/hub/p/1", follows=True),
]


def decide(section: dict[str, Any], call: str, arguments: tuple[int, int] = (0, 0)) -> str | int:
    """What an OCI runtime's filter answers: conditions compare all 64 bits under their mask."""
    for entry in section["syscalls"]:
        if call in entry["names"]:
            conditions = entry.get("args", [])
            if all(arguments[c["index"]] & c["value"] == c["valueTwo"] for c in conditions):
                return ALLOW if entry["action"] == "SCMP_ACT_ALLOW" else int(entry["errnoRet"])
    return int(section["defaultErrnoRet"])


def test_section_says_what_the_filter_says() -> None:
    """Every known call is answered as by the assembled filter, with arguments too."""
    section = seccomp_section()
    assert {decide(section, name) for name in ALLOWED} == {ALLOW}
    assert {decide(section, name) for name in REFUSED} == {EPERM}
    assert decide(section, "clone3") == ENOSYS
    assert decide(seccomp_section(missing=False), "clone3") == EPERM
    judged = {
        "clone": [((0x1200011, 0), ALLOW), ((0x10000011, 0), EPERM), ((0x20000, 0), EPERM)],
        "ioctl": [((0, 0x5401), ALLOW), ((0, 0x5412), EPERM), ((0, 0x541C), EPERM), ((0, 1 << 32 | 0x5412), EPERM)],
        "socket": [((1, 0), ALLOW), ((2, 0), ALLOW), ((10, 0), ALLOW), ((16, 0), EPERM), ((17, 0), EPERM)],
        "socketpair": [((1, 0), ALLOW), ((2, 0), EPERM)],
        "personality": [((0, 0), ALLOW), (((1 << 64) - 1, 0), ALLOW), ((0x40000, 0), EPERM)],
        "setpriority": [((0, 0), ALLOW), ((0, 7), ALLOW), ((0, 1), EPERM), ((1, 0), EPERM), ((2, 0), EPERM)],
        "ioprio_set": [((1, 0), ALLOW), ((1, 7), ALLOW), ((1, 1), EPERM), ((0, 0), EPERM), ((3, 0), EPERM)],
    }
    for name in ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"):
        judged[name] = [((0, 0), ALLOW), ((7, 0), ALLOW), ((1, 0), EPERM), ((1 << 32 | 1, 0), EPERM)]
    assert set(judged) | {"clone3"} == set(JUDGED)
    for name, cases in judged.items():
        for arguments, answer in cases:
            assert decide(section, name, arguments) == answer, (name, arguments)


@given(st.integers(0, 2**64 - 1))
def test_all_other_requests_pass(request: int) -> None:
    """Of all requests to a device, the two that type into a terminal are refused, whatever the upper half holds."""
    answer = decide(seccomp_section(), "ioctl", (0, request))
    assert answer == (EPERM if request & 0xFFFFFFFF in (0x5412, 0x541C) else ALLOW)


def test_namespaces_are_opened_by_name_only() -> None:
    """To become another user takes one kind of namespace; the audit's weakening opens all."""
    becoming, weak = seccomp_section(user_namespace=True), seccomp_section(namespaces=True)
    assert decide(becoming, "unshare", (0x10000000, 0)) == ALLOW
    assert decide(becoming, "unshare", (0x20000, 0)) == decide(becoming, "unshare", (0x10020000, 0)) == EPERM
    assert decide(becoming, "clone", (0x10000011, 0)) == EPERM
    assert decide(weak, "unshare", (0x20000, 0)) == decide(weak, "clone", (0x10000011, 0)) == ALLOW


def runc(profile: Profile = USUAL, user: str = "root") -> dict[str, Any]:
    spec = BoxSpec("b", user=user, profile=profile)  # type: ignore[arg-type]
    return runc_config(spec, MOUNTS, profile, ["/.practicum", "agent"], user=64123, dev="/bundle/dev")


def runsc(profile: Profile = USUAL) -> dict[str, Any]:
    mounts = [mount for mount in MOUNTS if not mount.follows]
    return runsc_config(BoxSpec("b", profile=profile), mounts, profile, ["/.practicum", "agent"])


def test_default_configuration_is_closed() -> None:
    """By default all namespaces are new, nothing is held, the root is read-only, and no mount keeps privileges."""
    config = runc()
    process, linux = config["process"], config["linux"]
    kinds = {namespace["type"] for namespace in linux["namespaces"]}
    assert kinds == {"pid", "network", "ipc", "uts", "cgroup", "mount", "user"}
    assert all(set(namespace) == {"type"} for namespace in linux["namespaces"])  # none is joined
    assert linux["uidMappings"] == linux["gidMappings"] == [{"containerID": 0, "hostID": 64123, "size": 1}]
    assert set(map(tuple, process["capabilities"].values())) == {()}
    assert (process["noNewPrivileges"], process["terminal"], process["env"], process["cwd"]) == (True, False, [], "/")
    assert config["root"]["readonly"]
    assert "cgroupsPath" not in linux
    mounts = {mount["destination"]: mount["options"] for mount in config["mounts"]}
    assert all("nosuid" in options for options in mounts.values())
    assert {place for place, options in mounts.items() if "ro" in options or "rro" in options} == {"/dev", "/usr"}
    assert "rslave" in mounts["/app"]
    assert {"mode=1777", "size=4096"} <= set(mounts["/mem"])
    held = runc(user="agent")["process"]["capabilities"]
    assert set(map(tuple, held.values())) == {("CAP_SETFCAP",)}  # which `become` needs, and drops


def test_a_mount_at_the_root_is_the_root(tmp_path: Path) -> None:
    """A root that is mounted for the box is used as it is, and `hold` has nothing to close."""
    runtime = Runc(Found("/usr/sbin/runc", "1.1.5"), tmp_path, sandbox_user(), Path("/box"))
    argv = runtime.argv("b", BoxSpec("b"), LAYER, [Mount("/", "/hub/root"), *MOUNTS[1:]], USUAL)
    assert argv[:3] == ["/box", "hold", "-"]
    config = json.loads((tmp_path / "b/config.json").read_text())
    assert config["root"] == {"path": "/hub/root", "readonly": True}
    assert "/" not in {mount["destination"] for mount in config["mounts"]}


@pytest.mark.parametrize("name", [field.name for field in fields(Profile) if field.name not in ("name", "limits")])
def test_each_weakening_shows_or_is_refused(name: str) -> None:
    """A profile that leaves something out changes what runc is told, or is refused by that name; so with gVisor."""
    weak = replace(Profile(), **{name: False})  # type: ignore[arg-type]
    if name == "new_session":
        with pytest.raises(UnsupportedControl, match=name):
            runc(weak)
    else:
        assert runc(weak) != runc()
    if name.endswith("_namespace") or name in ("new_session", "no_nested_userns", "minimal_dev"):
        with pytest.raises(UnsupportedControl, match=f"`{name}`"):
            runsc(weak)
    else:
        assert runsc(weak) != runsc()


def test_gvisor_refuses_what_it_cannot_show() -> None:
    """Mounts that are to follow, and files of the host that an ordinary user is to write, are refused by place."""
    for mount, user in ((MOUNTS[1], "root"), (Mount("/kept", "/srv", writable=True), "agent")):
        spec = BoxSpec("b", user=user)  # type: ignore[arg-type]
        with pytest.raises(UnsupportedControl, match=mount.place):
            runsc_config(spec, [mount], Profile(), ["x"])
    hidden = runsc_config(BoxSpec("b"), [Mount("/proc/cpuinfo", "/x")], Profile(), ["x"])
    assert [mount["destination"] for mount in hidden["mounts"]] == ["/proc"]  # its kernel draws that itself


def test_a_bundle_is_one_folder_that_goes(tmp_path: Path) -> None:
    """What a box leaves with the runtime is one folder, which no second box of that name takes over, until it goes."""
    runtime = Runc(Found("/usr/sbin/runc", "1.1.5"), tmp_path / "oci", sandbox_user(), Path("/box"))
    argv = runtime.argv("b", BoxSpec("b"), LAYER, MOUNTS, Profile())
    assert argv[:3] == ["/box", "hold", str(tmp_path / "oci/b/rootfs")]
    assert [path.name for path in (tmp_path / "oci").iterdir()] == ["b"]
    assert (tmp_path / "oci/b/rootfs/opt/deep/link").is_symlink()
    assert (tmp_path / "oci/b/dev/shm").is_dir()
    with pytest.raises(CreateFailed, match="box b"):
        runtime.argv("b", BoxSpec("b"), LAYER, MOUNTS, Profile())
    runtime.forget("b")
    runtime.forget("b")
    assert list((tmp_path / "oci").iterdir()) == []


def test_refusals_come_before_anything_is_written(tmp_path: Path) -> None:
    """A control that cannot be had is refused with nothing left behind; so is a runtime that is too old."""
    for runtime in (
        Runc(Found("/runc", "1.1.5"), tmp_path, sandbox_user(), Path("/box")),
        Runsc(Found("/runsc", "release-20240101.0"), tmp_path, sandbox_user(), Path("/box")),
    ):
        with pytest.raises(UnsupportedControl, match="new_session"):
            runtime.argv("b", BoxSpec("b"), LAYER, [], replace(Profile(), new_session=False))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnsupportedControl, match=r"older than 1\.1") as refused:
        Runc(Found("/runc", "1.0.3"), tmp_path, 1, Path("/box"))
    assert "apt-get install runc" in (refused.value.fix or "")


def test_gvisor_is_asked_for_a_platform_it_has(tmp_path: Path) -> None:
    """Old builds are told to use ptrace, newer ones choose for themselves; sockets of the host are opened on demand."""
    old, new = (
        Runsc(Found("/runsc", version), tmp_path / version, sandbox_user(), Path("/box")).argv(
            "b", BoxSpec("b", sockets=sockets), LAYER, [], Profile()
        )
        for version, sockets in (("0.0~20221219.0", {}), ("release-20240401.0", {"/run/s": "/s"}))
    )
    assert ("--platform=ptrace" in old, "--platform=ptrace" in new) == (True, False)
    assert ("--host-uds=open" in old, "--host-uds=open" in new) == (False, True)


def test_unknown_and_missing_runtimes_name_the_fix(tmp_path: Path) -> None:
    """A runtime that is not known, not installed or not what it seems is refused with what to do."""
    with pytest.raises(UnsupportedControl, match="'crun'"):
        find_runtime("crun", tmp_path, 1, Path("/box"))
    with pytest.raises(UnsupportedControl, match="runc is not installed") as refused:
        find_program("runc", str(tmp_path))
    assert "apt-get install runc" in (refused.value.fix or "")
    (tmp_path / "runc").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "runc").chmod(0o755)
    with pytest.raises(UnsupportedControl, match="does not run"):
        find_program("runc", str(tmp_path))


@pytest.fixture(params=OCI_RUNTIMES)
def runtime(request: pytest.FixtureRequest, cache: LayerCache) -> Iterator[Runc | Runsc]:
    """Each runtime that is installed here, which then must work."""
    try:
        find_program(request.param)
    except UnsupportedControl as error:
        pytest.skip(error.message)
    folder = cache.root / "oci"
    yield find_runtime(request.param, folder, sandbox_user(), program_in(cache.root))
    assert list(folder.iterdir()) == []  # neither the trial nor the boxes left anything


def test_boxes_run(cache: LayerCache, runtime: Runc | Runsc) -> None:
    """Boxes run as an ordinary user and as root over nothing, hold nothing, and keep their files to themselves."""

    async def run(user: str) -> dict[str, CommandResult]:
        spec = BoxSpec(f"oci-{user}", user=user, files={"given": File(b"given")})  # type: ignore[arg-type]
        commands = (
            "id -u",
            "grep CapEff /proc/self/status",
            "cat given; echo; echo new > given && cat given && echo x > /tmp/y && cat /tmp/y",
            "echo > /usr/x || echo > /x || echo > /bin/x || echo refused",
            "unshare -U true || unshare -m true || echo refused",
            "cat /proc/1/environ | tr '\\0' '\\n' | grep -v ^HOME= | wc -c",
        )
        async with (
            open_provider(limits_by="rlimit", cache=cache, runtime=runtime.name) as provider,
            provider.create(spec) as box,
        ):
            return {command: await box.run(["sh", "-c", command], timeout_s=30) for command in commands}

    for user, uid in (("agent", b"1000"), ("root", b"0")):
        said = [result.stdout.split() for result in asyncio.run(run(user)).values()]
        assert said == [
            [uid],
            [b"CapEff:", b"0" * 16],
            [b"given", b"new", b"x"],
            [b"refused"],
            [b"refused"],
            [b"0"],
        ]
