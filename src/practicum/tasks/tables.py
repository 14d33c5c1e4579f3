"""Reading TOML tables strictly.

Owns: `Table`, which hands out typed values and complains about what nobody asked for.
Invariant: an unknown key, or a value of the wrong type, is a `TaskError` that names the key, the file and,
where one is near, the key that was probably meant.
Must not know: which keys a task has.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from practicum.errors import TaskError

T = TypeVar("T")
_NAMES = {str: "a string", bool: "true or false", dict: "a table", int: "a whole number", float: "a number"}


class Table:
    """One TOML table. Every `take` names a known key; `finish` refuses the rest."""

    def __init__(self, values: Mapping[str, Any], *, name: str, file: str) -> None:
        self._values = values
        self._name = name
        self.file = file
        self._known: list[str] = []

    def where(self, key: str) -> str:
        """How a message names `key` of this table."""
        return f"{self.file}: `{key}` in [{self._name}]" if self._name else f"{self.file}: `{key}`"

    def has(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> object:
        """The value of `key` as it stands, or None; it does not count as known."""
        return self._values.get(key)

    def take(self, key: str, kind: type[T], default: T) -> T:
        """The value of `key`, or `default`; a whole number counts as a number."""
        self._known.append(key)
        if key not in self._values:
            return default
        value: object = self._values[key]
        if kind is float and type(value) is int:
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise TaskError(f"{self.where(key)} must be {_NAMES[kind]}, not {value!r}")
        return value

    def optional(self, key: str, kind: type[T]) -> T | None:
        """The value of `key`, or None where it is not given."""
        if key in self._values:
            given: T = self._values[key]
            return self.take(key, kind, given)
        self._known.append(key)
        return None

    def required(self, key: str, kind: type[T]) -> T:
        """The value of `key`, which must be given."""
        value = self.optional(key, kind)
        if value is None:
            raise TaskError(f"{self.where(key)} is missing")
        return value

    def strings(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of strings."""
        self._known.append(key)
        if key not in self._values:
            return default
        value = self._values[key]
        if type(value) is not list or any(type(item) is not str for item in value):
            raise TaskError(f"{self.where(key)} must be a list of strings, not {value!r}")
        return tuple(value)

    def table(self, key: str) -> Table | None:
        """The table below `key`, or None."""
        value = self.optional(key, dict)
        if value is None:
            return None
        return Table(value, name=f"{self._name}.{key}" if self._name else key, file=self.file)

    def finish(self) -> None:
        """Refuse keys that no `take` named."""
        for key in self._values:
            if key not in self._known:
                near = difflib.get_close_matches(key, self._known, n=2)
                meant = f"did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else None
                known = ", ".join(sorted(set(self._known)))
                raise TaskError(f"{self.where(key)} is not a known key", fix=meant or f"known keys: {known}")
