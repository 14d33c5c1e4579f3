"""Probes of the limits of disk: each takes a little more than its box may have, and says how much it got.

Invariant: whatever the limits, none takes more than the small excess that it names; all of it is in the box's own
writable places and goes with the box.
Must not know: which mechanism limits.
"""

import errno
import os
import resource
import signal
import time
from functools import partial
from pathlib import Path

from .registry import Facts, Finding, blocked, name_of, opened, probe, unclear
from .resources import FULL, GROUP, MIB, SMALL

_DISK = "code fills the disk"


def _write_until_full(folder: str, most: int) -> tuple[int, int]:
    """Bytes written in files of 1 MiB below `folder`, and the error that ended it (0 for none)."""
    for taken in range(most // MIB):
        fd = os.open(f"{folder}/fill-{taken}", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            done = os.write(fd, bytes(MIB))
        except OSError as error:
            return taken * MIB, error.errno or 0
        finally:
            os.close(fd)
        if done < MIB:
            return taken * MIB + done, errno.ENOSPC
    return most, 0


@probe(
    "P66",
    GROUP,
    "make files without end",
    "ENOSPC, ENOMEM, or killed",
    threat=_DISK,
    limits=SMALL | {"memory_bytes": 40 * MIB, "disk_bytes": 32 * MIB},
    needs=("memory-limit",),
    kills=True,
)
def inodes(facts: Facts) -> Finding:
    most, folder = 50_000, os.open(facts["places"][0], os.O_RDONLY | os.O_DIRECTORY)
    for count in range(most):
        try:
            os.mknod(f"i{count}", dir_fd=folder)
        except OSError as error:
            return (blocked if error.errno in FULL else unclear)(f"{name_of(error.errno or 0)} after {count}")
    return opened(f"{most} empty files")


@probe("P67", GROUP, "fill a writable place", "ENOSPC at the limit", threat=_DISK, limits=SMALL, needs=("disk-limit",))
def disk(facts: Facts) -> Finding:
    allowed = facts["limits"]["disk_bytes"]
    taken, error = _write_until_full(facts["places"][0], allowed + 4 * MIB)
    if not error:
        return opened(f"{taken // MIB} MiB, {allowed // MIB} allowed")
    return (blocked if error in FULL else unclear)(f"{name_of(error)} after {taken // MIB} MiB")


@probe(
    "P68",
    GROUP,
    "fill all writable places together",
    "the limit holds for their sum",
    threat=_DISK,
    limits=SMALL,
    needs=("disk-limit", "copy-on-write"),
)
def all_disks(facts: Facts) -> Finding:
    allowed = facts["limits"]["disk_bytes"]
    taken = [_write_until_full(place, allowed + 4 * MIB)[0] for place in facts["places"]]
    total = f"{sum(taken) / MIB:.1f} MiB in {', '.join(facts['places'])}, {allowed // MIB} allowed"
    return opened(total) if sum(taken) > allowed else blocked(total)


@probe(
    "P69",
    GROUP,
    "preallocate, and make a file of 1 TiB that is all hole",
    "ENOSPC or EFBIG",
    threat=_DISK,
    limits=SMALL,
    needs=("disk-limit",),
)
def preallocation(facts: Facts) -> Finding:
    allowed, seen = facts["limits"]["disk_bytes"], []
    fd = os.open(f"{facts['places'][0]}/large", os.O_RDWR | os.O_CREAT, 0o600)
    attempts = (
        ("preallocation", partial(os.posix_fallocate, fd, 0, 2 * allowed)),
        ("1 TiB", partial(os.ftruncate, fd, 1 << 40)),
    )
    for name, attempt in attempts:
        try:
            attempt()
        except OSError as error:
            if error.errno not in FULL:
                return unclear(f"{name}: {name_of(error.errno or 0)}")
            seen.append(f"{name}: {name_of(error.errno or 0)}")
        else:
            return opened(f"{name} worked")
    return blocked(", ".join(seen))


@probe(
    "P71",
    GROUP,
    "leave a dump of its memory",
    "none is written, no helper of the host is started",
    threat=_DISK,
    limits=SMALL,
)
def core_dump(facts: Facts) -> Finding:
    """The kernel starts a helper of the host unless the limit is exactly 1, which it takes for "never"."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    helper = facts["core_pattern"].startswith("|")
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    if helper and hard != 1:
        return opened(f"the host pipes dumps to a helper, and the limit of {hard} does not stop that")
    os.chdir(facts["places"][0])
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    left = [path.name for path in Path().glob("core*")]
    if os.WCOREDUMP(status) or left:
        return opened(f"a dump was written ({', '.join(left) or 'elsewhere'})")
    return blocked(f"killed without a dump, the limit is {hard}")
