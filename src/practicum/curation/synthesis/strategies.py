"""The ways of making tasks, by the names people give.

Owns: `STRATEGIES`, `strategies_named`.
Invariant: a name stands for one way; the order is that in which they take turns.
Must not know: how candidates are tried.
"""

from __future__ import annotations

from collections.abc import Sequence

from practicum.curation.synthesis.bugs import bug_strategies
from practicum.curation.synthesis.removal import FeatureRemoval
from practicum.curation.synthesis.strategy import Strategy
from practicum.curation.synthesis.testwriting import TestWriting
from practicum.errors import ConfigError

STRATEGIES: tuple[Strategy, ...] = (*bug_strategies(), FeatureRemoval(), TestWriting())


def strategies_named(names: Sequence[str]) -> tuple[Strategy, ...]:
    """The strategies of these names, all of them where there are none. Raises `ConfigError` for an unknown name."""
    by_name = {strategy.name: strategy for strategy in STRATEGIES}
    unknown = sorted(set(names) - by_name.keys())
    if unknown:
        raise ConfigError(f"there is no strategy {unknown[0]!r}", fix=f"strategies: {', '.join(by_name)}")
    return tuple(by_name[name] for name in dict.fromkeys(names)) or STRATEGIES
