"""The layer as a command of a recipe finds it: writable for the box's user, whom nothing of it belongs to.

Owns: `with_skeleton`, `tops_of`.
Invariant: what the box sees is the layer, and what is laid above it for the command's sake shows nothing
that the layer does not.
Must not know: boxes, what became of the command.

The box's user owns nothing of the layer, so it could change nothing in it. Therefore a *skeleton* lies between the
layer and the changes: the layer's folders, empty, owned by that user, and its small files of /etc, which are often
appended to. Of the host's own /usr, which holds tens of thousands, only the upper folders: what is deeper can be
hidden or replaced, not changed.
"""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from pathlib import Path

from practicum.records.tree import digest_of
from practicum.sandboxes.layering import stack
from practicum.sandboxes.layering.deltas import folder_for
from practicum.sandboxes.layers import Layer, LayerCache

_NEW = ("/app", "/data", "/home", "/mnt", "/opt", "/root", "/run", "/srv", "/var", "/workspace")
_NOT_KEPT = ("/tmp", "/dev", "/proc", "/sys")
_SMALL = 256 << 10
_DEPTH_OF_USR, _ANY_DEPTH = 2, 1000


def tops_of(layer: Layer) -> list[str]:
    """Top folders that a command may change: those of the layer, and the usual ones that it lacks."""
    linked = {place for _, place in layer.links}
    own = {"/" + place.split("/")[1] for place in layer.parts}
    workdir = "/" + layer.resolve(layer.info.get("workdir", "/")).split("/")[1]
    usual = {place for place in (*_NEW, workdir) if place != "/"} - linked
    files = {place for place in layer.parts if not layer.folders_at(place)}
    return sorted((own | usual) - files - set(_NOT_KEPT))


def with_skeleton(cache: LayerCache, layer: Layer, tops: list[str], folder: Path, user: int) -> Layer:
    """`layer` with its folders made the user's, and parts within other parts made one with them."""
    parts: dict[str, tuple[str, ...]] = {}
    for place in tops:
        target = folder_for(folder, place)
        target.mkdir(parents=True)
        below = layer.parts.get(place, ())
        foreign = any(not Path(part).is_relative_to(cache.root) for part in below)
        _lay_folders(below, target, files=place == "/etc", depth=_DEPTH_OF_USR if foreign else _ANY_DEPTH)
        inner = {
            other[len(place) + 1 :]: stack for other, stack in layer.parts.items() if other.startswith(place + "/")
        }
        for name, covering in sorted(inner.items()):
            shutil.rmtree(target / name, ignore_errors=True)
            (target / name).mkdir(parents=True)
            _lay_folders(covering, target / name, files=False, depth=_ANY_DEPTH)
        _give(target, user)
        parts[place] = (str(target), *([_cover(cache, inner)] if inner else []), *below)
    files = {place: folders for place, folders in layer.parts.items() if not layer.folders_at(place)}
    digest = f"{layer.digest}+{uuid.uuid4().hex}"  # its folders are this build's own
    return Layer(layer.name, digest, dict(sorted((parts | files).items())), layer.links, layer.env, layer.info)


def _cover(cache: LayerCache, inner: dict[str, tuple[str, ...]]) -> str:
    """Parts within another part, as one folder to be stacked above that. Kept, since many commands need the same."""

    def build(folder: Path) -> None:
        for name, covering in sorted(inner.items()):
            (folder / name).mkdir(parents=True, exist_ok=True)
            stack.merge(covering, folder / name)
            stack.make_opaque(folder / name)

    key = digest_of([[name, list(covering)] for name, covering in sorted(inner.items())])
    return str(cache.shelf.take("layers", f"cover-{key[:16]}", build))


def _lay_folders(below: tuple[str, ...], target: Path, *, files: bool, depth: int) -> None:
    """The folders that a stack shows, down to a depth; with `files`, its small files too."""
    if depth == 0:
        return
    names: dict[str, bool] = {}  # name → a folder in one of them at least
    for folder in below:
        with os.scandir(folder) as found:
            for entry in found:
                names[entry.name] = names.get(entry.name, False) or entry.is_dir(follow_symlinks=False)
    for name, may_be_folder in names.items():
        if not may_be_folder and not files:
            continue
        found_there = stack.at(below, name) if len(below) > 1 or not may_be_folder else (f"{below[0]}/{name}",)
        if not found_there:
            continue
        status = os.lstat(found_there[0])
        if stat.S_ISDIR(status.st_mode):
            (target / name).mkdir()
            _lay_folders(found_there, target / name, files=files, depth=depth - 1)
        elif files and stat.S_ISREG(status.st_mode) and status.st_size <= _SMALL:
            shutil.copyfile(found_there[0], target / name)
            (target / name).chmod(0o755 if status.st_mode & 0o111 else 0o644)


def _give(folder: Path, user: int) -> None:
    for place, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            path = os.path.join(place, name)  # noqa: PTH118
            os.chown(path, user, user, follow_symlinks=False)
            if not os.path.islink(path) and os.path.isfile(path):  # noqa: PTH113, PTH114
                os.chmod(path, os.lstat(path).st_mode | 0o200)  # noqa: PTH101
