"""Images among the layers: brought in from disk, kept flat, known by name.

Owns: `bring_in`, `read`, the names of images and what is written about them.
Invariant: an image is kept whole or not at all, named by the hash of its configuration, which covers all its content;
so the same image has the same digest whatever form it came in.
Must not know: how archives are read or applied.
"""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from practicum.errors import ConfigError
from practicum.sandboxes.layering.content import result_digest
from practicum.sandboxes.layering.flatten import Bounds, Flattener
from practicum.sandboxes.layering.images import ImageFile, open_image
from practicum.sandboxes.layering.shelf import Shelf

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,199}")
_NOT_OURS = frozenset({"proc", "dev", "sys", "tmp"})  # each box has its own
_RECORD = "record.json"


@dataclass(frozen=True, slots=True)
class Imported:
    """A flattened image: what of it goes where in a box."""

    parts: dict[str, tuple[str, ...]]
    links: tuple[tuple[str, str], ...]
    env: dict[str, str]
    info: dict[str, str]


def bring_in(shelf: Shelf, path: Path, tag: str | None, bounds: Bounds) -> str:
    """Flatten the image at `path` unless it is there already; its digest."""
    with open_image(path, tag, bounds.total_bytes) as image:

        def build(folder: Path) -> None:
            root = folder / "root"
            root.mkdir()
            flat = Flattener(root, image.name, bounds)
            for archive in image.layers(2 * bounds.total_bytes):
                flat.apply(archive)
            flat.finish()
            (folder / _RECORD).write_text(json.dumps(_record(image, root, flat.left_out), indent=1))

        shelf.take("layers", f"image-{image.digest[:16]}", build)
        return image.digest


def _record(image: ImageFile, root: Path, left_out: list[str]) -> dict[str, Any]:
    found = image.config.get("config") or {}
    env = dict(item.split("=", 1) for item in found.get("Env") or [] if "=" in item)
    return {
        "digest": image.digest,
        "result": result_digest({"": str(root)}),
        "env": {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp"} | env,
        "workdir": found.get("WorkingDir") or "/",
        "user": found.get("User") or "root",
        "entrypoint": found.get("Entrypoint") or [],
        "command": found.get("Cmd") or [],
        "left_out": left_out,
    }


def read(folder: Path) -> Imported:
    """What was kept of an image."""
    record = json.loads((folder / _RECORD).read_text())
    parts: dict[str, tuple[str, ...]] = {}
    links: list[tuple[str, str]] = []
    for path in sorted((folder / "root").iterdir()):
        if path.name in _NOT_OURS:
            continue
        if stat.S_ISLNK(path.lstat().st_mode):
            links.append((os.readlink(path), f"/{path.name}"))  # noqa: PTH115
        else:
            parts[f"/{path.name}"] = (str(path),)
    info = {"result": record["result"], "workdir": record["workdir"], "user": record["user"]}
    for key in ("entrypoint", "command"):
        if record[key]:
            info[key] = json.dumps(record[key])
    if record["left_out"]:
        info["note"] = f"left out, since no box could use them: {', '.join(record['left_out'])}"
    return Imported(parts, tuple(links), dict(record["env"]), info)


def _folder(state: Path) -> Path:
    return state / "images"


def names(state: Path) -> list[str]:
    """The names of images, sorted."""
    return sorted(unquote(path.name) for path in _folder(state).glob("[!.]*"))


def digest_of_name(state: Path, name: str) -> str:
    return (_folder(state) / quote(name, safe="")).read_text()


def give_name(state: Path, name: str, digest: str) -> None:
    """`name` means that image from now on, whatever it meant before."""
    _folder(state).mkdir(exist_ok=True, mode=0o755)
    temporary = _folder(state) / f".{os.getpid()}-{quote(name, safe='')}"
    try:
        temporary.write_text(digest)
        temporary.replace(_folder(state) / quote(name, safe=""))
    except OSError as error:
        raise ConfigError(f"the image cannot be named {name!r}: {error.strerror}") from error


def forget(state: Path, name: str) -> None:
    (_folder(state) / quote(name, safe="")).unlink(missing_ok=True)
