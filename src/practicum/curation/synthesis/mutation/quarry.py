"""The sites of a project in the order in which they are tried.

Owns: `Place`, `Quarry`, `mutate`.
Invariant: the order depends on project, coverage and seed alone; kinds take turns, then files, then functions; no two
sites of one kind share a line, and few of any kind do.
Must not know: what becomes of a site.
"""

from __future__ import annotations

import ast
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from practicum.curation.synthesis.mutation.scan import Site, scan
from practicum.curation.synthesis.mutation.scene import Edits, apply_edits
from practicum.curation.synthesis.mutation.table import KINDS
from practicum.curation.synthesis.strategy import Ground
from practicum.verification.redteam.variants import parse

_PER_LINE = 3
_EXTRA = frozenset({"setup.py", "conftest.py", "noxfile.py", "__main__.py"})


@dataclass(frozen=True, slots=True)
class Place:
    """A site of a file, and which of its ways to go wrong was drawn."""

    path: str
    site: Site
    way: int

    @property
    def edits(self) -> Edits:
        return self.site.ways[self.way]

    @property
    def provenance(self) -> dict[str, str | int | list[list[str | int]]]:
        """All that is needed to make the same change again, JSON-able."""
        site = self.site
        return {
            "path": self.path,
            "mutator": site.mutator,
            "mutator_version": site.version,
            "kind": site.kind,
            "function": site.function,
            "line": site.line,
            "start": site.start,
            "way": self.way,
            "edits": [[edit.start, edit.end, edit.text] for edit in self.edits],
        }


@lru_cache(maxsize=512)
def sites_of(data: bytes) -> tuple[Site, ...]:
    """The sites in a file; none where it cannot be read as Python."""
    try:
        return scan(data)
    except (cst.ParserSyntaxError, UnicodeDecodeError, RecursionError):
        return ()


@lru_cache(maxsize=64)
def _statements(data: bytes) -> tuple[tuple[int, str], ...]:
    """The last line and the tree, as text, of each statement of the module."""
    return tuple((node.end_lineno or node.lineno, ast.dump(node)) for node in parse(data.decode()).body)


def mutate(data: bytes, edits: Edits) -> bytes | None:
    """`data` with `edits`, or None where that is no Python, or the same program as before."""
    changed = apply_edits(data, edits)
    try:
        before, after = _statements(data), parse(changed.decode()).body
    except (SyntaxError, ValueError, RecursionError):
        return None
    line = data[: min(edit.start for edit in edits)].count(b"\n") + 1
    at = next((i for i, (last, _) in enumerate(before) if last >= line), len(before))
    if len(before) == len(after) and (at == len(before) or before[at][1] == ast.dump(after[at])):
        return None
    return changed


class Quarry:
    """Covered sites of a project, handed out one by one. What was handed out once is not again."""

    def __init__(self, ground: Ground, rng: random.Random) -> None:
        self._ground = ground
        self._rng = rng
        self._left: dict[str, dict[str, list[Place]]] = defaultdict(dict)  # by kind, by file
        self._used: Counter[tuple[str, ...]] = Counter()  # by file, and by file and function
        self._lines: Counter[tuple[str, int]] = Counter()
        self._alike: set[tuple[str, int, str]] = set()
        reached = ground.baseline.reach
        self._unread = [
            path for path in sorted(ground.project.sources) if path in reached and path.rpartition("/")[2] not in _EXTRA
        ]
        rng.shuffle(self._unread)

    def _read(self) -> None:
        """Find the sites of one more file; one at a time, so that the first candidates need not wait for all."""
        path = self._unread.pop()
        covered = self._ground.baseline.reach[path]
        by_kind: dict[str, list[Place]] = defaultdict(list)
        for site in sites_of(self._ground.project.files[path].data):
            if any(covered.get(line) for line in site.reach):
                by_kind[site.kind].append(Place(path, site, self._rng.randrange(len(site.ways))))
        for kind, places in by_kind.items():
            self._rng.shuffle(places)
            self._left[kind][path] = places

    def draw(self, *, path: str | None = None) -> Iterator[Place]:
        """Places, kinds in turn; only in file `path` where one is given."""
        drawn = True
        while drawn or (self._unread and path is None):
            drawn = False
            for kind in KINDS:
                if self._unread and path is None:
                    self._read()
                place = self._take(kind, path)
                if place is not None:
                    drawn = True
                    yield place

    def _take(self, kind: str, path: str | None) -> Place | None:
        files = self._left[kind]
        names = [name for name in files if path is None or name == path]
        # a file's turn comes by how much it was used for what it has left, so large files have more turns than small
        for name in sorted(names, key=lambda name: ((self._used[(name,)] + 1) / (len(files[name]) + 1), name)):
            files[name] = places = [place for place in files[name] if self._free(name, place.site)]
            if places:
                at = min(range(len(places)), key=lambda i: self._used[(name, places[i].site.function)])
                return self._hand_out(places.pop(at))
        return None

    def _free(self, path: str, site: Site) -> bool:
        return (path, site.line, site.kind) not in self._alike and self._lines[path, site.line] < _PER_LINE

    def _hand_out(self, place: Place) -> Place:
        path, site = place.path, place.site
        self._alike.add((path, site.line, site.kind))
        self._lines[path, site.line] += 1
        self._used[(path,)] += 1
        self._used[path, site.function] += 1
        return place
