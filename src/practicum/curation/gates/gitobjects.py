"""Objects of a git repository that lies in a tree as plain files, read as data.

Owns: `git_objects`, `Unreadable`.
Invariant: no git program runs on what an unknown author made; reachable or not, loose or packed, every object that is
there is given once. Memory is bounded. Must not know: what is looked for in them.

Format: git's documentation, `gitformat-pack`: a pack is a header and entries, each a type and size as a variable-length
number followed by a zlib stream, for deltas after the offset or name of their base.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator

from practicum.records.tree import Tree

_LOOSE = re.compile(r"(?:.*/)?objects/[0-9a-f]{2}/[0-9a-f]{38,62}")
_PACK = re.compile(r".*\.pack|.*\.bundle")
_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _NAME_DELTA = 6, 7
_CHUNK = 1 << 14
MAX_BYTES = 256 << 20  # of all objects together, unpacked

Object = tuple[str, bytes]


class Unreadable(ValueError):
    """What looks like git's objects cannot be read, or is more than is read here."""


def holds_objects(path: str) -> bool:
    """Whether a file of this name may hold objects."""
    return bool(_LOOSE.fullmatch(path) or _PACK.fullmatch(path))


def git_objects(files: Tree) -> Iterator[tuple[str, Object]]:
    """The objects in `files`, each with the path that it lies in. Raises `Unreadable`, naming the file."""
    left = MAX_BYTES
    for path in sorted(files):
        if not holds_objects(path):
            continue
        try:
            found = [_loose(files[path].data)] if _LOOSE.fullmatch(path) else list(_packed(files[path].data, left))
        except (zlib.error, IndexError, ValueError) as error:
            raise Unreadable(f"{path}: {error}") from error
        for each in found:
            left -= len(each[1])
            if left < 0:
                raise Unreadable(f"{path}: more than {MAX_BYTES >> 20} MiB of objects")
            yield path, each


def _loose(data: bytes) -> Object:
    worker = zlib.decompressobj()
    text = worker.decompress(data, MAX_BYTES)
    head, _, body = text.partition(b"\0")
    return head.partition(b" ")[0].decode("ascii", "replace"), body


def _packed(data: bytes, most: int) -> Iterator[Object]:
    start = data.find(b"PACK")  # a bundle has a header of its own before it
    if start < 0 or int.from_bytes(data[start + 4 : start + 8], "big") not in (2, 3):
        raise ValueError("this is no pack")
    count, at = int.from_bytes(data[start + 8 : start + 12], "big"), start + 12
    by_offset: dict[int, Object] = {}
    by_name: dict[bytes, Object] = {}
    waiting: list[tuple[int, int | bytes, bytes]] = []
    for _ in range(count):
        offset = at
        kind, at = _type(data, at)
        base: int | bytes | None = None
        if kind == _OFFSET_DELTA:
            distance, at = _distance(data, at)
            base = offset - distance
        elif kind == _NAME_DELTA:
            base, at = data[at : at + 20], at + 20
        body, at = _inflate(data, at, most)
        most -= len(body)
        if base is None:
            _keep((_KINDS[kind], body), offset, by_offset, by_name)
        else:
            waiting.append((offset, base, body))
    while waiting:
        later = []
        for offset, base, delta in waiting:
            known = by_offset.get(base) if isinstance(base, int) else by_name.get(base)
            if known is None:
                later.append((offset, base, delta))
                continue
            body = _apply(known[1], delta, most)
            most -= len(body)
            _keep((known[0], body), offset, by_offset, by_name)
        if len(later) == len(waiting):  # what is left rests on objects that are not here
            break
        waiting = later
    yield from by_offset.values()


def _keep(each: Object, offset: int, by_offset: dict[int, Object], by_name: dict[bytes, Object]) -> None:
    by_offset[offset] = each
    name = hashlib.sha1(f"{each[0]} {len(each[1])}\0".encode() + each[1], usedforsecurity=False).digest()
    by_name[name] = each


def _type(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    kind = byte >> 4 & 7
    while byte & 0x80:
        at += 1
        byte = data[at]
    return kind, at + 1


def _distance(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1 << 7) | (byte & 0x7F)
    return value, at + 1


def _inflate(data: bytes, at: int, most: int) -> tuple[bytes, int]:
    worker, parts = zlib.decompressobj(), []
    while not worker.eof:
        chunk = data[at : at + _CHUNK]
        if not chunk:
            raise ValueError("an object is cut off")
        parts.append(worker.decompress(chunk))
        at += len(chunk) - len(worker.unused_data)
        most -= len(parts[-1])
        if most < 0:
            raise ValueError(f"more than {MAX_BYTES >> 20} MiB of objects")
    return b"".join(parts), at


def _apply(base: bytes, delta: bytes, most: int) -> bytes:
    """The object that `delta` makes of `base`: copies of parts of it, and new bytes."""
    at = 0
    for _ in range(2):  # the sizes of base and result
        while delta[at] & 0x80:
            at += 1
        at += 1
    out = bytearray()
    while at < len(delta):
        code = delta[at]
        at += 1
        if not code & 0x80:
            out += delta[at : at + code]
            at += code
            continue
        numbers = [0, 0]
        for bit in range(7):
            if code >> bit & 1:
                which, shift = (0, bit) if bit < 4 else (1, bit - 4)
                numbers[which] |= delta[at] << 8 * shift
                at += 1
        out += base[numbers[0] : numbers[0] + (numbers[1] or 0x10000)]
        if len(out) > most:
            raise ValueError(f"more than {MAX_BYTES >> 20} MiB of objects")
    return bytes(out)
