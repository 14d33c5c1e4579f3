"""The layers of an image, applied one upon the other into one folder.

Owns: `Flattener`, its bounds.
Invariant: nothing is written outside the folder, whatever names, links and hard links an archive holds; a file that
exists is never opened for writing, but replaced; bytes and entries are bounded before they are written.
Must not know: where the archives come from.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from practicum.errors import ConfigError

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_MOST_LINKS = 40
_CHUNK = 1 << 20
_HEADER_BYTES = 8 << 20  # of one extended header


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an image may unpack to, in bytes of content and number of entries."""

    total_bytes: int = 16 << 30
    entries: int = 2_000_000


class _Reader:
    """An archive as tarfile reads it: no single read may be so large that it would fill the memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _HEADER_BYTES:
            raise ConfigError(f"a header of {size} bytes in a layer's archive is more than any image needs")
        return self._file.read(size)

    def seek(self, place: int, whence: int = 0) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()


class Flattener:
    """Applies archives to `root`, an empty folder. `image` is how messages name the image."""

    def __init__(self, root: Path, image: str, bounds: Bounds) -> None:
        self._root, self._image, self._bounds = str(root), image, bounds
        self._bytes = self._entries = 0
        self.left_out: list[str] = []
        self._times: dict[str, int] = {}
        self._fresh: set[str] = set()  # what the present layer has put in place, and all folders above it

    def apply(self, archive: BinaryIO) -> None:
        """The next layer, as an uncompressed tar. Raises `ConfigError` for what no sound image holds."""
        self._fresh.clear()
        try:
            with tarfile.open(fileobj=_Reader(archive), mode="r:", errorlevel=2) as tar:  # type: ignore[call-overload]
                while (member := tar.next()) is not None:
                    self._entry(tar, member)
                    tar.members.clear()  # they are not asked for again, and there may be millions
        except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
            raise ConfigError(f"{self._image} is damaged: a layer is no sound tar archive: {error}") from error

    def finish(self) -> None:
        """Set the times of folders, which filling them has changed."""
        for path, time in self._times.items():
            if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
                os.utime(path, (time, time))

    def _refuse(self, name: str, why: str) -> ConfigError:
        return ConfigError(f"{self._image}: the entry {name!r} {why}", fix="do not use this image")

    def _entry(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self._entries += 1
        if self._entries > self._bounds.entries:
            raise ConfigError(f"{self._image} holds more than {self._bounds.entries} entries")
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        if ".." in parts or "\0" in member.name:
            raise self._refuse(member.name, "leaves the image")
        if not parts:
            return
        folder, name = self._folder(parts[:-1], member.name), parts[-1]
        target = f"{folder}/{name}"
        if name.startswith(_WHITEOUT):
            self._hide(folder, name, member.name)
        elif member.isdir():
            self._make_folder(target, member)
        elif member.isreg():
            self._write(tar, member, target)
        elif member.issym():
            self._replace(target)
            os.symlink(member.linkname, target)  # noqa: PTH211
            os.utime(target, (int(member.mtime), int(member.mtime)), follow_symlinks=False)
            self._put(target)
        elif member.islnk():
            self._hard_link(member, target)
        else:  # a device or pipe: no box could use it
            self.left_out.append("/" + "/".join(parts))

    def _folder(self, parts: list[str], name: str, *, make: bool = True) -> str:
        """The folder on the host that `parts` lead to. Links on the way are resolved within the root."""
        done, rest, links = self._root, list(parts), 0
        while rest:
            part = rest.pop(0)
            if part == "..":
                done = done if done == self._root else os.path.dirname(done)  # noqa: PTH120
                continue
            path = f"{done}/{part}"
            try:
                mode = os.lstat(path).st_mode
            except FileNotFoundError:
                if not make:
                    raise self._refuse(name, "leads through a folder that is not there") from None
                os.mkdir(path, 0o755)  # noqa: PTH102
                done = path
                continue
            if stat.S_ISDIR(mode):
                done = path
            elif stat.S_ISLNK(mode):
                links += 1
                if links > _MOST_LINKS:
                    raise self._refuse(name, "leads through links in a circle")
                target = os.readlink(path)  # noqa: PTH115
                rest = [*(piece for piece in target.split("/") if piece not in ("", ".")), *rest]
                done = self._root if target.startswith("/") else done
            else:
                raise self._refuse(name, "leads through a file")
        return done

    def _hide(self, folder: str, name: str, full: str) -> None:
        if name == _OPAQUE:
            for child in os.listdir(folder):  # noqa: PTH208
                self._clear(f"{folder}/{child}")
        elif not name.startswith(".wh..wh."):  # other names of this form are notes of an old storage driver
            hidden = name.removeprefix(_WHITEOUT)
            if hidden in ("", ".", ".."):
                raise self._refuse(full, "hides what is no name")
            self._clear(f"{folder}/{hidden}")

    def _put(self, path: str) -> None:
        while path not in self._fresh and path != self._root:
            self._fresh.add(path)
            path = os.path.dirname(path)  # noqa: PTH120

    def _clear(self, path: str) -> None:
        """Remove what lower layers put at `path`, and leave what this layer did: the order of entries is free."""
        if path not in self._fresh:
            self._replace(path)
        elif os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
            for child in os.listdir(path):  # noqa: PTH208
                self._clear(f"{path}/{child}")

    def _replace(self, path: str) -> None:
        """Remove what is at `path`, if anything."""
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return
        if stat.S_ISDIR(mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)  # noqa: PTH108

    def _make_folder(self, path: str, member: tarfile.TarInfo) -> None:
        try:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                os.unlink(path)  # noqa: PTH108
                os.mkdir(path, 0o755)  # noqa: PTH102
        except FileNotFoundError:
            os.mkdir(path, 0o755)  # noqa: PTH102
        self._times[path] = int(member.mtime)
        self._put(path)

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        self._bytes += member.size
        if self._bytes > self._bounds.total_bytes:
            raise ConfigError(
                f"{self._image} unpacks to more than {self._bounds.total_bytes} bytes",
                fix="use a smaller image, or raise the bound",
            )
        source = tar.extractfile(member)
        assert source is not None
        self._replace(path)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            left = member.size
            while left:
                chunk = source.read(min(left, _CHUNK))
                if not chunk:
                    raise ConfigError(f"{self._image} is damaged: {member.name!r} is cut short")
                file.write(chunk)
                left -= len(chunk)
            os.fchmod(file.fileno(), 0o755 if member.mode & 0o111 else 0o644)
        os.utime(path, (int(member.mtime), int(member.mtime)))
        self._put(path)

    def _hard_link(self, member: tarfile.TarInfo, path: str) -> None:
        parts = [part for part in member.linkname.split("/") if part not in ("", ".")]
        if not parts or ".." in parts:
            raise self._refuse(member.name, f"is a hard link to {member.linkname!r}, which leaves the image")
        source = f"{self._folder(parts[:-1], member.name, make=False)}/{parts[-1]}"
        try:
            mode = os.lstat(source).st_mode
        except FileNotFoundError:
            raise self._refuse(member.name, f"is a hard link to {member.linkname!r}, which is not there") from None
        if stat.S_ISDIR(mode):
            raise self._refuse(member.name, f"is a hard link to the folder {member.linkname!r}")
        if source != path:
            self._replace(path)
            os.link(source, path, follow_symlinks=False)
        self._put(path)
