"""`practicum train`: one run, from its configuration to a better model.

Owns: the command `train`.
Invariant: `--dry-run` checks everything that can be checked without a box and changes nothing on disk.
Must not know: how training works.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from practicum.cli.output import JsonOption, emit
from practicum.errors import ConfigError

if TYPE_CHECKING:
    from practicum.config import RunConfig


def train(
    source: Annotated[
        str | None,
        typer.Argument(metavar="RUN.toml|NAME", help="A configuration file, or a recipe such as quickstart."),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=VALUE", help="Override one key; may be repeated.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="DIR", help="Continue the run in this folder.")] = None,
    rescored: Annotated[
        bool, typer.Option("--rescored", help="With --resume: start again on what `verifier rescore` found.")
    ] = False,
    runs: Annotated[Path, typer.Option(metavar="DIR", help="Where run folders are made.")] = Path("runs"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and print the resolved configuration only.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model on checkable work; `practicum train quickstart` is the main job."""
    if rescored and resume is None:
        raise ConfigError("--rescored goes with --resume", fix="--resume DIR --rescored")
    config = _new(source, overrides or []) if resume is None else _continued(resume, source, overrides or [], rescored)
    if dry_run:
        _check_before(config)
        emit(config.model_dump(mode="json"), config.to_toml().rstrip(), as_json=as_json)
        return
    from practicum.pipeline.console import RunConsole
    from practicum.pipeline.resuming import Source
    from practicum.pipeline.train import train as run_training

    begun = Source.read(source) if source is not None and resume is None else None
    with RunConsole(json=as_json, updates=config.updates) as console:
        summary = run_training(config, root=runs, resume=resume, console=console, rescored=rescored, source=begun)
    if as_json:
        emit(summary, "", as_json=True)


def _check_before(config: RunConfig) -> None:
    # Not for a plain run of the quickstart: what trains it takes seconds to import, and there is nothing to find.
    chosen = config.policy.model is not None or config.tasks.path is not None or config.tasks.family == "functions"
    if chosen or config.trainer.precision != "float32":
        from practicum.pipeline.train import check_before

        check_before(config)


def _new(source: str | None, overrides: list[str]) -> RunConfig:
    from practicum.config import load_config, recipes

    if source is None:
        raise ConfigError("what is to be trained is missing", fix=f"name a TOML file or one of: {', '.join(recipes())}")
    return load_config(source, overrides)


def _continued(resume: Path, source: str | None, overrides: list[str], rescored: bool) -> RunConfig:
    """The run's own configuration, with those of `overrides` that only extend it; a `source` must say what it said when
    the run was begun. Anything else is an error, never ignored."""
    from practicum.config import load_config
    from practicum.pipeline.resuming import check_changes, check_source, check_unfinished
    from practicum.pipeline.runfolder import RunFolder

    with RunFolder.open(resume) as folder:
        if source is not None:
            check_source(folder, source)
        if not rescored:
            check_unfinished(folder)
        config = load_config(resume / "config.toml", overrides)
        check_changes(folder, config)
    return config
