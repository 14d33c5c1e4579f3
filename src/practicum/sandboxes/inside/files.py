"""Files of the box: read, write and list, without ever following a link.

Invariant: each component of a path is opened on its own and refused where it is a link; sizes, entries and
depth are bounded, whatever the box holds.
Must not know: the wire.
"""

import errno
import posix
import time

CHUNK = 1 << 20
MAX_ENTRIES = 20_000
MAX_DEPTH = 200
_DIR = posix.O_PATH | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
_READ = posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
_FORMAT, _REGULAR, _FOLDER = 0o170000, 0o100000, 0o040000
_KINDS = {0o120000: b"link", 0o010000: b"pipe", 0o140000: b"socket"}


class PathRefused(Exception):
    """An answer about a path, as text for the host."""


def parts_of(path: bytes) -> "list[bytes]":
    parts = [p for p in path.split(b"/") if p not in (b"", b".")]
    if not path.startswith(b"/") or b".." in parts or b"\0" in path:
        raise PathRefused("the path is not absolute and plain")
    if len(parts) > MAX_DEPTH:
        raise PathRefused("the path is too deep")
    return parts


def open_folder(parts: "list[bytes]", *, make: bool = False) -> int:
    """Descriptor of a folder, no component of which is a link."""
    fd = posix.open(b"/", _DIR)
    for part in parts:
        try:
            try:
                inner = posix.open(part, _DIR, dir_fd=fd)
            except OSError as error:
                if error.errno != errno.ENOENT or not make:
                    raise
                posix.mkdir(part, 0o755, dir_fd=fd)
                inner = posix.open(part, _DIR, dir_fd=fd)
        finally:
            posix.close(fd)
        fd = inner
    return fd


def read_regular(name: "bytes | str", folder: int, max_bytes: int) -> "tuple[bytes, int]":
    """Content and permission bits of a plain file in `folder`."""
    fd = posix.open(name, _READ, dir_fd=folder)
    try:
        status = posix.fstat(fd)
        if status.st_mode & 0o170000 != 0o100000:
            raise PathRefused("it is not a plain file")
        if status.st_size > max_bytes:
            raise PathRefused(f"it is larger than {max_bytes} bytes")
        pieces = []
        room = max_bytes + 1
        while room > 0:
            piece = posix.read(fd, min(room, CHUNK))
            if not piece:
                break
            pieces.append(piece)
            room -= len(piece)
        if room <= 0:
            raise PathRefused(f"it is larger than {max_bytes} bytes")
        return b"".join(pieces), status.st_mode & 0o777
    finally:
        posix.close(fd)


def write_regular(path: bytes, mode: int, data: bytes) -> None:
    """Create or replace a plain file. Written beside it and renamed, so that nothing is half-written."""
    parts = parts_of(path)
    if not parts:
        raise PathRefused("it is a folder")
    folder = open_folder(parts[:-1], make=True)
    temporary = b".practicum-%d" % time.monotonic_ns()
    try:
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
        fd = posix.open(temporary, flags, 0o600, dir_fd=folder)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[posix.write(fd, view) :]
                posix.fchmod(fd, mode & 0o777)
            finally:
                posix.close(fd)
            posix.rename(temporary, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            posix.unlink(temporary, dir_fd=folder)
            raise
    finally:
        posix.close(folder)


def list_folder(path: bytes, max_bytes: int) -> "list[bytes]":
    """`[number of files, (path, mode, content)…, (path, kind)…]` of everything below `path`."""
    root = parts_of(path)
    files: list[bytes] = []
    odd: list[bytes] = []
    entries = 0
    room = max_bytes
    todo: list[list[bytes]] = [[]]
    while todo:
        inner = todo.pop()
        folder = open_folder(root + inner)
        try:
            try:
                listing = posix.open(b".", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC, dir_fd=folder)
            except PermissionError:
                if not inner:
                    raise
                odd += [b"/".join(inner), b"unreadable"]
                continue
            try:
                names = posix.listdir(listing)
            finally:
                posix.close(listing)
            entries += len(names)
            if entries > MAX_ENTRIES:
                raise PathRefused(f"it holds more than {MAX_ENTRIES} entries")
            for name in names:
                raw = [*inner, name.encode("utf-8", "surrogateescape")]
                kind = posix.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & 0o170000
                if kind == 0o100000:
                    try:
                        data, mode = read_regular(name, folder, room)
                    except PermissionError:
                        odd += [b"/".join(raw), b"unreadable"]
                        continue
                    except PathRefused:
                        raise PathRefused(f"it holds more than {max_bytes} bytes") from None
                    room -= len(data)
                    files += [b"/".join(raw), b"%d" % mode, data]
                elif kind != 0o040000:
                    odd += [b"/".join(raw), _KINDS.get(kind, b"device")]
                elif len(raw) > MAX_DEPTH:
                    raise PathRefused("its folders are too deep")
                else:
                    todo.append(raw)
        finally:
            posix.close(folder)
    return [b"%d" % (len(files) // 3), *files, *odd]
