"""All that bytes may be read as: text, an encoding of text, something packed.

Owns: `readings`.
Invariant: pure, nothing is run and nothing unmarshalled; what is unpacked is bounded, and a limit that was met is told.
Must not know: what is looked for.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

MOST = 16 << 20
"""Bytes that may come of one file, all its layers together."""
_DEPTH = 4
_SHORT = 64 << 10  # bytes of what is remembered, if nothing was in it: tasks of one project hold the same files
_MOST_MEMORY = 256 << 20
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{32,}={0,2}(?:[^A-Za-z0-9+/_-]{1,8}[A-Za-z0-9+/_-]{32,}={0,2})*")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){24,}(?:[^0-9a-zA-Z]{1,8}(?:[0-9a-fA-F]{2}){4,})*")
_ESCAPED = re.compile(rb"(?:\\x[0-9a-fA-F]{2}){16,}")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
_NOT_HEX = re.compile(rb"[^0-9a-fA-F]+")
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_FAULTS = (ValueError, EOFError, OSError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError)
_FAULTS_OF_ARCHIVES = (*_FAULTS, zipfile.BadZipFile, tarfile.TarError, KeyError)


class _Unpacker(Protocol):
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Budget:
    def __init__(self) -> None:
        self.left, self.met = MOST, False

    def take(self, data: bytes) -> bytes:
        self.met = self.met or len(data) > self.left
        data = data[: max(self.left, 0)]
        self.left -= len(data)
        return data


@lru_cache(maxsize=1024)
def _is_bare(data: bytes) -> bool:
    """Whether there is one reading only, and no limit was met in looking for others."""
    budget = _Budget()
    return next(_inside(data, budget), None) is None and not budget.met


def readings(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    """(how it is read, what it says then), the bytes themselves first. Text comes as UTF-8.

    None instead of bytes: there is more in it than is unpacked.
    """
    if len(data) <= _SHORT and _is_bare(data):
        yield "", data
        return
    budget = _Budget()
    yield from _readings("", data, budget, _DEPTH)
    if budget.met:
        yield "packed", None


def _readings(how: str, data: bytes, budget: _Budget, depth: int) -> Iterator[tuple[str, bytes]]:
    yield how, data
    if depth == 0 or not data:
        return
    for name, inner in _inside(data, budget):
        if inner and inner != data:
            yield from _readings(f"{how}, {name}" if how else name, inner, budget, depth - 1)


def _inside(data: bytes, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    if data[:2] in _UTF16 or data[:4096].count(0) * 3 > len(data[:4096]):
        for name in [_UTF16[data[:2]]] if data[:2] in _UTF16 else ["utf-16-le", "utf-16-be"]:
            text = data[: 2 * MOST].decode(name, "ignore").removeprefix("\ufeff").encode("utf-8", "ignore")
            if _says_something(text):
                yield "UTF-16", budget.take(text)
    packed = _unpacked(data, budget)
    if packed is not None:
        yield packed
    elif zipfile.is_zipfile(io.BytesIO(data)):
        yield from _zipped(data, budget)
    elif data[257:262] == b"ustar":
        yield from _tarred(data, budget)
    for found in _BASE64.finditer(data):
        text = _NOT_BASE64.sub(b"", found[0].replace(b"-", b"+").replace(b"_", b"/"))
        whole = base64.b64decode(text[: len(text) // 4 * 4])
        for inner in dict.fromkeys((whole, _decoded(found[0]))):
            if _says_something(inner):
                yield "base64", budget.take(inner)
    for found in _HEX.finditer(data):
        digits = _NOT_HEX.sub(b"", found[0])
        inner = binascii.unhexlify(digits[: len(digits) // 2 * 2])
        if _says_something(inner):
            yield "hex", budget.take(inner)
    for found in _ESCAPED.finditer(data):
        yield "escapes", budget.take(binascii.unhexlify(found[0].replace(b"\\x", b"")))


def _decoded(text: bytes) -> bytes:
    """Pieces that were encoded one by one."""
    pieces = [piece for piece in re.split(rb"[^A-Za-z0-9+/=_-]+", text) if len(piece) >= 4]
    return b"".join(base64.urlsafe_b64decode(p.rstrip(b"=")[: len(p.rstrip(b"=")) // 4 * 4]) for p in pieces)


def _says_something(data: bytes) -> bool:
    """Whether it is text or of a form that can be unpacked; long names and digests decode to noise."""
    head = data[:400]
    readable = sum(32 <= byte < 127 or byte in b"\t\n\r" for byte in head)
    wide = head.count(0) * 3 > len(head)
    return len(head) >= 16 and (readable >= 0.85 * len(head) or wide or _kind(data) is not None)


def _kind(data: bytes) -> str | None:
    if data[:2] == b"\x1f\x8b":
        return "gzip"
    if len(data) > 2 and data[0] & 0x0F == 8 and data[0] >> 4 <= 7 and int.from_bytes(data[:2], "big") % 31 == 0:
        return "zlib"
    if data[:3] == b"BZh":
        return "bzip2"
    if data[:6] == b"\xfd7zXZ\x00":
        return "xz"
    return "zip" if data[:4] == b"PK\3\4" else None


def _unpacked(data: bytes, budget: _Budget) -> tuple[str, bytes] | None:
    kind = _kind(data)
    worker: _Unpacker
    if kind in ("gzip", "zlib"):
        worker = zlib.decompressobj(31 if kind == "gzip" else 15)
    elif kind == "bzip2":
        worker = bz2.BZ2Decompressor()
    elif kind == "xz":
        worker = lzma.LZMADecompressor(memlimit=_MOST_MEMORY)
    else:
        return None
    try:
        return kind, budget.take(worker.decompress(data, max(budget.left, 0) + 1))
    except _FAULTS:
        return None


def _zipped(data: bytes, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist()[:2000]:
                if not member.is_dir():
                    with archive.open(member) as file:
                        yield f"{member.filename} in a zip", budget.take(file.read(max(budget.left, 0) + 1))
    except _FAULTS_OF_ARCHIVES:
        return


def _tarred(data: bytes, budget: _Budget) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None:
                    yield f"{member.name} in a tar", budget.take(file.read(max(budget.left, 0) + 1))
    except _FAULTS_OF_ARCHIVES:
        return
