"""A benchmark as people and programs read it.

Owns: `document`, `text`, `TARGETS`.
Invariant: every figure stands beside its target, and what could not be measured is said to be so.
Must not know: how figures are measured.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from typing import Any

from practicum.sandboxes.bench.run import Figures


@dataclass(frozen=True, slots=True)
class Target:
    """What is wanted of a figure, at `path` in the document: at most `at_most`, or for `boxes` at least."""

    path: tuple[str, ...]
    says: str
    limit: float
    unit: str = ""
    at_least: bool = False

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


TARGETS = (
    Target(("ratios", "create_cpu_vs_bwrap"), "create, run, destroy: cpu, as a part of bwrap's", 1.3, "×"),
    Target(("ratios", "create_cpu_vs_runc"), "create, run, destroy: cpu, as a part of runc's", 0.25, "×"),
    Target(("ratios", "create_cpu_vs_podman"), "create, run, destroy: cpu, as a part of podman's", 0.1, "×"),
    Target(("ratios", "command_p50_vs_subprocess"), "a command in a living box, beside a bare subprocess", 1.5, "×"),
    Target(("lease_p50_ms",), "lease of a warm box", 2.0, " ms"),
    Target(("reset_p50_ms",), "reset of a box with 10,000 changed files", 5.0, " ms"),
    Target(("fork_p50_ms",), "fork of a snapshot with 10,000 changed files", 5.0, " ms"),
    Target(("alive", "boxes"), "boxes alive at once", 500, "", at_least=True),
    Target(("alive", "added_memory_mb"), "memory that they add", 1000.0, " MB"),
    Target(("alive", "kill_to_empty_s"), "until nothing of them is left", 5.0, " s"),
)
_TOOLS = ("bwrap", "runc", "podman")


def document(figures: Figures) -> dict[str, Any]:
    """All figures as one JSON document. Ratios are ours divided by theirs; what could not be measured is null."""
    ratios = {f"create_cpu_vs_{tool}": _ratio(figures, "create_cpu", f"{tool}_cpu") for tool in _TOOLS}
    ratios["command_p50_vs_subprocess"] = _ratio(figures, "command", "subprocess")
    ratios["command_p50_vs_captured_subprocess"] = _ratio(figures, "command", "subprocess_captured")
    found: dict[str, Any] = {"ratios": ratios}
    for name in ("lease", "reset", "fork", "snapshot"):
        found[f"{name}_p50_ms"] = _rounded(figures.p50(name))
    found["alive"] = figures.alive
    found["floor"] = {"fork_exec_p50_ms": _rounded(figures.p50("floor")), "cpu_ms": _rounded(figures.p50("floor_cpu"))}
    found["p50_ms"] = {
        name: _rounded(figures.p50(name))
        for name in ("create", *_TOOLS, "command", "subprocess", "subprocess_captured")
    }
    found["cpu_ms"] = {name: _rounded(figures.p50(f"{name}_cpu")) for name in ("create", *_TOOLS)}
    found["samples"] = {name: len(values) for name, values in figures.ms.items()}
    found["missing"] = figures.missing
    found["cpu_measured_by"] = figures.cpu_by
    found["baseline_argv"] = figures.argv
    found["host"] = {
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "load_before": figures.load_before,
        "provider": figures.provider,
        "capabilities": figures.capabilities,
    }
    found["targets"] = {".".join(target.path): _verdict(target, found) for target in TARGETS}
    return found


def _ratio(figures: Figures, ours: str, theirs: str) -> float | None:
    one, other = figures.p50(ours), figures.p50(theirs)
    return round(one / other, 3) if one is not None and other else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _value(target: Target, found: dict[str, Any]) -> float | None:
    value: Any = found
    for name in target.path:
        value = value.get(name)
    return None if value is None else float(value)


def _verdict(target: Target, found: dict[str, Any]) -> dict[str, Any]:
    value = _value(target, found)
    return {
        "at_least" if target.at_least else "at_most": target.limit,
        "met": None if value is None else target.met(value),
    }


def text(found: dict[str, Any]) -> str:
    """A document for a terminal: figures beside targets, then what they were made of."""
    rows = []
    for target in TARGETS:
        value = _value(target, found)
        mark = "–" if value is None else "✓" if target.met(value) else "✗"
        shown = "not measured" if value is None else f"{value:.{0 if target.at_least else 2}f}{target.unit}"
        sign = "≥" if target.at_least else "≤"
        rows.append(f"  {mark} {target.says:<55}{shown:>13}   {sign} {target.limit:g}{target.unit}")
    cpu, wall, floor = found["cpu_ms"], found["p50_ms"], found["floor"]
    made = [f"{name} {cpu[name]:.2f} ({wall[name]:.2f})" for name in ("create", *_TOOLS) if cpu[name] is not None]
    rows.append(f"cpu ms for one box (and wall): {', '.join(made)}; fork and exec alone {floor['cpu_ms']:.2f}")
    rows.append(
        f"command {wall['command']:.2f} ms, subprocess {wall['subprocess']:.2f} ms, "
        f"with output captured {wall['subprocess_captured']:.2f} ms; snapshot {found['snapshot_p50_ms']:.2f} ms"
    )
    host = found["host"]
    rows.append(
        f"{host['processors']} processors, Linux {host['kernel']}, load {host['load_before']:.1f} before; "
        f"cpu by {found['cpu_measured_by']}"
    )
    rows += [f"{tool}: {why}" for tool, why in found["missing"].items()]
    return "\n".join(rows)
