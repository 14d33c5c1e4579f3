"""Recipes become layers: each step once, by what it starts from and what it says.

Owns: `build_layer`, the key of a step, the steps that need no box.
Invariant: a step's key covers the layer before, the instruction and all copied content, so the same recipe has the same
digest on any day; what was built before is used, whoever built it.
Must not know: how a command is run in a box (`running`), how layers are kept (`shelf`).
"""

from __future__ import annotations

import asyncio
import stat
import string
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from practicum.errors import CreateFailed
from practicum.records.recipe import Copy, Env, Recipe, Requirements, Run, User, Workdir
from practicum.records.tree import File, check_path, digest_of
from practicum.sandboxes.contract import SandboxProvider
from practicum.sandboxes.layering import stack
from practicum.sandboxes.layering.content import settle
from practicum.sandboxes.layering.deltas import folder_for, over, write_record
from practicum.sandboxes.layering.running import BuildLimits, run_step
from practicum.sandboxes.layering.shelf import LOCK_S
from practicum.sandboxes.layering.wheels import Target, compile_packages, install
from practicum.sandboxes.layers import Layer, LayerCache

SCHEMA = 1
_PACKAGES = "/opt/packages"  # where programs of locked packages are, in its folder bin
_HIDDEN = ("/proc", "/dev", "/sys", "/tmp")  # each box has its own
_Make = Callable[[Path], Awaitable[None]]


async def build_layer(
    cache: LayerCache, provider: SandboxProvider, recipe: Recipe, limits: BuildLimits | None = None
) -> Layer:
    """The layer that `recipe` makes, from the cache where it can be had; `provider` must use the same cache.

    Raises `CreateFailed` that names the step, and shows what it printed, where one fails.
    """
    cache.check(recipe)
    layer = cache.layer(recipe.base)
    for step in recipe.steps:
        key = digest_of(["step", SCHEMA, layer.digest, step.content])
        if isinstance(step, Env):
            layer = _with(layer, key, env=_expand(step, layer.env))
        elif isinstance(step, User):
            layer = _with(layer, key, info={"user": step.name})
        else:
            layer = await _built(cache, provider, layer, step, key, limits or BuildLimits())
    layer = Layer(str(recipe), layer.digest, layer.parts, layer.links, layer.env, layer.info | {"layer": str(recipe)})
    cache.built(recipe, layer)
    return layer


def _with(layer: Layer, key: str, *, env: dict[str, str] | None = None, info: dict[str, str] | None = None) -> Layer:
    """`layer` with other settings and the same files."""
    said = layer.info | {"digest": key} | (info or {})
    return Layer(layer.name, key, layer.parts, layer.links, layer.env | (env or {}), said)


def _expand(step: Env, base: dict[str, str]) -> dict[str, str]:
    known: dict[str, Any] = defaultdict(str, base)
    return {name: string.Template(value).substitute(known) for name, value in step.values}


async def _built(
    cache: LayerCache,
    provider: SandboxProvider,
    layer: Layer,
    step: Workdir | Copy | Requirements | Run,
    key: str,
    limits: BuildLimits,
) -> Layer:
    """The layer after a step that changes files."""

    async def make(delta: Path) -> None:
        if isinstance(step, Run):
            places, notes = await run_step(cache, provider, layer, step, delta, limits)
            await asyncio.to_thread(write_record, delta, cache.state, key, places=places, notes=notes)
        else:
            await asyncio.to_thread(_lay, cache, layer, step, delta, key)

    folder = await _once(cache, f"step-{key[:16]}", make)
    after = over(layer, folder, key)
    return _with(after, key, info={"workdir": layer.resolve(step.path)}) if isinstance(step, Workdir) else after


async def _once(cache: LayerCache, name: str, make: _Make) -> Path:
    """The folder of that name, made by `make` unless it is there or another process makes it meanwhile."""
    deadline = time.monotonic() + LOCK_S
    while (got := cache.shelf.attempt("layers", name)) is None:
        cache.shelf.check("layers", name, deadline)
        await asyncio.sleep(0.05)
    if isinstance(got, Path):
        return got
    with got:
        try:
            await make(got.folder)
        except OSError as error:
            raise CreateFailed(f"layer {name} cannot be made in {cache.root}: {error}") from error
        return cache.shelf.finish("layers", name, got)


def _lay(cache: LayerCache, layer: Layer, step: Workdir | Copy | Requirements, delta: Path, key: str) -> None:
    """A step that needs no box."""
    if isinstance(step, Requirements):
        _lay_packages(cache, layer, step, delta, key)
        return
    files = _placed(layer, step) if isinstance(step, Copy) else {}
    made: list[str | None] = [_lay_file(layer, delta, path, file) for path, file in sorted(files.items())]
    if isinstance(step, Workdir):
        made.append(_lay_folder(layer, delta, step.path))
    places = sorted({place for place in made if place})
    for place in places:
        folder = folder_for(delta, place)
        if folder.is_dir():
            if place not in layer.parts:
                stack.mount_points(layer.parts, place, folder)
            settle(str(folder))
    write_record(delta, cache.state, key, places=places)


def _placed(layer: Layer, step: Copy) -> dict[str, File]:
    """Absolute path → file. A single file goes into its target where that is a folder already."""
    target = step.target.rstrip("/")
    if not step.alone:
        return {f"{target}/{check_path(name)}": file for name, file in step.files.items()}
    ((name, file),) = step.files.items()
    into = layer.folders_at(layer.resolve(target or "/")) or not target
    return {f"{target}/{check_path(name)}" if into else target: file}


def _lay_file(layer: Layer, delta: Path, path: str, file: File) -> str:
    """Write a file into the delta; the place it belongs to."""
    folder, _, name = path.rpartition("/")
    real = f"{layer.resolve(folder or '/').rstrip('/')}/{name}"
    if layer.folders_at(real):
        raise CreateFailed(f"COPY cannot put a file at {path}, where the layer has a folder")
    _check_above(layer, real)
    place = _place_of(layer, real)
    target = folder_for(delta, place) / real[len(place) + 1 :] if real != place else folder_for(delta, place)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(file.data)
    target.chmod(0o755 if file.mode & 0o111 else 0o644)
    return place


def _lay_folder(layer: Layer, delta: Path, path: str) -> str | None:
    """Make the folder at `path` unless the layer has it; the place it belongs to, if made."""
    real = layer.resolve(path)
    if real == "/" or layer.folders_at(real) or any(real == own or real.startswith(own + "/") for own in _HIDDEN):
        return None
    _check_above(layer, f"{real}/.")
    place = _place_of(layer, real)
    (folder_for(delta, place) / real[len(place) + 1 :]).mkdir(parents=True, exist_ok=True)
    return place


def _check_above(layer: Layer, path: str) -> None:
    """`CreateFailed` where something other than a folder stands in the way."""
    parts = path.split("/")
    for count in range(2, len(parts)):
        above = "/".join(parts[:count])
        found = layer.at(above)
        if found and not stat.S_ISDIR(Path(found[0]).lstat().st_mode):
            raise CreateFailed(f"{path}: {above} is a file in the layer, not a folder")


def _place_of(layer: Layer, path: str) -> str:
    """The place of the layer that `path` is in, or the top folder of it, which is a new place then."""
    if any(path == own or path.startswith(own + "/") for own in _HIDDEN):
        raise CreateFailed(f"nothing can be put at {path}: each box has its own", fix="copy it to another folder")
    return stack.part_of(layer.parts, path) or "/" + path.split("/")[1]


def _lay_packages(cache: LayerCache, layer: Layer, step: Requirements, delta: Path, key: str) -> None:
    """The layer's folder of packages anew, with those of the lock in it."""
    site, version, program = (layer.info.get(name) for name in ("site", "python", "interpreter"))
    if not (site and version and program):
        raise CreateFailed(
            f"{step.where}: a lock needs a layer that comes from `python`, not {layer.name!r}",
            fix="copy the wheels and run the image's own pip with --no-index",
        )
    packages, programs = folder_for(delta, site), folder_for(delta, _PACKAGES)
    packages.mkdir()
    programs.mkdir()
    stack.merge(layer.parts[site], packages)
    for path in packages.rglob("*"):  # what is sealed would refuse to be replaced
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o200)
    if earlier := layer.at(f"{_PACKAGES}/bin"):
        (packages / "bin").mkdir()
        stack.merge(earlier, packages / "bin")
    install(step.packages, Target(version, program), packages, step.where)
    if (packages / "bin").is_dir():
        (packages / "bin").rename(programs / "bin")
    compile_packages(packages, site, program if layer.info.get("origin") == "system" else sys.executable)
    for folder in (packages, programs):
        settle(str(folder))
    env = {} if f"{_PACKAGES}/bin" in layer.env.get("PATH", "") else {"PATH": f"{_PACKAGES}/bin:{layer.env['PATH']}"}
    write_record(delta, cache.state, key, places=[site, _PACKAGES], replaces=(site, _PACKAGES), env=env)
