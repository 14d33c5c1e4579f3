"""Root file systems of boxes, and other read-only folders, by content.

Owns: `LayerCache`, `Layer`, the cache's place and modes.
Invariant: a box needs nothing outside the system's /usr and this cache; what is in the cache is named by what it was
made from, readable by everybody, and appears whole or not at all.
Must not know: runtimes, boxes, tasks.

    <cache>/layers/   python-…, host-…, image-…, step-…    made by one process, used by all
    <cache>/trees/    read-only folders of boxes, by digest of their content
    <cache>/state/    owners, leases, locks, names of images, digests of results
"""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from practicum.errors import ConfigError, CreateFailed
from practicum.records.recipe import Recipe
from practicum.records.tree import Tree, check_path, tree_digest
from practicum.sandboxes import python_layer
from practicum.sandboxes.layering import importing, stack, system
from practicum.sandboxes.layering.flatten import Bounds
from practicum.sandboxes.layering.shelf import Shelf

INSIDE = "/opt/practicum"
_CLOSED = 0o111
_OWN = ("host", "python", "scratch")


@dataclass(frozen=True, slots=True)
class Layer:
    """A root file system.

    `parts` maps places in the box to folders of the host, topmost first, in the order of mounting: one folder is
    bound read-only, several are stacked. `links` are (target, place) symbolic links. `env` is the base environment
    of commands. `info` is what to record about it; `workdir` and `user` there are what its maker meant to start with.
    """

    name: str
    digest: str
    parts: dict[str, tuple[str, ...]]
    links: tuple[tuple[str, str], ...]
    env: dict[str, str]
    info: dict[str, str] = field(default_factory=dict)

    def at(self, path: str) -> tuple[str, ...]:
        """What the layer holds at an absolute path: folders to be stacked, one file or link, or nothing."""
        return stack.folders(self.parts, path)

    def folders_at(self, path: str) -> tuple[str, ...]:
        """The folders that show at `path` when they are stacked; none where it is not a folder."""
        found = self.at(path)
        return found if found and stat.S_ISDIR(os.lstat(found[0]).st_mode) else ()

    def resolve(self, path: str) -> str:
        """`path` with the layer's links followed; it need not exist."""
        return stack.resolve(self.parts, {place: target for target, place in self.links}, path)


def default_root() -> Path:
    """`$PRACTICUM_CACHE`, else /var/cache/practicum for root, else the user's cache folder."""
    named = os.environ.get("PRACTICUM_CACHE")
    if named:
        return Path(named).resolve()
    if os.geteuid() == 0:
        return Path("/var/cache/practicum")
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "practicum"


class LayerCache:
    """A folder with `layers/`, `trees/` and `state/`. Safe to share between processes."""

    def __init__(
        self, root: Path | None = None, *, system_pythons: tuple[str, ...] = python_layer.SYSTEM_PYTHONS
    ) -> None:
        """`system_pythons` are tried in order; where none will do, the running interpreter is copied once."""
        self.root = root if root is not None else default_root()
        self._system_pythons = system_pythons
        self._layers: dict[str | Recipe, Layer] = {}
        try:
            for name in ("layers", "trees", "state"):
                (self.root / name).mkdir(parents=True, exist_ok=True, mode=0o755)
        except OSError as error:
            raise ConfigError(
                f"the cache folder {self.root} cannot be made: {error.strerror}",
                fix="set PRACTICUM_CACHE to a folder that can be written",
            ) from error
        if os.geteuid() == 0:
            self._check_open()
        self.shelf = Shelf(self.root)

    def _check_open(self) -> None:
        """Root's boxes run as another user, who must be able to get here."""
        for folder in (self.root, *self.root.parents):
            if not folder.stat().st_mode & 0o001:
                raise ConfigError(
                    f"the cache folder {self.root} is closed to the sandbox's user: {folder} is not open to others",
                    fix="set PRACTICUM_CACHE to a folder that every user can enter, such as /var/cache/practicum",
                )

    @property
    def state(self) -> Path:
        """Where ownership is recorded."""
        return self.root / "state"

    def names(self) -> list[str]:
        """The layers there are by name: those of this host and the images that were imported."""
        return [*_OWN, *importing.names(self.state)]

    def check(self, layer: str | Recipe) -> None:
        """`CreateFailed` if there is no layer of that name, or none that the recipe could start from."""
        name = layer.base if isinstance(layer, Recipe) else layer
        if name not in self._layers and name not in self.names():
            raise CreateFailed(
                f"there is no layer named {name!r}",
                fix=f"use one of {', '.join(self.names())}; an image is imported from a local archive first",
            )

    def layer(self, layer: str | Recipe) -> Layer:
        """The layer of that name, made on first use; `CreateFailed` if there is none or it cannot be made.

        A recipe is first made by `layering.build.build_layer`, since that takes boxes.
        """
        if layer not in self._layers:
            self.check(layer)
            if isinstance(layer, Recipe):
                raise CreateFailed(f"the layer {layer} has not been built by this process")
            self._layers[layer] = self._named(layer)
        return self._layers[layer]

    def layer_info(self, layer: str | Recipe) -> dict[str, str]:
        """Name, digest, interpreter version and origin of a layer, for the record of a run."""
        return dict(self.layer(layer).info)

    def built(self, recipe: Recipe, layer: Layer) -> None:
        """From now on `layer` is what the recipe makes."""
        self._layers[recipe] = layer

    @contextlib.contextmanager
    def lend(self, layer: Layer) -> Iterator[str]:
        """A name for a layer that nobody else has, for as long as the block lasts."""
        name = f"lent-{uuid.uuid4().hex[:12]}"
        self._layers[name] = layer
        try:
            yield name
        finally:
            del self._layers[name]

    def _named(self, name: str) -> Layer:
        if name == "python":
            plan = python_layer.plan(self._system_pythons)
            folder = self.shelf.take("layers", f"python-{plan.digest[:16]}", lambda new: _sealed(plan.build, new))
            env = {"PATH": f"{INSIDE}/bin:{system.PATH}", "HOME": "/tmp", "LANG": "C.UTF-8"} | plan.env
            return self._system(name, plan.digest, plan.parts(folder), env, plan.info)
        if name == "host":
            host = system.host_plan()
            folder = self.shelf.take("layers", f"host-{host.digest[:16]}", lambda new: _sealed(host.build, new))
            env = {"PATH": system.PATH, "HOME": "/tmp", "LANG": "C.UTF-8"}
            return self._system(name, host.digest, host.parts(folder), env, host.info)
        if name == "scratch":
            env = {"PATH": system.PATH, "HOME": "/tmp"}
            return Layer(
                name, system.SCRATCH, {}, (), env, {"layer": name, "digest": system.SCRATCH, "origin": "empty"}
            )
        return self._image(name)

    def _system(self, name: str, digest: str, parts: stack.Parts, env: dict[str, str], info: dict[str, str]) -> Layer:
        links, _ = system.system_folders()
        return Layer(name, digest, dict(sorted(parts.items())), links, env, {"layer": name, "digest": digest, **info})

    def _image(self, name: str) -> Layer:
        digest = importing.digest_of_name(self.state, name)
        folder = self.shelf.find("layers", f"image-{digest[:16]}")
        if folder is None:
            raise CreateFailed(f"the image {name!r} is no longer in {self.root}", fix="import it again")
        image = importing.read(folder)
        info = {"layer": name, "digest": digest, "origin": "image", **image.info}
        return Layer(name, digest, image.parts, image.links, image.env, info)

    def import_image(self, path: Path, name: str, *, tag: str | None = None, bounds: Bounds | None = None) -> Layer:
        """Make the image in an OCI layout folder, an OCI archive or a `docker save` archive the layer `name`.

        `tag` chooses one of several images. Raises `ConfigError`, before anything is kept, for a name that cannot be
        one, and for an image that is damaged, unsafe, too large, or for another machine.
        """
        if name in _OWN or not importing.NAME.fullmatch(name):
            raise ConfigError(f"an imported image cannot be named {name!r}", fix="choose a name such as org/tool:1.2")
        digest = importing.bring_in(self.shelf, path, tag, bounds or Bounds())
        importing.give_name(self.state, name, digest)
        self._layers.pop(name, None)
        return self.layer(name)

    def forget_image(self, name: str) -> None:
        """Take an imported image's name away; `prune` removes it when nobody has used it for long."""
        self.check(name)
        importing.forget(self.state, name)
        self._layers.pop(name, None)

    def prune(self, keep_days: float) -> list[str]:
        """Remove trees and layers that nobody used for `keep_days` days; what was removed, as `layers/…`.

        What a living process uses stays, and so do images that have a name: they could not be made again from here.
        """
        spare = frozenset(
            f"layers/image-{importing.digest_of_name(self.state, name)[:16]}" for name in importing.names(self.state)
        )
        return self.shelf.prune(keep_days, spare)

    def readonly_tree(self, tree: Tree) -> Path:
        """A folder that holds `tree`, for binding into boxes. A file of mode 0111 can be executed and not be read."""

        def build(folder: Path) -> None:
            for path, file in tree.items():
                target = folder / check_path(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.data)
                target.chmod(file.mode if file.mode == _CLOSED else 0o755 if file.mode & 0o111 else 0o644)
            _close_to_writing(folder)

        return self.shelf.take("trees", tree_digest(tree), build)


def _sealed(build: Callable[[Path], None], folder: Path) -> None:
    build(folder)
    _close_to_writing(folder)


def _close_to_writing(folder: Path) -> None:
    """Folders 0755 (their owner may remove them), files 0444, 0555 where executable, 0111 where unreadable."""
    for place, _, files in os.walk(folder):
        os.chmod(place, 0o755)  # noqa: PTH101
        for name in files:
            path = Path(place, name)
            mode = path.lstat().st_mode
            if not path.is_symlink() and stat.S_IMODE(mode) != _CLOSED:
                path.chmod(0o555 if mode & 0o100 else 0o444)
