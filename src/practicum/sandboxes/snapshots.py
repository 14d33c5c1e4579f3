"""Workspace trees by digest.

Owns: `MemorySnapshots`, `DirectorySnapshots`.
Invariant: what comes back hashes to the digest it was asked for by; the same content is stored once.
Must not know: boxes.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from pathlib import Path

from practicum.errors import StoreError
from practicum.records.tree import File, Tree, tree_digest
from practicum.sandboxes.contract import SnapshotId


class MemorySnapshots:
    """Snapshots that end with the process. File contents are shared between snapshots."""

    def __init__(self) -> None:
        self._trees: dict[SnapshotId, dict[str, File]] = {}
        self._files: dict[File, File] = {}

    def put(self, tree: Tree) -> SnapshotId:
        snapshot = tree_digest(tree)
        if snapshot not in self._trees:
            self._trees[snapshot] = {path: self._files.setdefault(file, file) for path, file in tree.items()}
        return snapshot

    def get(self, snapshot: SnapshotId) -> Tree:
        try:
            return self._trees[snapshot]
        except KeyError:
            raise StoreError(f"there is no snapshot {snapshot}") from None


class DirectorySnapshots:
    """Snapshots in a folder: `trees/<digest>` names blobs, `blobs/<digest>` holds contents, compressed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        for name in ("trees", "blobs"):
            (root / name).mkdir(parents=True, exist_ok=True)

    def put(self, tree: Tree) -> SnapshotId:
        snapshot = tree_digest(tree)
        manifest = self._root / "trees" / snapshot
        if not manifest.exists():
            rows = [[path, tree[path].mode, tree[path].digest] for path in sorted(tree)]
            for file in tree.values():
                blob = self._root / "blobs" / file.digest
                if not blob.exists():
                    self._write(blob, file.data)
            self._write(manifest, json.dumps(rows).encode())
        return snapshot

    def get(self, snapshot: SnapshotId) -> Tree:
        if not snapshot.isalnum():
            raise StoreError(f"{snapshot!r} is not the name of a snapshot")
        try:
            rows = json.loads(self._read(self._root / "trees" / snapshot))
            tree = {path: File(self._read(self._root / "blobs" / digest), mode) for path, mode, digest in rows}
        except FileNotFoundError as error:
            raise StoreError(f"snapshot {snapshot} is not in {self._root}: {error.filename} is missing") from error
        except (OSError, ValueError, zlib.error) as error:
            raise StoreError(f"snapshot {snapshot} in {self._root} cannot be read: {error}") from error
        if tree_digest(tree) != snapshot:
            raise StoreError(f"snapshot {snapshot} in {self._root} does not match its digest")
        return tree

    def _write(self, target: Path, data: bytes) -> None:
        """Whole or not at all: a reader, or a second writer, never sees half a file."""
        try:
            fd, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(zlib.compress(data, 1))
                Path(temporary).replace(target)
            except OSError:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StoreError(f"cannot write a snapshot to {self._root}: {error.strerror}") from error

    @staticmethod
    def _read(path: Path) -> bytes:
        return zlib.decompress(path.read_bytes())
