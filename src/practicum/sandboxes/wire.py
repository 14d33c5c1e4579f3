"""The wire to boxes and to the hub: frames of byte strings.

Owns: `pack`, `unpack`.
Invariant: a frame is a 4-byte little-endian length and fields, each a 4-byte length and bytes; numbers are
decimal text. The format is this plain because the host reads what a hostile box may have written.
Must not know: what the fields mean.
"""

from __future__ import annotations


def pack(fields: list[bytes]) -> bytes:
    body = b"".join([len(f).to_bytes(4, "little") + f for f in fields])
    return len(body).to_bytes(4, "little") + body


def unpack(body: bytes | bytearray) -> list[bytes]:
    """Fields of a frame's body; ValueError where the lengths do not add up."""
    fields = []
    at = 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "little")
        if at + 4 + size > len(body):
            raise ValueError("truncated frame")
        fields.append(bytes(body[at + 4 : at + 4 + size]))
        at += 4 + size
    return fields
