"""Root file systems of boxes, and other read-only folders, by content.

Owns: `LayerCache`, `Layer`, the cache's place and modes.
Invariant: a box needs nothing outside the system's /usr and this cache; what is in the cache is named by its
content, readable by everybody, written by nobody, and appears whole or not at all.
Must not know: bubblewrap, tasks.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from practicum.errors import ConfigError, CreateFailed
from practicum.records.tree import Tree, check_path, tree_digest
from practicum.sandboxes import python_layer

INSIDE = "/opt/practicum"


@dataclass(frozen=True, slots=True)
class Layer:
    """A root file system. `binds` are (source on the host, place in the box), read-only, in order.

    `links` are (target, place) symbolic links. `env` is the base environment of commands, `agent` the argv of
    the box's first process. `info` is what to record about it.
    """

    name: str
    digest: str
    binds: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    env: dict[str, str]
    agent: tuple[str, ...]
    info: dict[str, str] = field(default_factory=dict)


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
        self._layers: dict[str, Layer] = {}
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

    def layer(self, name: str) -> Layer:
        """The layer of that name, made on first use; `CreateFailed` if there is none or it cannot be made."""
        if name not in self._layers:
            if name != "python":
                raise CreateFailed(f"there is no layer named {name!r}", fix='use layer = "python"')
            plan = python_layer.plan(self._system_pythons)
            folder = self._once("layers", f"python-{plan.digest}", plan.build)
            self._layers[name] = self._python(folder, plan)
        return self._layers[name]

    def layer_info(self, name: str) -> dict[str, str]:
        """Name, digest, interpreter version and origin of a layer, for the record of a run."""
        return dict(self.layer(name).info)

    def _python(self, folder: Path, plan: python_layer.Plan) -> Layer:
        binds = [(str(source), place) for source, place in plan.system_binds]
        binds += [(str(folder), INSIDE), (str(folder / "etc"), "/etc")]
        binds += [(str(folder / name), place) for name, place in plan.covers]
        env = {"PATH": f"{INSIDE}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"} | plan.env
        start = f"import sys; sys.path.append('{INSIDE}/agent'); from inside.agent import main; main()"
        agent = (plan.agent, "-I", "-S", "-E", "-X", "utf8", "-c", start)
        info = {"layer": "python", "digest": plan.digest, **plan.info}
        return Layer("python", plan.digest, tuple(binds), plan.links, env, agent, info)

    def readonly_tree(self, tree: Tree) -> Path:
        """A folder that holds `tree`, for binding into boxes."""

        def build(folder: Path) -> None:
            for path, file in tree.items():
                target = folder / check_path(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.data)
                target.chmod(0o755 if file.mode & 0o111 else 0o644)

        return self._once("trees", tree_digest(tree), build)

    def _once(self, kind: str, name: str, build: Callable[[Path], None]) -> Path:
        """`<root>/<kind>/<name>`, made by `build` in a folder beside it and renamed when complete."""
        target = self.root / kind / name
        if target.is_dir():
            return target
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=".new-"))
        try:
            build(temporary)
            _close_to_writing(temporary)
            try:
                temporary.rename(target)
            except OSError:
                if not target.is_dir():  # otherwise another process made the same
                    raise
        except OSError as error:
            raise CreateFailed(f"{kind[:-1]} {name} cannot be made in {self.root}: {error}") from error
        finally:
            if temporary.exists():
                _open_to_removal(temporary)
                shutil.rmtree(temporary)
        return target


def _close_to_writing(folder: Path) -> None:
    """Folders 0755 (their owner may remove them), files 0444, 0555 where executable, 0111 where unreadable."""
    for place, _, files in os.walk(folder):
        os.chmod(place, 0o755)  # noqa: PTH101
        for name in files:
            path = Path(place, name)
            mode = path.lstat().st_mode
            if not path.is_symlink():
                path.chmod(0o111 if not mode & 0o444 else 0o555 if mode & 0o100 else 0o444)


def _open_to_removal(folder: Path) -> None:
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o755)  # noqa: PTH101
