"""A name for the code that decides.

Owns: `source_digest`. Invariant: it changes with any source file of the verifier. Must not know: what they do.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources


@cache
def source_digest() -> str:
    """Twelve hexadecimal digits over all of `practicum.verification`."""
    digest = hashlib.sha256()
    todo = [resources.files("practicum.verification")]
    while todo:
        for path in sorted(todo.pop().iterdir(), key=lambda item: item.name):
            if path.is_dir() and path.name != "__pycache__":
                todo.append(path)
            elif path.name.endswith(".py"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
