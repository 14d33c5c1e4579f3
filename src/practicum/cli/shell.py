"""`practicum sandbox shell`: one box to try things in by hand.

Owns: the command `sandbox shell`.
Invariant: each line is run in the same living box, and nothing of it on the host; what a box says is printed and never
acted upon.
Must not know: tasks, policies.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import shlex
import sys
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from practicum.sandboxes.contract import CommandResult, Sandbox

_STATE = "/tmp/.practicum-shell"
_LONGEST_PATH = 4096
# Lines share where they are and what they export, by a file in the box that each reads first and writes last.
_LINE = f"""
if [ -f {_STATE} ]; then . {_STATE}; fi
if [ -f {_STATE}.cwd ]; then cd "$(cat {_STATE}.cwd)"; fi
trap 'export -p > {_STATE}; pwd > {_STATE}.cwd' EXIT
eval "$1"
"""


def shell(
    timeout_s: Annotated[float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="For each line.")] = 60.0,
    layer: Annotated[str, typer.Option(help="What the box's file system is.")] = "python",
) -> None:
    """Run lines in one box until `exit`; the folder and exported variables are kept from line to line."""
    with contextlib.suppress(ImportError):  # line editing, where this python has it
        importlib.import_module("readline")
    # One loop for all lines, and none that runs while a line is awaited: an interrupt then is an interrupt here.
    with asyncio.Runner() as runner:
        life = contextlib.AsyncExitStack()
        try:
            box = runner.run(_enter(life, layer, timeout_s))
            _converse(runner, box, timeout_s)
        finally:
            runner.run(life.aclose())


async def _enter(life: contextlib.AsyncExitStack, layer: str, timeout_s: float) -> Sandbox:
    from practicum.pipeline.execute import open_boxes
    from practicum.records.task import Limits
    from practicum.sandboxes.contract import BoxSpec

    provider = await life.enter_async_context(open_boxes())
    spec = BoxSpec(f"shell-{uuid.uuid4().hex[:12]}", layer=layer, limits=Limits(command_s=timeout_s))
    return await life.enter_async_context(provider.create(spec))


def _converse(runner: asyncio.Runner, box: Sandbox, timeout_s: float) -> None:
    terminal = sys.stdin.isatty()
    while True:
        try:
            line = input(f"box:{runner.run(_where(box))}$ " if terminal else "")
        except KeyboardInterrupt:
            print()
            continue
        except EOFError:
            print(end="\n" if terminal else "")
            return
        if _is_exit(line):
            return
        if not line.strip():
            continue
        try:
            result = runner.run(box.run(["sh", "-c", _LINE, "sh", line], timeout_s=timeout_s))
        except KeyboardInterrupt:  # the command has been killed, and the box lives on
            print("interrupted", file=sys.stderr)
            continue
        _show(result)


def _is_exit(line: str) -> bool:
    try:
        return shlex.split(line)[:1] == ["exit"]
    except ValueError:  # an open quote: the shell will say so
        return False


async def _where(box: Sandbox) -> str:
    """Where the next line will run, as the box says."""
    from practicum.errors import BoxPathError

    try:
        said = await box.read(f"{_STATE}.cwd", max_bytes=_LONGEST_PATH)
    except BoxPathError:
        said = b"/app"
    return "".join(c if c.isprintable() else "?" for c in said.decode(errors="replace").rstrip("\n"))


def _show(result: CommandResult) -> None:
    sys.stdout.buffer.write(result.stdout)
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(result.stderr)
    sys.stderr.buffer.flush()
    if result.exit_code:
        why = " (timed out)" if result.timed_out else " (out of memory)" if result.oom_killed else ""
        print(f"exit code {result.exit_code}{why}", file=sys.stderr)
