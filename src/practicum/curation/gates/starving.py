"""Whether a verdict is the busy host's doing.

Owns: `starved`.
Invariant: only tests that ran out of time are ever put down to the host, and only where they waited for most of it.
Must not know: what verdict was to be expected. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from practicum.records.verdict import Verdict

_BUSY_LOAD, _BUSY_SHARE, _BUSY_S = 3.0, 0.6, 1.0
_LATE = "in time"  # how runners say of a test that its time was over


def starved(verdict: Verdict, load: float) -> bool:
    """Whether tests ran out of time that they spent waiting, with `load` processes for each processor."""
    details = verdict.evidence.get("details", {})
    late = verdict.evidence.get("how") == "timeout" or any(_LATE in str(why) for why in details.values())
    if load < _BUSY_LOAD or not late:
        return False
    scripts = verdict.evidence.get("scripts", {})
    runs = [verdict.evidence.get("driver"), verdict.evidence.get("script"), *scripts.values()]
    return any(
        run["wall_s"] > _BUSY_S and run["cpu_s"] < _BUSY_SHARE * run["wall_s"]
        for run in runs
        if isinstance(run, Mapping) and "wall_s" in run
    )
