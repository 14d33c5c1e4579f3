"""The part of a Dockerfile that can be honoured without a Docker daemon.

Owns: `read_dockerfile`, `layer_of_image`.
Invariant: an instruction is either honoured in full or refused by name; nothing is skipped.
Must not know: boxes or how layers are made.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from practicum.errors import TaskError

_FIX = (
    "use `FROM python:3`, `WORKDIR /path` and `COPY workspace/ .` only; or drop the Dockerfile and set `layer` "
    "and `workspace` under [practicum]"
)
_PYTHON_3 = re.compile(r"(?:docker\.io/)?(?:library/)?python(?::3(?:\.(\d+)(?:\.\d+)?)?(?:-(?:slim|[a-z]+))*)?")


@dataclass(frozen=True, slots=True)
class Image:
    """What a Dockerfile says: the layer it starts from, its last WORKDIR, where the workspace is copied."""

    layer: str
    workdir: str | None
    copied_to: str | None


def layer_of_image(image: str, where: str) -> str:
    """The layer that stands for `image`; `TaskError` naming it when there is none."""
    found = _PYTHON_3.fullmatch(image)
    if found is None or (found[1] is not None and int(found[1]) < 11):
        raise TaskError(f"{where}: no layer stands for the image {image!r}", fix=_FIX)
    return "python"


def read_dockerfile(text: str, where: str) -> Image:
    """Honour FROM, WORKDIR and COPY of `workspace`; raise `TaskError` with the line for anything else."""
    layer: str | None = None
    workdir: str | None = None
    copied_to: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        here = f"{where} line {number}"
        name, arguments = words[0].upper(), words[1:]
        if name == "FROM" and layer is None and len(arguments) == 1:
            layer = layer_of_image(arguments[0], here)
        elif name == "WORKDIR" and len(arguments) == 1 and _plain(arguments[0]):
            workdir = posixpath.normpath(posixpath.join(workdir or "/", arguments[0]))
        elif name == "COPY" and len(arguments) == 2 and _is_workspace(arguments[0]) and _plain(arguments[1]):
            if copied_to is not None:
                raise TaskError(f"{here}: a second COPY of the workspace cannot be honoured", fix=_FIX)
            copied_to = posixpath.normpath(posixpath.join(workdir or "/", arguments[1]))
        else:
            raise TaskError(f"{here}: the instruction `{line.strip()}` cannot be honoured here", fix=_FIX)
    if layer is None:
        raise TaskError(f"{where}: there is no FROM", fix=_FIX)
    if copied_to is not None and workdir is not None and copied_to != workdir:
        raise TaskError(f"{where}: the workspace is copied to {copied_to} but WORKDIR ends as {workdir}", fix=_FIX)
    return Image(layer, workdir, copied_to)


def _is_workspace(source: str) -> bool:
    return source.removeprefix("./").rstrip("/") in ("workspace", "workspace/.")


def _plain(argument: str) -> bool:
    """No variable, option, quote or continuation that a daemon would interpret."""
    return re.fullmatch(r"[A-Za-z0-9_./][A-Za-z0-9_./-]*", argument) is not None
