"""`practicum doctor` and `practicum sandbox`: this machine, and boxes by hand.

Owns: the commands `doctor`, `sandbox run`, `sandbox gc`.
Invariant: nothing here runs a given command outside a box.
Must not know: tasks, policies.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from practicum.cli.audit import audit
from practicum.cli.bench import bench
from practicum.cli.doctor_model import examine
from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, emit
from practicum.cli.shell import shell

if TYPE_CHECKING:
    from practicum.sandboxes.contract import CommandResult
    from practicum.sandboxes.doctor import HostCheck

sandbox = typer.Typer(help="Boxes by hand: run one command, remove what was left behind.", no_args_is_help=True)
sandbox.command()(audit)
sandbox.command()(bench)
sandbox.command()(shell)


def doctor(
    model: Annotated[
        str | None,
        typer.Option(metavar="DIR|NAME", help="Check a model instead: a Hugging Face folder, or a known name."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What this machine can do, and the line that fixes what it cannot."""
    if model is not None:
        examine(model, as_json=as_json)
        return
    from practicum.sandboxes.doctor import check_host

    checks = [*check_host(), _git(), _torch()]
    ok = all(check.ok for check in checks if check.required)
    lines = []
    for check in checks:
        mark = "✓" if check.ok else "✗" if check.required else "–"
        lines.append(f"  {mark} {check.name}: {check.detail}")
        if check.fix:
            lines.append(f"      fix: {check.fix}")
    lines.append("practicum can run here" if ok else "practicum cannot run here until what is marked ✗ is fixed")
    emit({"ok": ok, "checks": [dataclasses.asdict(check) for check in checks]}, "\n".join(lines), as_json=as_json)
    if not ok:
        raise typer.Exit(NEGATIVE)


def _git() -> HostCheck:
    import shutil

    from practicum.sandboxes.doctor import HostCheck

    name, path = "git, for tasks out of repositories", shutil.which("git")
    if path is None:
        return HostCheck(name, False, "not installed", "sudo apt-get install git", required=False)
    return HostCheck(name, True, path, required=False)


def _torch() -> HostCheck:
    from importlib.metadata import PackageNotFoundError, version

    from practicum.sandboxes.doctor import HostCheck

    try:
        return HostCheck("torch, for training", True, version("torch"), required=False)
    except PackageNotFoundError:
        fix = "pip install -c constraints.txt -e '.[train]'"
        return HostCheck("torch, for training", False, "not installed", fix, required=False)


@sandbox.command("run")
def run_command(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD…", help="The command and its arguments.")],
    timeout_s: Annotated[float, typer.Option("--timeout", min=0.1, max=86400.0, metavar="SECONDS")] = 10.0,
    layer: Annotated[str, typer.Option(help="The root file system: python, host, or an imported image.")] = "python",
    as_json: JsonOption = False,
) -> None:
    """Run one command in a fresh, empty box."""
    result = asyncio.run(_run(command, timeout_s, layer))
    if as_json:
        document = dataclasses.asdict(result)
        for stream in ("stdout", "stderr"):
            document[stream] = document[stream].decode("utf-8", "backslashreplace")
        emit(document, "", as_json=True)
    else:
        sys.stdout.buffer.write(result.stdout)
        sys.stdout.buffer.flush()
        sys.stderr.buffer.write(result.stderr)
        if result.exit_code:
            why = "timed out" if result.timed_out else "out of memory" if result.oom_killed else "in the box"
            print(f"exit code {result.exit_code} ({why})", file=sys.stderr)
    if result.exit_code:
        raise typer.Exit(NEGATIVE)


@sandbox.command()
def gc(
    keep_days: Annotated[
        float, typer.Option(min=0, metavar="DAYS", help="Keep layers and trees that were used in the last DAYS.")
    ] = 30.0,
    as_json: JsonOption = False,
) -> None:
    """End boxes and remove files whose owner is dead; remove layers that nobody used for long."""
    from practicum.sandboxes.janitor import reconcile
    from practicum.sandboxes.layers import LayerCache

    cache = LayerCache()
    ended = reconcile(cache.state)
    removed = cache.prune(keep_days)
    lines = [f"{len(ended)} boxes ended", *(f"  {box}" for box in ended)]
    lines += [f"{len(removed)} layers and trees removed", *(f"  {name}" for name in removed)]
    emit({"ended": ended, "removed": removed}, "\n".join(lines), as_json=as_json)


@sandbox.command("import")
def import_image(
    path: Annotated[Path, typer.Argument(help="An OCI layout folder or archive, or what `docker save` wrote.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What `FROM` and `layer` call it.")],
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Which of several images.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a container image from a local file a layer that boxes can start from."""
    from practicum.sandboxes.layers import LayerCache

    layer = LayerCache().import_image(path, name, tag=tag)
    emit(dict(layer.info), f"layer {layer.name}: {layer.digest}", as_json=as_json)


def _known(layer: str) -> None:
    """A name that was typed wrong is bad input, not a fault of this host."""
    from practicum.errors import ConfigError, CreateFailed
    from practicum.sandboxes.layers import LayerCache

    try:
        LayerCache().check(layer)
    except CreateFailed as error:
        raise ConfigError(error.message, fix=error.fix) from error


async def _run(command: list[str], timeout_s: float, layer: str) -> CommandResult:
    from practicum.pipeline.execute import open_boxes
    from practicum.records.task import Limits
    from practicum.sandboxes.contract import BoxSpec

    _known(layer)
    spec = BoxSpec(f"run-{uuid.uuid4().hex[:12]}", layer, limits=Limits(command_s=timeout_s))
    async with open_boxes() as provider, provider.create(spec) as box:
        return await box.run(command, timeout_s=timeout_s)
