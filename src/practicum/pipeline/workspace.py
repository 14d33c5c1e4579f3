"""A workspace on this host's disk, read the way a box's is.

Owns: `read_workspace`.
Invariant: links are never followed; what is not a plain file is named, not read.
Must not know: what the files mean.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from practicum.errors import SubmissionError
from practicum.records.tree import File
from practicum.sandboxes.contract import Listing
from practicum.tasks.folders import file_mode
from practicum.verification.findings import is_byproduct


def read_workspace(folder: Path, *, max_bytes: int) -> Listing:
    """All files below `folder`; by-products of tools are passed over, irregular ones are named.

    Raises `SubmissionError` where `folder` is no folder, or holds more than `max_bytes`.
    """
    if not folder.is_dir():
        raise SubmissionError(f"{folder} is not a folder", fix="--workspace names the workspace after the work")
    files: dict[str, File] = {}
    irregular: dict[str, str] = {}
    size = 0
    for place, folders, names in os.walk(folder):
        here = Path(place).relative_to(folder)
        folders[:] = [name for name in folders if not is_byproduct((here / name / "x").as_posix())]
        for name in [*names, *(name for name in folders if (folder / here / name).is_symlink())]:
            path = (here / name).as_posix()
            status = (folder / path).lstat()
            if stat.S_ISREG(status.st_mode):
                size += status.st_size
                if size > max_bytes:
                    raise SubmissionError(
                        f"{folder} holds more than {max_bytes} bytes",
                        fix="name the workspace itself, not a folder above it",
                    )
                files[path] = File((folder / path).read_bytes(), file_mode(status.st_mode))
            else:
                irregular[path] = "link" if stat.S_ISLNK(status.st_mode) else "special"
    return Listing(files, irregular)
