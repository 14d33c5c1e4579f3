"""A source file as mutators see it: syntax tree, exact byte spans, and pieces of text to replace.

Owns: `Edit`, `Scene`, `Mutator`, `apply_edits`.
Invariant: an edit replaces bytes of one file; all else stays as it is written, comments and spacing included.
Must not know: any mutator, which sites are chosen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Bytes `start` to `end` become `text`."""

    start: int
    end: int
    text: str


Edits = tuple[Edit, ...]


def apply_edits(data: bytes, edits: Iterable[Edit]) -> bytes:
    """`data` with `edits`, which must not overlap, made."""
    for edit in sorted(edits, reverse=True):
        data = data[: edit.start] + edit.text.encode() + data[edit.end :]
    return data


@dataclass(slots=True)
class Scene:
    """One parsed file, and where in it a walk stands. `parents` leads from the module to the node being looked at.

    Raises `libcst.ParserSyntaxError` on source that is not Python, `UnicodeDecodeError` on what is not text.
    """

    data: bytes
    module: cst.Module = field(init=False)
    spans: Mapping[cst.CSTNode, Any] = field(init=False)
    parents: list[cst.CSTNode] = field(default_factory=list)
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.data.decode()
        self.module = cst.parse_module(self.data)
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        self.spans = wrapper.resolve(ByteSpanPositionProvider)
        self.starts = [0] + [at + 1 for at, byte in enumerate(self.data) if byte == 0x0A]

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """First byte and end of `node`, without parentheses around it."""
        found = self.spans[node]
        return found.start, found.start + found.length

    def outer(self, node: cst.CSTNode) -> tuple[int, int]:
        """First byte and end of `node` with the parentheses around it."""
        start, end = self.span(node)
        left, right = getattr(node, "lpar", ()), getattr(node, "rpar", ())
        return (self.span(left[0])[0] if left else start), (self.span(right[-1])[1] if right else end)

    def text(self, node: cst.CSTNode) -> str:
        """`node` as it is written, with the parentheses around it."""
        start, end = self.outer(node)
        return self.data[start:end].decode()

    def put(self, node: cst.CSTNode, text: str) -> Edit:
        """`node`, with the parentheses around it, becomes `text`."""
        return Edit(*self.outer(node), text)

    def put_inner(self, node: cst.CSTNode, text: str) -> Edit:
        """`node` becomes `text`; parentheses around it stay."""
        return Edit(*self.span(node), text)

    def swap(self, one: cst.CSTNode, other: cst.CSTNode) -> Edits:
        """Each of two nodes stands where the other stood."""
        return self.put(one, self.text(other)), self.put(other, self.text(one))

    def line(self, at: int) -> int:
        """The line (1-based) of byte `at`."""
        return bisect_right(self.starts, at)

    def lines(self, node: cst.CSTNode) -> range:
        """The lines (1-based) of `node`."""
        start, end = self.span(node)
        return range(self.line(start), self.line(max(start, end - 1)) + 1)

    def whole_lines(self, start: int, end: int) -> tuple[int, int]:
        """`start` to `end` widened to whole lines, the last newline included."""
        last = self.line(max(start, end - 1))
        return self.starts[self.line(start) - 1], self.starts[last] if last < len(self.starts) else len(self.data)

    def remove(self, statement: cst.CSTNode) -> Edits:
        """Drop a statement: its lines go, or `pass` stands there where it was its block's only one."""
        block = self.parents[-1] if self.parents else None
        start, end = self.span(statement)
        first, last = self.whole_lines(start, end)
        alone = not self.data[first:start].strip()
        inside = isinstance(block, cst.IndentedBlock) and len(block.body) > 1
        if alone and (inside or isinstance(block, cst.Module)):
            return (Edit(first, last, ""),)
        return (Edit(start, end, "pass"),)

    def function(self) -> cst.FunctionDef | None:
        """The innermost function around the node, unless a class stands between."""
        for node in reversed(self.parents):
            if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
                return node if isinstance(node, cst.FunctionDef) else None
        return None

    def owner(self) -> cst.ClassDef | None:
        """The innermost class around the node."""
        return next((node for node in reversed(self.parents) if isinstance(node, cst.ClassDef)), None)

    def inside(self, *kinds: type[cst.CSTNode]) -> bool:
        """Whether a node of `kinds` is around, in the same function."""
        for node in reversed(self.parents):
            if isinstance(node, kinds):
                return True
            if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
                return False
        return False


@dataclass(frozen=True, slots=True)
class Mutator:
    """One way of going wrong. `changes` gives, for a node of `nodes`, each way to change it; pure.

    `version` changes whenever the same site would come out differently.
    """

    name: str
    kind: str
    nodes: tuple[type[cst.CSTNode], ...]
    changes: Callable[[Any, Scene], Iterator[Edits]]
    version: str = "1"
