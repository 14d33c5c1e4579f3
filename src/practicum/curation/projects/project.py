"""A project under curation, as frozen data.

Owns: `Project`, `module_of`.
Invariant: `files` and `tests` share no path and together are the project's tree without what was left out; what was
left out, and why, stands in `notes`. No I/O.
Must not know: where a project was read from, how its tests are run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from practicum.records.recipe import Recipe
from practicum.records.tree import File, Tree, digest_of, tree_digest

UNKNOWN_LICENCE = "unknown"


@dataclass(frozen=True, slots=True)
class Project:
    """One state of a project.

    `files` are all of it but its tests, by path in the project; `tests` are test files, helpers, conftest and data, by
    path in the folder of frozen tests, which is the same path. `test_files` are those of `tests` that pytest collects.
    `roots` are folders that modules are imported from ("" or "src"), `sources` the Python files of `files` that can be
    imported from there. `origin` says where it comes from, enough to read it again. `notes` maps paths to what was
    left out, or done, and why.
    """

    name: str
    version: str
    origin: Mapping[str, Any]
    licence: str
    files: Tree
    tests: Tree
    test_files: tuple[str, ...]
    roots: tuple[str, ...]
    sources: tuple[str, ...]
    layer: str | Recipe = "python"
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 naming the state: files, tests and environment."""
        layer = self.layer if isinstance(self.layer, str) else {"recipe": self.layer.digest}
        return digest_of([self.name, tree_digest(self.files), tree_digest(self.tests), layer])

    @property
    def editable(self) -> tuple[str, ...]:
        """Globs of what a task made from this project may change: the folders and files that hold its sources."""
        tops = set[str]()
        for path in self.sources:
            root = next(root for root in self.roots if path.startswith(f"{root}/" if root else ""))
            inner = path.removeprefix(f"{root}/" if root else "")
            top, slash, _ = inner.partition("/")
            place = f"{root}/{top}" if root else top
            tops.add(f"{place}/**" if slash else place)
        return tuple(sorted(tops))

    def text(self, path: str) -> str:
        """A source's text. Only UTF-8 files are sources."""
        return self.files[path].data.decode("utf-8")

    def module(self, path: str) -> str:
        """The name that the source `path` is imported by."""
        root = next(root for root in self.roots if path.startswith(f"{root}/" if root else ""))
        return module_of(path.removeprefix(f"{root}/" if root else ""))

    def state(self, changes: Mapping[str, bytes | None]) -> dict[str, File]:
        """`files` with `changes`: bytes replace or add, None removes."""
        tree = dict(self.files)
        for path, data in changes.items():
            old = tree.pop(path, None)
            if data is not None:
                tree[path] = File(data, old.mode if old is not None else 0o644)
        return tree


def module_of(path: str) -> str:
    """The dotted name of the module at `path`, relative to its root."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
