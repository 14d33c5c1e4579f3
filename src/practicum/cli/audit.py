"""`practicum sandbox audit`: attempts to get out of a box, and the proof that each would be noticed.

Owns: the command `sandbox audit`.
Invariant: exit 0 means that every probe was blocked and that every weakened box was noticed; 1 that one was not;
3 that no box can be made here at all.
Must not know: any probe.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, Progress, emit

if TYPE_CHECKING:
    from practicum.sandboxes.contract import SandboxProvider

Provider = Literal["bubblewrap", "runc", "runsc"]


def audit(
    provider: Annotated[Provider, typer.Option(help="Which runtime makes the boxes.")] = "bubblewrap",
    as_json: JsonOption = False,
) -> None:
    """Try to get out of a box in a hundred ways, then prove on weakened boxes that each would be noticed."""
    from practicum.sandboxes.audit.report import document, text
    from practicum.sandboxes.audit.run import audit as carry_out
    from practicum.sandboxes.audit.run import steps

    progress = Progress("audit", steps())
    report = asyncio.run(carry_out(lambda: _open(provider), on_done=progress.advance))
    emit(document(report), text(report), as_json=as_json)
    if not report.ok:
        raise typer.Exit(NEGATIVE)


def _open(provider: Provider) -> AbstractAsyncContextManager[SandboxProvider]:
    from practicum.sandboxes.provider import open_provider

    return open_provider(run_id="audit", limits_by="cgroup-or-rlimit", runtime=provider)
