"""The wire between host and box: frames of byte strings over two pipes.

Owns: `pack`, `unpack` and the box's end, `Wire`.
Invariant: a frame is a 4-byte little-endian length and fields, each a 4-byte length and bytes; numbers are
decimal text. The format is this plain because the host reads what a hostile box may have written.
Must not know: what the fields mean.
"""

import posix

CHUNK = 1 << 16


def pack(fields: "list[bytes]") -> bytes:
    body = b"".join([len(f).to_bytes(4, "little") + f for f in fields])
    return len(body).to_bytes(4, "little") + body


def unpack(body: "bytes | bytearray") -> "list[bytes]":
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


class Wire:
    """The two pipes to the host."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.buffer = bytearray()

    def fill(self) -> None:
        """Read once; the host's closing its end is the end of the box."""
        data = posix.read(self.source, CHUNK * 16)
        if not data:
            posix._exit(0)
        self.buffer += data

    def frame(self) -> "list[bytes] | None":
        """A complete request from the buffer, or None."""
        size = int.from_bytes(self.buffer[:4], "little")
        if len(self.buffer) < 4 or len(self.buffer) < 4 + size:
            return None
        body = self.buffer[4 : 4 + size]
        del self.buffer[: 4 + size]
        return unpack(body)

    def send(self, fields: "list[bytes]") -> None:
        view = memoryview(pack(fields))
        while view:
            view = view[posix.write(self.sink, view) :]
