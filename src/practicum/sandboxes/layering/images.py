"""Images on disk: OCI layouts, OCI archives and `docker save` archives.

Owns: `open_image`, `ImageFile`.
Invariant: every document and layer is what its digest says before anything of it is used; what an archive expands to
is bounded; an image for another machine is refused by name.
Must not know: where the unpacked image goes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import platform
import re
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, cast

from practicum.errors import ConfigError

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_DOCUMENT_BYTES = 8 << 20
_CHUNK = 1 << 20
_MOST_MEMBERS = 100_000
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class _Files(Protocol):
    """The files of an image by name; FileNotFoundError where there is none of that name."""

    def open(self, name: str) -> IO[bytes]: ...


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, name: str) -> IO[bytes]:
        return (self._folder / name).open("rb")


class _Archive:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._members: dict[str, tarfile.TarInfo] = {}
        while (member := tar.next()) is not None:
            self._members[member.name.removeprefix("./")] = member
            if len(self._members) > _MOST_MEMBERS:
                raise ConfigError(f"the archive holds more than {_MOST_MEMBERS} files, which no image does")

    def open(self, name: str) -> IO[bytes]:
        member = self._members.get(name)
        if member is not None and member.issym():  # older archives share layers in this way
            folder = name.rpartition("/")[0]
            member = self._members.get(_joined(folder, member.linkname))
        file = self._tar.extractfile(member) if member is not None and member.isreg() else None
        if file is None:
            raise FileNotFoundError(name)
        return file


def _joined(folder: str, link: str) -> str:
    parts: list[str] = []
    for part in f"{folder}/{link}".split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image that is open. `config` is its configuration, `digest` the hash of that, which names the image."""

    name: str
    digest: str
    config: dict[str, Any]
    _files: _Files
    _layers: tuple[tuple[str, str], ...]  # name of the file, digest of the file or ""

    def layers(self, most_bytes: int) -> Iterator[BinaryIO]:
        """Each layer, lowest first, as an uncompressed archive that has been checked; valid until the next one."""
        expected = self.config.get("rootfs", {}).get("diff_ids", [])
        if len(expected) != len(self._layers):
            raise ConfigError(f"{self.name} is damaged: {len(self._layers)} layers, but {len(expected)} are listed")
        for (name, digest), plain in zip(self._layers, expected, strict=True):
            with tempfile.TemporaryFile() as unpacked:
                most_bytes -= self._unpack(name, digest, plain, unpacked, most_bytes)
                unpacked.seek(0)
                yield cast(BinaryIO, unpacked)

    def _unpack(self, name: str, digest: str, plain: str, target: IO[bytes], most: int) -> int:
        try:
            with self._files.open(name) as file:
                if digest and _hash(file) != digest:
                    raise ConfigError(f"{self.name} is damaged: {name} is not what its digest says")
                file.seek(0)
                found, size = expand(file, target, most, self.name)
        except FileNotFoundError:
            raise ConfigError(f"{self.name} is damaged: its layer {name} is missing") from None
        if found != plain:
            raise ConfigError(f"{self.name} is damaged: the content of {name} is not what the configuration says")
        return size


def _hash(file: IO[bytes]) -> str:
    return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"  # type: ignore[arg-type]


def expand(file: IO[bytes], target: IO[bytes], most: int, name: str) -> tuple[str, int]:
    """Write `file`, decompressed where it is gzip or zstd, to `target`: (digest, bytes). Bounded by `most` bytes."""
    head = file.read(4)
    file.seek(0)
    source: Any = file
    if head[:2] == b"\x1f\x8b":
        source = gzip.GzipFile(fileobj=file)
    elif head == b"\x28\xb5\x2f\xfd":
        import pyarrow as pa  # slow to import, and boxes do without

        source = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    digest, size = hashlib.sha256(), 0
    while chunk := _read(source, name):
        size += len(chunk)
        if size > most:
            raise ConfigError(f"{name} expands to more than {most} bytes", fix="use a smaller image")
        digest.update(chunk)
        target.write(chunk)
    return f"sha256:{digest.hexdigest()}", size


def _read(source: Any, name: str) -> bytes:
    try:
        return bytes(source.read(_CHUNK))
    except (EOFError, OSError, ValueError, zlib.error) as error:  # of which pyarrow's are kinds
        raise ConfigError(f"{name} is damaged: it cannot be decompressed: {error}") from error


@contextmanager
def open_image(path: Path, tag: str | None, most_bytes: int) -> Iterator[ImageFile]:
    """The image in an OCI layout folder, an OCI archive or a `docker save` archive.

    `tag` chooses one of several. Raises `ConfigError` for a place that holds no image, a damaged one, one for another
    machine, and where several would do.
    """
    name = f"the image {str(path)!r}"
    if not path.exists():
        raise ConfigError(f"there is no image at {str(path)!r}", fix="give an OCI layout folder or an image archive")
    with ExitStack() as stack:
        if path.is_dir():
            files: _Files = _Folder(path)
        else:
            file: IO[bytes] = stack.enter_context(path.open("rb"))
            if file.read(2) in (b"\x1f\x8b", b"\x28\xb5"):
                file.seek(0)
                plain = stack.enter_context(tempfile.TemporaryFile())
                expand(file, plain, most_bytes, name)
                file = plain
            file.seek(0)
            try:
                files = _Archive(stack.enter_context(tarfile.open(fileobj=file, mode="r:")))
            except tarfile.TarError as error:
                raise ConfigError(f"{name} is damaged or no archive: {error}") from error
        try:
            image = _oci(files, name, tag) or _docker(files, name, tag)
        except (FileNotFoundError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise ConfigError(f"{name} is damaged: {error!r}") from error
        if image is None:
            raise ConfigError(f"{name} holds neither index.json nor manifest.json", fix="make it with `docker save`, "
                              "`podman save` or `skopeo copy … oci-archive:FILE`")  # fmt: skip
        _check_machine(image)
        yield image


def _document(files: _Files, name: str, image: str, expected: str = "") -> tuple[Any, str]:
    """A JSON document and its digest, which is checked before anything is made of it."""
    with files.open(name) as file:
        data = file.read(_DOCUMENT_BYTES + 1)
    if len(data) > _DOCUMENT_BYTES:
        raise ConfigError(f"{image} is damaged: {name} is larger than {_DOCUMENT_BYTES} bytes")
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    if expected and digest != expected:
        raise ConfigError(f"{image} is damaged: {name} is not what its digest says")
    try:
        return json.loads(data), digest
    except ValueError as error:
        raise ConfigError(f"{image} is damaged: {name} is no JSON: {error}") from error


def _blob(digest: str, name: str) -> str:
    found = _DIGEST.fullmatch(digest)
    if found is None:
        raise ConfigError(f"{name} names {digest!r}, which is no sha256 digest")
    return f"blobs/sha256/{found[1]}"


def _checked(files: _Files, digest: str, name: str) -> Any:
    return _document(files, _blob(digest, name), name, digest)[0]


def _oci(files: _Files, name: str, tag: str | None) -> ImageFile | None:
    try:
        index, _ = _document(files, "index.json", name)
        _document(files, "oci-layout", name)
    except FileNotFoundError:
        return None
    entry = _choose([(_tags(entry), entry) for entry in index["manifests"]], name, tag)
    for _ in range(4):  # an index may name another
        manifest = _checked(files, entry["digest"], name)
        if "manifests" not in manifest:
            break
        entry = _for_this_machine(manifest["manifests"], name)
    config = _checked(files, manifest["config"]["digest"], name)
    layers = tuple((_blob(layer["digest"], name), layer["digest"]) for layer in manifest["layers"])
    return ImageFile(name, manifest["config"]["digest"].removeprefix("sha256:"), config, files, layers)


def _tags(entry: dict[str, Any]) -> list[str]:
    notes = entry.get("annotations") or {}
    keys = ("org.opencontainers.image.ref.name", "io.containerd.image.name")
    return [notes[key] for key in keys if key in notes]


def _choose(entries: list[tuple[list[str], Any]], name: str, tag: str | None) -> Any:
    """The entry that `tag` names, or the only one. Several without names are one image for several machines."""
    known = sorted({known for tags, _ in entries for known in tags})
    found = [entry for tags, entry in entries if tag is None or tag in tags]
    if len(found) == 1:
        return found[0]
    if len(found) > 1 and all("platform" in entry for entry in found):
        return _for_this_machine(found, name)
    if not found:
        raise ConfigError(f"{name} holds no image {tag!r}" if tag else f"{name} is empty",
                          fix=f"it holds {', '.join(known)}" if known else None)  # fmt: skip
    raise ConfigError(f"{name} holds {len(found)} images", fix=f"say which: {', '.join(known) or 'they have no names'}")


def _for_this_machine(manifests: list[dict[str, Any]], name: str) -> dict[str, Any]:
    wanted = _ARCHITECTURES.get(platform.machine(), platform.machine())
    kinds = [f"{m.get('platform', {}).get('os')}/{m.get('platform', {}).get('architecture')}" for m in manifests]
    if f"linux/{wanted}" in kinds:
        return manifests[kinds.index(f"linux/{wanted}")]
    offered = ", ".join(sorted({kind for kind in kinds if "unknown" not in kind}))
    raise ConfigError(f"{name} is for {offered or 'no machine'}, and this machine is linux/{wanted}",
                      fix=f"save it with --platform linux/{wanted}")  # fmt: skip


def _docker(files: _Files, name: str, tag: str | None) -> ImageFile | None:
    try:
        manifest, _ = _document(files, "manifest.json", name)
    except FileNotFoundError:
        return None
    entry = _choose([(entry.get("RepoTags") or [], entry) for entry in manifest], name, tag)
    named = re.search(r"[0-9a-f]{64}", entry["Config"])
    config, digest = _document(files, entry["Config"], name, f"sha256:{named[0]}" if named else "")
    layers = tuple((layer, "") for layer in entry["Layers"])
    return ImageFile(name, digest.removeprefix("sha256:"), config, files, layers)


def _check_machine(image: ImageFile) -> None:
    system, machine = image.config.get("os", "linux"), image.config.get("architecture")
    wanted = _ARCHITECTURES.get(platform.machine(), platform.machine())
    if (system, machine) != ("linux", wanted):
        raise ConfigError(f"{image.name} is for {system}/{machine}, and this machine is linux/{wanted}",
                          fix=f"save it with --platform linux/{wanted}")  # fmt: skip
