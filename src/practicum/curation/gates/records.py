"""Where the records of checks stand.

Owns: `records_of`. Invariant: a release stays as it is: its records stand beside it, and go on from a copy of its
ledger. Must not know: what gates do.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from practicum.curation.ledger import FILE, ledger_path
from practicum.curation.release import release_of
from practicum.errors import StoreError


def records_of(taskset: Path) -> Path:
    """TASKSET/.practicum; of a release OUT/NAME, OUT/.practicum/NAME.

    Raises `TaskError` where it is a release that was altered, and `StoreError` where its ledger cannot be copied.
    """
    release = release_of(taskset)
    if release is None:
        return ledger_path(taskset).parent
    folder = release.path.parent / ".practicum" / release.path.name
    ledger = release.path / ".practicum" / FILE
    if ledger.exists() and not (folder / FILE).exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ledger, folder / FILE)
        except OSError as error:
            fix = "name another folder for the records with --state DIR"
            raise StoreError(f"cannot write {folder}: {error.strerror or error}", fix=fix) from error
    return folder
