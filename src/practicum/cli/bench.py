"""`practicum sandbox bench`: what boxes cost here, beside what the tools themselves cost.

Owns: the command `sandbox bench`.
Invariant: exit 0 means that all was measured, whatever came of it: a busy host is no failure of the boxes.
Must not know: how figures are measured.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from practicum.cli.output import JsonOption, Progress, emit


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer samples and 50 boxes at once instead of 500.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure boxes beside bubblewrap, runc and podman in one run: about a minute on an idle host."""
    from practicum.sandboxes.bench.report import document, text
    from practicum.sandboxes.bench.run import QUICK, STEPS, Sizes
    from practicum.sandboxes.bench.run import bench as measure

    progress = Progress("bench", STEPS)
    figures = asyncio.run(measure(QUICK if quick else Sizes(), progress.advance, limits_by="cgroup-or-rlimit"))
    found = document(figures)
    emit(found, text(found), as_json=as_json)
