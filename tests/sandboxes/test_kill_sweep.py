"""`kill -9` at every step of boxes' lives leaves nothing: no process, mount, control group, record or file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from practicum.sandboxes.janitor import reconcile
from practicum.sandboxes.layers import LayerCache

SWEEPER = Path(__file__).with_name("sweeper.py")
MARK = b"86397."
KEPT = {"owners", "leases", "locks", "prune.lock", "images", "results", "boxes"}  # with what is about layers


@dataclass(frozen=True)
class Swept:
    """What a sweep said: facts by step of the owners that were killed or lived on, and exit statuses by step."""

    owners: set[int]
    killed: dict[int, str]
    lived: dict[int, dict[str, Any]]
    statuses: dict[int, int]
    errors: str


def sweep(cache: LayerCache, limits_by: str, what: str, every: int = 1) -> Swept:
    env = {"CACHE": str(cache.root), "LIMITS_BY": limits_by, "WHAT": what, "EVERY": str(every)}
    done = subprocess.run(
        [sys.executable, str(SWEEPER)], env=os.environ | env, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    return Swept(
        {fact["pid"] for fact in facts if "owner" not in fact} | {fact["owner"] for fact in facts if "owner" in fact},
        {fact["step"]: fact["at"] for fact in facts if "at" in fact and "ended" not in fact},
        {fact["step"]: fact for fact in facts if "ended" in fact and fact["step"]},
        {fact["step"]: fact["status"] for fact in facts if "status" in fact},
        done.stderr,
    )


def processes(cache: LayerCache) -> list[str]:
    """Processes of owners, hubs, sidecars and boxes on this cache: by what they were started with or what they see."""
    found = []
    root = str(cache.root).encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            if root in words or MARK in words or cache.root.name.encode() in (entry / "mountinfo").read_bytes():
                found.append(f"process {entry.name}: {words[:80]!r}")
        except OSError:  # it has ended
            continue
    return found


def mounts(cache: LayerCache) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if cache.root.name in line]


def groups(owners: set[int]) -> list[str]:
    names = tuple(f"practicum-{pid}-" for pid in owners)
    return [
        place
        for place, _, _ in os.walk("/sys/fs/cgroup")
        if os.path.basename(place).startswith(names)  # noqa: PTH119
    ]


def records(cache: LayerCache) -> list[Path]:
    return list((cache.state / "owners").glob("*"))


def age_empty(cache: LayerCache) -> None:
    """A record that names no owner is given a minute to do so."""
    for path in records(cache):
        if path.stat().st_size == 0:
            os.utime(path, (0, 0))


def files(cache: LayerCache) -> list[str]:
    state = cache.state
    found = [str(path) for path in records(cache)]
    found += [str(path) for path in state.iterdir() if path.name not in KEPT]
    return found + [str(path) for folder in ("hub", "state/boxes") for path in (cache.root / folder).glob("*")]


def left(cache: LayerCache, swept: Swept) -> list[str]:
    return [*processes(cache), *mounts(cache), *groups(swept.owners), *files(cache)]


def eventually_none(find: Callable[[], list[str]], timeout_s: float = 15.0) -> list[str]:
    """What `find` still finds after that long."""
    deadline = time.monotonic() + timeout_s
    while (found := find()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.fixture(autouse=True)
def nothing_before(cache: LayerCache) -> None:
    """What a failed test left is not this one's."""
    age_empty(cache)
    reconcile(cache.state)


def check_killed(swept: Swept) -> None:
    """Each was killed where it was to be; the number of steps varies by one or two, hence the last ones."""
    last = max(swept.statuses) - 3
    steps = {step: status for step, status in swept.statuses.items() if step <= last}
    assert set(steps.values()) == {-9}, swept.errors
    assert steps.keys() <= swept.killed.keys()
    assert all(fact["ended"] == "in order" for fact in swept.lived.values())


@pytest.mark.parametrize(("limits_by", "every"), [("cgroup-or-rlimit", 1), ("rlimit", 2)])
def test_owner_killed_at_every_step(cache: LayerCache, limits_by: str, every: int) -> None:
    """Whatever an owner was about to do, all is gone soon; what it did before it was watched, at the next start."""
    swept = sweep(cache, limits_by, "owner", every)
    assert len(swept.killed) >= 60 // every
    check_killed(swept)
    unwatched = sum(step <= 6 for step in swept.killed)  # until the sidecar has started
    assert eventually_none(lambda: processes(cache) + mounts(cache)) == []
    assert len(records(cache)) <= unwatched
    age_empty(cache)
    reconcile(cache.state)
    assert eventually_none(lambda: left(cache, swept)) == []


def test_owner_and_sidecar_killed(cache: LayerCache) -> None:
    """With nobody left to clean up, all processes still end at once, and the next start removes the rest."""
    swept = sweep(cache, "cgroup-or-rlimit", "owner-and-sidecar", 2)
    check_killed(swept)
    assert eventually_none(lambda: processes(cache) + mounts(cache)) == []
    assert records(cache)  # of the last ones; each owner that started removed what was left of those before
    age_empty(cache)
    reconcile(cache.state)
    assert left(cache, swept) == []
    assert reconcile(cache.state) == []


@pytest.mark.parametrize(("limits_by", "every"), [("cgroup-or-rlimit", 2), ("rlimit", 3)])
def test_hub_killed_at_every_step(cache: LayerCache, limits_by: str, every: int) -> None:
    """Without its hub no box lives or is made; each call says so at once, and the owner ends in order."""
    swept = sweep(cache, limits_by, "hub", every)
    assert set(swept.statuses.values()) == {0}, swept.errors
    assert left(cache, swept) == []
    hit = {step: fact for step, fact in swept.lived.items() if fact["at"]}
    assert len(hit) >= 45 // every
    for fact in hit.values():
        if fact["after"]:  # it died when the provider was open
            assert fact["after"] == "CreateFailed"
            assert fact["ended"] in ("in order", "CreateFailed", "SandboxDied", "HubEnded", "SandboxError"), fact
        else:
            assert fact["ended"] == "in order" or fact["ended"].endswith("at the end"), fact
    assert sum(fact["after"] == "CreateFailed" for fact in hit.values()) >= 30 // every
    assert any(fact["ended"] == "SandboxDied" for fact in hit.values())
