"""Images for tests, made of nothing but archives: OCI layouts, OCI archives, `docker save` archives."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from practicum.sandboxes.layers import LayerCache

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
Entry = tuple[str, Any]  # name, and: bytes, None for a folder, or (type, link) of another kind


def layer(*entries: Entry) -> bytes:
    """An uncompressed archive. Content: bytes for a file, None for a folder, (type, target) for anything else."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.mode, info.mtime = 0o755, 1_600_000_000
            if content is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(content, bytes):
                info.size = len(content)
            else:
                info.type, info.linkname = content
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def config_of(layers: Sequence[bytes], *, architecture: str = ARCHITECTURE, **settings: Any) -> bytes:
    diffs = [f"sha256:{sha(data)}" for data in layers]
    value = {"os": "linux", "architecture": architecture, "config": settings, "rootfs": {"diff_ids": diffs}}
    return json.dumps(value).encode()


class Layout:
    """An OCI layout as name → content. `add` puts an image in, `index` says what the index names."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
        self.entries: list[dict[str, Any]] = []

    def blob(self, data: bytes) -> dict[str, Any]:
        self.files[f"blobs/sha256/{sha(data)}"] = data
        return {"digest": f"sha256:{sha(data)}", "size": len(data)}

    def add(
        self, layers: Sequence[bytes], *, pack: str = "gzip", tag: str | None = None, **settings: Any
    ) -> dict[str, Any]:
        packed = [packed_by(pack, data) for data in layers]
        config = config_of(layers, **settings)
        manifest = {"config": self.blob(config), "layers": [self.blob(data) for data in packed]}
        entry = self.blob(json.dumps(manifest).encode())
        if tag:
            entry["annotations"] = {"org.opencontainers.image.ref.name": tag}
        self.entries.append(entry)
        return entry

    def content(self) -> dict[str, bytes]:
        return self.files | {"index.json": json.dumps({"manifests": self.entries}).encode()}

    def folder(self, place: Path) -> Path:
        for name, data in self.content().items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return place

    def archive(self, place: Path) -> Path:
        place.write_bytes(layer(*self.content().items()))
        return place


def packed_by(pack: str, data: bytes) -> bytes:
    if pack == "gzip":
        return gzip.compress(data, mtime=0)
    if pack == "zstd":
        return bytes(pa.compress(data, codec="zstd", asbytes=True))
    return data


def docker_archive(place: Path, layers: Sequence[bytes], tag: str = "tool:1", **settings: Any) -> Path:
    """As `docker save` of old writes it."""
    config = config_of(layers, **settings)
    names = [f"{sha(data)}/layer.tar" for data in layers]
    manifest = [{"Config": f"{sha(config)}.json", "RepoTags": [tag], "Layers": names}]
    files = dict(zip(names, layers, strict=True)) | {f"{sha(config)}.json": config}
    place.write_bytes(layer(*files.items(), ("manifest.json", json.dumps(manifest).encode())))
    return place


@pytest.fixture(scope="session")
def oci() -> ModuleType:
    """This module: how tests make images."""
    return sys.modules[__name__]


@pytest.fixture
def own() -> Iterator[LayerCache]:
    """A cache for one test, open to the sandbox's user."""
    root = Path(tempfile.mkdtemp(prefix="practicum-test-"))
    root.chmod(0o755)
    yield LayerCache(root)
    shutil.rmtree(root)
