"""Whether the test framework is still the one that was loaded.

Owns: `fingerprint`, `changes`. Invariant: taken before the workspace is importable. It runs in the process that it
looks at, so what it says is a hint for people and never a proof. Must not know: tests.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` itself would cost more than all the rest
if TYPE_CHECKING:
    from typing import Any

MODULES = {
    "unittest": ("unittest.case", "unittest.result", "unittest.suite", "unittest.runner", "unittest.loader"),
    "pytest": (
        *("_pytest.reports", "_pytest.runner", "_pytest.python", "_pytest.python_api", "_pytest.raises"),
        *("_pytest.assertion.rewrite", "_pytest.outcomes", "_pytest.main", "_pytest.nodes", "pluggy._hooks"),
    ),
}
NAMES = 10  # of what changed


def fingerprint(kind: str, own: tuple[Any, ...]) -> dict[str, tuple[int, int]]:
    """Every function of the framework's deciding modules and of `own` classes, and the code that it runs."""
    found: dict[str, tuple[int, int]] = {}
    for name in (*MODULES[kind], "math"):
        module = sys.modules.get(name)
        for key, value in list(vars(module).items()) if module else []:
            if isinstance(value, type):
                if value.__module__ == name:
                    found.update(_members(f"{name}.{key}", value))
            elif callable(value):
                found[f"{name}.{key}"] = _identity(value)
    for kind_of_ours in own:
        found.update(_members(kind_of_ours.__name__, kind_of_ours))
    return found


def _members(prefix: str, owner: type) -> dict[str, tuple[int, int]]:
    members = {f"{prefix}.{key}": _identity(value) for key, value in list(vars(owner).items()) if callable(value)}
    wrapped = (classmethod, staticmethod, property)
    members.update({f"{prefix}.{k}": (id(v), 0) for k, v in list(vars(owner).items()) if isinstance(v, wrapped)})
    return members


def _identity(value: Any) -> tuple[int, int]:
    return id(value), id(getattr(value, "__code__", None))


def changes(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> str:
    """Names of what was replaced since, and of hooks that follow each line; "" where nothing was."""
    names = [name for name, identity in before.items() if after.get(name) != identity]
    names += [f"sys.{hook}" for hook in ("gettrace", "getprofile") if getattr(sys, hook)() is not None]
    return ", ".join(names[:NAMES])
