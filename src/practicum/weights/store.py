"""Policy versions and checkpoints on disk: one folder a version.

Owns: `checkpoints/<version>/` under a run: `model.safetensors`, the model's own files, whatever a trainer adds.
Invariant: a version's folder is whole or absent (written aside, renamed); a version is replaced
only by a resume that makes it anew.
Must not know: architectures, optimisers, who reads.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from practicum.errors import StoreError

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = "model.safetensors"


class VersionStore:
    """The versions under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, version: int) -> Path:
        return self.folder / f"{version:05d}"

    def versions(self) -> list[int]:
        """Versions that are whole, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(int(p.name) for p in self.folder.iterdir() if p.name.isdigit() and (p / WEIGHTS).is_file())

    def publish(
        self,
        version: int,
        tensors: Mapping[str, Tensor],
        files: Mapping[str, str],
        *,
        extra: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write a version: `tensors`, text `files` by name, and what `extra` adds to the folder it is given.

        Raises `StoreError`, leaving nothing half-written, where the disk refuses.
        """
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        target = self.path(version)
        draft = self.folder / f".tmp-{target.name}"
        try:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, draft / WEIGHTS)
            for name, text in files.items():
                (draft / name).write_text(text, "utf-8")
            if extra is not None:
                extra(draft)
            shutil.rmtree(target, ignore_errors=True)
            draft.replace(target)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise StoreError(
                f"cannot write checkpoint {target}: {error}", fix="free some disk, then continue with --resume"
            ) from error
        return target

    def fetch(self, version: int) -> dict[str, Tensor]:
        """The weights of `version`. Raises `StoreError` if they are missing or damaged."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self.path(version) / WEIGHTS
        try:
            tensors: dict[str, Tensor] = load_file(path)
        except (OSError, SafetensorError) as error:
            raise StoreError(f"cannot read the weights of version {version} at {path}: {error}") from error
        return tensors

    def read(self, version: int, name: str) -> str:
        """A text file of `version`. Raises `StoreError` if it is missing."""
        path = self.path(version) / name
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"cannot read {path}: {error}") from error

    def prune(self, keep: Collection[int]) -> None:
        """Remove every version that is not in `keep`, and drafts left by an interruption."""
        for version in self.versions():
            if version not in keep:
                shutil.rmtree(self.path(version), ignore_errors=True)
        for draft in self.folder.glob(".tmp-*"):
            shutil.rmtree(draft, ignore_errors=True)
