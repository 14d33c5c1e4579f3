"""`practicum export`: a trained model as a folder for other programs.

Owns: the command `export`.
Invariant: nothing is written into a run folder.
Must not know: file formats.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from practicum.cli.output import JsonOption, emit


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")],
    target: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to make.")],
    adapters: Annotated[
        bool, typer.Option("--adapters", help="The adapters alone, to be loaded upon the base.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """The version that RUN chose, as a Hugging Face folder with a model card."""
    from practicum.pipeline.exporting import export_run

    facts = export_run(run, target, adapters=adapters)
    emit(facts, f"version {facts['version']} of {facts['run']} is in {target}", as_json=as_json)
