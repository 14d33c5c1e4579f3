"""practicum: checkable work in, a better model out, with evidence that the reward was honest."""

from __future__ import annotations

__all__ = ["__version__"]
__version__ = "0.1.0"
