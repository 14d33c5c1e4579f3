"""Scenarios by name or from files.

Owns: `load_scenario`, `scenarios`.
Invariant: what cannot be read or simulated is a `ConfigError` that says where it was set, and what to write instead.
Must not know: which keys there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from practicum.config.load import Shelf, load_model
from practicum.simulation.scenario import Scenario

_SHELF = Shelf("scenario", "simulation/scenarios")


def scenarios() -> dict[str, str]:
    """What the shipped scenarios are about, by name: the first line of each file."""
    return {name: _SHELF.text(name).partition("\n")[0].lstrip("# ") for name in _SHELF.names()}


def load_scenario(source: str | Path, overrides: Iterable[str] = ()) -> Scenario:
    """The scenario of a TOML file, or the shipped one of that name, with `a.b=value`s. Raises `ConfigError`."""
    return load_model(Scenario, _SHELF, [source], overrides)
