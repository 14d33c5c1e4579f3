"""What every section of a run's configuration has in common.

Owns: `Section`.
Invariant: a section is frozen, strict about types, and refuses keys that it does not know.
Must not know: any key.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of the sections."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
