"""The policy that a finished or interrupted run came to.

Owns: `load_trained`.
Invariant: the version that the run chose on its validation tasks is the one that acts.
Must not know: how it was trained.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from practicum.errors import StoreError
from practicum.pipeline.run import last_state
from practicum.policies.contract import Policy, Renderer
from practicum.policies.local.engine import Generator, LocalEngine
from practicum.policies.local.renderer import LocalRenderer
from practicum.policies.local.saved import build
from practicum.weights.store import VersionStore

GATHER_S = 0.02


def load_trained(run: Path) -> tuple[Policy, Renderer]:
    """Policy and renderer of the best version in the run folder `run`. Raises `StoreError` if it has none yet."""
    versions = VersionStore(run / "checkpoints")
    state = last_state(versions)
    if state is None:
        raise StoreError(f"{run} has no checkpoint yet", fix=f"continue it with: practicum train --resume {run}")
    model, tokenizer = build(partial(versions.read, state.best_version), versions.fetch(state.best_version))
    engine = LocalEngine(Generator(model, version=state.best_version), gather_s=GATHER_S)
    return engine, LocalRenderer(tokenizer)
