"""RUN: a command of a recipe in a box, and what it changed.

Owns: `run_step`, `BuildLimits`.
Invariant: a recipe's command runs in a box and nowhere else, without network; what it leaves behind is taken when the
box is dead, links not followed, and only what differs from the layer before is kept.
Must not know: keys, how layers are kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from practicum.errors import CreateFailed, LayerFailed, SandboxError
from practicum.records.recipe import Run
from practicum.records.task import MIB, Limits
from practicum.sandboxes.contract import BoxSpec, CommandResult, SandboxProvider
from practicum.sandboxes.layering import stack
from practicum.sandboxes.layering.content import TIME, drop_unchanged, settle
from practicum.sandboxes.layering.deltas import folder_for
from practicum.sandboxes.layering.shelf import remove
from practicum.sandboxes.layering.skeleton import tops_of, with_skeleton
from practicum.sandboxes.layers import Layer, LayerCache

_SHOWN = 4000
_LOOK_S = 5.0
_NETWORK = re.compile(r"name resolution|resolve host|Network is unreachable|Could not resolve|getaddrinfo|bad address")


@dataclass(frozen=True, slots=True)
class BuildLimits:
    """What one RUN may use. `disk_bytes` bounds what it leaves behind."""

    command_s: float = 900.0
    memory_bytes: int = 4096 * MIB
    pids: int = 512
    cpus: float = 2.0
    disk_bytes: int = 8192 * MIB


async def run_step(
    cache: LayerCache, provider: SandboxProvider, layer: Layer, step: Run, delta: Path, limits: BuildLimits
) -> tuple[list[str], list[str]]:
    """Carry out `step` on `layer`; the places that changed, whose changes are in `delta` then, and notes."""
    user = _box_user()
    tops = tops_of(layer)
    with _scratch(cache) as scratch:
        lent = await asyncio.to_thread(with_skeleton, cache, layer, tops, scratch / "skeleton", user)
        keep = {}
        for place in tops:
            folder = folder_for(scratch / "keep", place)
            folder.mkdir(parents=True)
            os.chown(folder, user, user)
            keep[place] = str(folder)
        with cache.lend(lent) as name:
            result = await _run(provider, name, layer, step, keep, limits)
        if result.exit_code:
            raise _failed(step, result)
        return await asyncio.to_thread(_collect, layer, keep, delta)


def _box_user() -> int:
    from practicum.sandboxes.launch import sandbox_user

    return sandbox_user()


@contextlib.contextmanager
def _scratch(cache: LayerCache) -> Iterator[Path]:
    """A folder beside the layers, so that what is kept can be moved there. Its name says who made it, for `prune`."""
    folder = cache.shelf.scratch()
    try:
        yield folder
    finally:
        remove(folder)


async def _run(
    provider: SandboxProvider, name: str, layer: Layer, step: Run, keep: dict[str, str], limits: BuildLimits
) -> CommandResult:
    spec = BoxSpec(
        create_id=f"build-{uuid.uuid4().hex[:12]}",
        layer=name,
        workdir="/tmp",
        user="root" if layer.info.get("user", "root").split(":")[0] in ("root", "0") else "agent",
        limits=Limits(
            cpus=limits.cpus,
            memory_bytes=limits.memory_bytes,
            pids=limits.pids,
            disk_bytes=limits.disk_bytes,
            output_bytes=MIB,
            command_s=limits.command_s,
            episode_s=limits.command_s,
        ),
        keep=keep,
    )
    env = dict(step.args) | layer.env | {"SOURCE_DATE_EPOCH": str(TIME)}
    cwd = layer.info.get("workdir", "/")
    try:
        async with provider.create(spec) as box, _bounded(keep, limits.disk_bytes, step):
            return await box.run(step.command, timeout_s=limits.command_s, env=env, cwd=cwd)
    except CreateFailed:
        raise
    except SandboxError as error:
        raise CreateFailed(f"{step.where}: the box of the command ended: {error.message}", fix=error.fix) from error


@contextlib.asynccontextmanager
async def _bounded(keep: dict[str, str], most: int, step: Run) -> AsyncIterator[None]:
    """End the block when what is kept grows beyond `most` bytes: it is on the host's disk, which has no other bound."""
    over = False
    task = asyncio.current_task()
    assert task is not None

    async def watch() -> None:
        nonlocal over
        while True:
            await asyncio.sleep(_LOOK_S)
            if await asyncio.to_thread(_size, list(keep.values())) > most:
                over = True
                task.cancel()
                return

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if over and task.uncancel() == 0:
            raise CreateFailed(f"{step.where}: the command leaves more than {most} bytes behind") from None
        raise
    finally:
        watching.cancel()


def _size(folders: list[str]) -> int:
    total = 0
    for folder in folders:
        for place, _, files in os.walk(folder):
            for name in files:
                with contextlib.suppress(OSError):  # removed meanwhile
                    total += os.lstat(f"{place}/{name}").st_blocks * 512
    return total


def _failed(step: Run, result: CommandResult) -> LayerFailed:
    said = (result.stdout + result.stderr).decode("utf-8", "replace").strip()
    why = "did not end in time" if result.timed_out else f"failed with exit code {result.exit_code}"
    if result.oom_killed:
        why += " (out of memory)"
    fix = None
    if _NETWORK.search(said) or re.search(r"\b(pip|apt|apt-get|apk|npm|curl|wget|git clone)\b", " ".join(step.command)):
        fix = "commands have no network: COPY what they need, or `RUN pip install -r FILE` with a lock that has hashes"
    elif "Read-only file system" in said:
        fix = "a new top folder is made by WORKDIR or COPY before it is written to"
    return LayerFailed(f"{step.where}: the command {why}\n{said[-_SHOWN:]}".rstrip(), fix=fix)


def _collect(layer: Layer, keep: dict[str, str], delta: Path) -> tuple[list[str], list[str]]:
    """Move what the box changed to `delta`, without what it left as it was."""
    places: list[str] = []
    notes: list[str] = []
    for top, folder in sorted(keep.items()):
        upper = f"{folder}/upper"
        if not os.path.isdir(upper):  # noqa: PTH112
            continue
        dropped = settle(upper)
        if dropped:
            notes.append(f"left out below {top}, since no box could use them: {', '.join(dropped[:20])}")
        inner = sorted((place for place in layer.parts if place.startswith(top + "/")), key=len, reverse=True)
        for place in inner:
            places += _take(_cut_out(upper, place[len(top) + 1 :]), place, layer, delta)
        places += _take(upper, top, layer, delta)
    return sorted(places), notes


def _cut_out(upper: str, relative: str) -> str:
    """The changes of a place within `upper`, taken out of it; hiding all below where the place itself was removed.

    What other places are mounted on must remain, even where the command removed it with all around it.
    """
    out = tempfile.mkdtemp(dir=os.path.dirname(upper))  # noqa: PTH120
    path, gone = upper, False
    for part in relative.split("/"):
        path = f"{path}/{part}"
        if not os.path.lexists(path):
            continue
        if stat.S_ISDIR(os.lstat(path).st_mode):
            gone = gone or stack.is_opaque(path)
        else:  # hidden, or something else in its place
            os.unlink(path)  # noqa: PTH108
            gone = True
    if os.path.lexists(path):
        os.rmdir(out)  # noqa: PTH106
        os.rename(path, out)  # noqa: PTH104
    if gone:
        Path(path).mkdir(parents=True, exist_ok=True)
        stack.make_opaque(out)
    return out


def _take(folder: str, place: str, layer: Layer, delta: Path) -> list[str]:
    """Keep in `delta` what differs from the layer; the place, if anything does."""
    below = layer.parts.get(place, ())
    hides = bool(below) and stack.is_opaque(folder)
    if drop_unchanged(folder, () if hides else below) and not hides:
        return []
    target = folder_for(delta, place)
    os.rename(folder, target)  # noqa: PTH104
    if place not in layer.parts:
        stack.mount_points(layer.parts, place, target)
    settle(str(target))
    return [place]
