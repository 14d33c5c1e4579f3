"""`practicum doctor --model`: whether a model can be sampled and trained here.

Owns: `examine`.
Invariant: exit code 1 where the model cannot be used, and the line that says why; 2 where there is no such model.
Must not know: how a part is checked.
"""

from __future__ import annotations

import dataclasses

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import emit


def examine(model: str, *, as_json: bool) -> None:
    """Print what holds and what does not for `model`, a folder or a known name."""
    from practicum.pipeline.agents import models_cache
    from practicum.policies.local.checkup import check_model
    from practicum.policies.local.known import model_folder

    folder = model_folder(model, models_cache())
    checks = check_model(folder)
    ok = all(check.ok for check in checks if check.required)
    lines = []
    for check in checks:
        mark = "✓" if check.ok else "✗" if check.required else "–"
        lines.append(f"  {mark} {check.name}: {check.detail}")
        if check.fix:
            lines.append(f"      fix: {check.fix}")
    lines.append(f"{model} can be used here" if ok else f"{model} cannot be used until what is marked ✗ is fixed")
    document = {"ok": ok, "folder": str(folder), "checks": [dataclasses.asdict(check) for check in checks]}
    emit(document, "\n".join(lines), as_json=as_json)
    if not ok:
        raise typer.Exit(NEGATIVE)
