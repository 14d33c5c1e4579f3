"""The run configuration: strict models, TOML files and `--set` overrides.

Owns: `RunConfig`, `load_config`, `read_config`, the recipes shipped under `practicum/recipes/`.
Invariant: a key that nobody reads, a value of the wrong type or a combination that cannot be run never gets past
`load_config`; what it returns, written by `to_toml` and loaded again, is equal.
Must not know: which classes implement what.
"""

from practicum.config.load import load_config, read_config, recipes
from practicum.config.sections import RunConfig

__all__ = ["RunConfig", "load_config", "read_config", "recipes"]
