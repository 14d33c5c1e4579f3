"""The recipe: how a root file system is made from a named base, as frozen data.

Owns: `Recipe`, its steps, `Pinned` and the reading of a requirements lock.
Invariant: two recipes with one digest make the same file system from the same base; a lock names exact versions and
the hashes of what may be installed, and nothing else.
Must not know: disks, boxes, where packages come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from practicum.errors import TaskError
from practicum.records.tree import Tree, digest_of, tree_digest

_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[A-Za-z0-9._,\s-]*\])?\s*==\s*([A-Za-z0-9.!+_-]+)\s*(?:;(.*))?")
_HASH = re.compile(r"\s--hash(?:=|\s+)(\S+)")
_FIX = "make the lock with `uv pip compile --generate-hashes` or `pip-compile --generate-hashes`"


@dataclass(frozen=True, slots=True)
class Pinned:
    """One requirement of a lock. `marker` says for which interpreters and systems it counts; empty for all."""

    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Env:
    """Variables for what follows and for the box. In a value `${NAME}` is the base's variable and `$$` a dollar."""

    values: tuple[tuple[str, str], ...]

    @property
    def content(self) -> Any:
        return ["env", [list(pair) for pair in self.values]]


@dataclass(frozen=True, slots=True)
class Workdir:
    """The folder that what follows starts in; it is made where it does not exist."""

    path: str

    @property
    def content(self) -> Any:
        return ["workdir", self.path]


@dataclass(frozen=True, slots=True)
class User:
    """Who carries out what follows: `root` (uid 0 of the box) or `agent` (uid 1000)."""

    name: str

    @property
    def content(self) -> Any:
        return ["user", self.name]


@dataclass(frozen=True, slots=True)
class Run:
    """A command without network. `args` are variables for this command alone, below those of the box.

    `where` names the instruction for messages and decides nothing.
    """

    command: tuple[str, ...]
    args: tuple[tuple[str, str], ...] = ()
    where: str = field(default="RUN", compare=False)

    @property
    def content(self) -> Any:
        return ["run", list(self.command), [list(pair) for pair in self.args]]


@dataclass(frozen=True, slots=True)
class Copy:
    """Files laid below the absolute folder `target`; with `alone`, the single file becomes `target` itself, or
    goes into it where `target` is a folder already."""

    files: Tree
    target: str
    alone: bool = False
    where: str = field(default="COPY", compare=False)

    @property
    def content(self) -> Any:
        return ["copy", self.target, self.alone, tree_digest(self.files)]


@dataclass(frozen=True, slots=True)
class Requirements:
    """Python packages of a lock, for the interpreter of a layer that comes from `python`."""

    packages: tuple[Pinned, ...]
    where: str = field(default="requirements", compare=False)

    @property
    def content(self) -> Any:
        return ["requirements", [[p.name, p.version, sorted(p.hashes), p.marker] for p in self.packages]]


Step = Env | Workdir | User | Run | Copy | Requirements


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """`steps` upon the layer named `base`. Equal by digest, so that it can name a layer in a table.

    `source` and `context` are the Dockerfile that it was read from and the files that this copies, for writing the
    task down again; they decide nothing beside what is in `steps`.
    """

    base: str
    steps: tuple[Step, ...]
    source: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return digest_of({"schema": 1, "base": self.base, "steps": [step.content for step in self.steps]})

    def upto(self, count: int) -> Recipe:
        """The recipe that ends before step `count`."""
        return Recipe(self.base, self.steps[:count])

    def __str__(self) -> str:
        return f"{self.base}+{self.digest[:12]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def read_lock(text: str, where: str) -> tuple[Pinned, ...]:
    """The requirements of a lock (the form that pip reads), each with an exact version and its hashes.

    Raises `TaskError` that names file, line and requirement for anything else: options, addresses, ranges, and
    requirements without a hash.
    """
    found: list[Pinned] = []
    for number, line in _logical_lines(text):
        here = f"{where} line {number}"
        hashes = tuple(_HASH.findall(line))
        rest = _HASH.sub("", line).strip()
        pin = _PIN.fullmatch(rest)
        if rest.startswith("-"):
            raise TaskError(f"{here}: the option `{rest}` cannot be honoured in a lock", fix=f"remove it; {_FIX}")
        if pin is None:
            raise TaskError(f"{here}: `{rest}` does not name an exact version (name==version)", fix=_FIX)
        if not hashes:
            raise TaskError(f"{here}: the requirement {pin[1]}=={pin[3]} has no hash", fix=_FIX)
        for value in hashes:
            if not re.fullmatch(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}", value):
                raise TaskError(f"{here}: {value!r} is not a hash of {pin[1]}=={pin[3]}", fix=_FIX)
        found.append(Pinned(re.sub(r"[-_.]+", "-", pin[1]).lower(), pin[3], hashes, (pin[4] or "").strip()))
    if not found:
        raise TaskError(f"{where}: the lock names no requirement", fix=_FIX)
    return tuple(found)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of the first line, text) with comments taken off and continued lines joined."""
    start, parts = 0, list[str]()
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        start = start or number
        parts.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            joined = " ".join(parts).strip()
            if joined:
                yield start, joined
            start, parts = 0, []
    if joined := " ".join(parts).strip():
        yield start, joined
