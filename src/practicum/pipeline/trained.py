"""The policy that a finished or interrupted run came to.

Owns: `load_trained`, `chosen_version`.
Invariant: the version that the run chose on its validation tasks is the one that acts.
Must not know: how it was trained.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from practicum.errors import StoreError
from practicum.pipeline.run import last_state
from practicum.policies.contract import Policy, Renderer
from practicum.policies.local.engine import LocalEngine
from practicum.policies.local.generator import Generator
from practicum.policies.local.saved import Saved
from practicum.weights.store import WEIGHTS, VersionStore


def load_trained(run: Path) -> tuple[Policy, Renderer]:
    """Policy and renderer of the best version in the run folder `run`. Raises `StoreError` if it has none yet."""
    versions, version = _best(run)
    model, renderer = Saved(versions.read, versions.fetch).build(version)
    return LocalEngine(Generator(model, version=version), continuous=True), renderer


def chosen_version(run: Path) -> tuple[int, str]:
    """Number of the best version in the run folder `run`, and the SHA-256 of its weights. Raises `StoreError`."""
    versions, version = _best(run)
    return version, hashlib.sha256((versions.path(version) / WEIGHTS).read_bytes()).hexdigest()


def _best(run: Path) -> tuple[VersionStore, int]:
    versions = VersionStore(run / "checkpoints")
    state = last_state(versions)
    if state is None:
        raise StoreError(f"{run} has no checkpoint yet", fix=f"continue it with: practicum train --resume {run}")
    return versions, state.best_version
