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
    config = _resolve(source, overrides or [], resume)
    if dry_run:
        _check_before(config)
        emit(config.model_dump(mode="json"), config.to_toml().rstrip(), as_json=as_json)
        return
    from practicum.pipeline.console import RunConsole
    from practicum.pipeline.train import train as run_training

    with RunConsole(json=as_json, updates=config.updates) as console:
        summary = run_training(config, root=runs, resume=resume, console=console, rescored=rescored)
    if as_json:
        emit(summary, "", as_json=True)


def _check_before(config: RunConfig) -> None:
    # Not for a plain run of the quickstart: what trains it takes seconds to import, and there is nothing to find.
    if config.policy.model is not None or config.tasks.path is not None or config.tasks.family == "functions":
        from practicum.pipeline.train import check_before

        check_before(config)


def _resolve(source: str | None, overrides: list[str], resume: Path | None) -> RunConfig:
    """The configuration to run. A resumed run keeps its own; saying something else is an error, never ignored."""
    from practicum.config import load_config, recipes

    if resume is None:
        if source is None:
            raise ConfigError(
                "what is to be trained is missing", fix=f"name a TOML file or one of: {', '.join(recipes())}"
            )
        return load_config(source, overrides)
    from practicum.pipeline.runfolder import RunFolder

    with RunFolder.open(resume) as folder:
        kept = folder.config
    fix = "leave it out, or start a new run without --resume"
    if overrides and load_config(resume / "config.toml", overrides) != kept:
        raise ConfigError(
            f"--set {overrides[0]}: {resume} was started otherwise, and a resumed run keeps its settings", fix=fix
        )
    if source is not None and load_config(source).name != kept.name:
        raise ConfigError(f"{source} is not what {resume} was started with ({kept.name})", fix=fix)
    return kept
