"""Builds the native program of the sandboxes when the package is built or installed for development."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeProgram(BuildHookInterface[Any]):
    """Compiles for every machine, so that one wheel serves them all."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source = Path(self.root, "src/practicum/sandboxes/native/__init__.py")
        spec = importlib.util.spec_from_file_location("native", source)
        assert spec is not None
        assert spec.loader is not None
        native = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(native)
        build_data["artifacts"] += [str(path.relative_to(self.root)) for path in native.build()]
