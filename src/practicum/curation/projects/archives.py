"""Source distributions, read without unpacking anything to disk.

Owns: `read_archive`, `is_archive`.
Invariant: only plain files with plain names inside the archive's one folder become files; sizes are bounded before
anything is read.
Must not know: what the files mean.
"""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from pathlib import Path

from practicum.errors import SubmissionError, TaskError
from practicum.records.tree import File, check_path

_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar", ".zip")
_MOST_MEMBERS = 50_000
_EXPANSION = 200  # times its own size that an archive may hold


def is_archive(path: Path) -> bool:
    """Whether `path` has the name of a source distribution."""
    return path.name.lower().endswith(_SUFFIXES)


def read_archive(path: Path, *, max_bytes: int, max_file_bytes: int) -> tuple[dict[str, File], dict[str, str]]:
    """Files by path below the archive's top folder, and by path what was left out and why.

    Raises `TaskError` for an archive that cannot be read, or that holds more than `max_bytes` or too many files.
    """
    try:
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                files, odd = _of_zip(archive, path, max_bytes, max_file_bytes)
        else:
            with tarfile.open(path) as archive_tar:
                files, odd = _of_tar(archive_tar, path, max_bytes, max_file_bytes)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        raise TaskError(f"{path} cannot be read as an archive: {error}") from None
    tops = {name.partition("/")[0] for name in files}
    if len(tops) == 1 and all("/" in name for name in files):
        top = f"{tops.pop()}/"
        files = {name.removeprefix(top): file for name, file in files.items()}
        odd = {name.removeprefix(top): why for name, why in odd.items()}
    return files, odd


class _Budget:
    """Counts what has been promised, before it is read."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self.members, self.left = path, _MOST_MEMBERS, max_bytes
        self.expanded = max(path.stat().st_size * _EXPANSION, 1 << 20)

    def take(self, size: int) -> None:
        self.members -= 1
        self.left -= size
        self.expanded -= size
        if self.members < 0 or self.left < 0 or self.expanded < 0:
            raise TaskError(f"{self.path} holds more than may be read", fix="take a smaller project")


def _of_tar(
    archive: tarfile.TarFile, path: Path, max_bytes: int, max_file_bytes: int
) -> tuple[dict[str, File], dict[str, str]]:
    files: dict[str, File] = {}
    odd: dict[str, str] = {}
    budget = _Budget(path, max_bytes)
    for member in archive:
        if member.isdir() or member.type in (tarfile.XHDTYPE, tarfile.XGLTYPE):
            continue
        name = member.name.removeprefix("./")
        why = _odd(name, files)
        if why is None and not member.isreg():
            why = "symbolic link" if member.issym() else "no plain file"
        if why is None and member.size > max_file_bytes:
            why = f"larger than {max_file_bytes} bytes"
        if why is not None:
            odd[name] = why
            continue
        budget.take(member.size)
        source = archive.extractfile(member)
        assert source is not None
        files[name] = File(source.read(), 0o755 if member.mode & 0o111 else 0o644)
    return files, odd


def _of_zip(
    archive: zipfile.ZipFile, path: Path, max_bytes: int, max_file_bytes: int
) -> tuple[dict[str, File], dict[str, str]]:
    files: dict[str, File] = {}
    odd: dict[str, str] = {}
    budget = _Budget(path, max_bytes)
    for member in archive.infolist():
        if member.is_dir():
            continue
        mode = member.external_attr >> 16
        why = _odd(member.filename, files)
        if why is None and mode and (mode & 0o170000) not in (0, 0o100000):
            why = "symbolic link" if (mode & 0o170000) == 0o120000 else "no plain file"
        if why is None and member.flag_bits & 1:
            why = "encrypted"
        if why is None and member.file_size > max_file_bytes:
            why = f"larger than {max_file_bytes} bytes"
        if why is not None:
            odd[member.filename] = why
            continue
        budget.take(member.file_size)
        with archive.open(member) as source:
            data = source.read(member.file_size + 1)
        if len(data) != member.file_size:
            raise TaskError(f"{path}: {member.filename!r} is not of the size that it states")
        files[member.filename] = File(data, 0o755 if mode & 0o111 else 0o644)
    return files, odd


def _odd(name: str, files: dict[str, File]) -> str | None:
    if name in files:
        return "there twice"
    try:
        check_path(name)
        name.encode()
    except (SubmissionError, UnicodeEncodeError):
        return "unusable name"
    return "unusable name" if "\\" in name else None
