"""The `practicum` command: its groups, and the boundary where errors become messages and exit codes.

Owns: `app` and `run`.
Invariant: `practicum --help` imports no model, store or HTTP library; every expected error ends in one message.
Must not know: what the commands do.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Annotated

import typer

from practicum import __version__
from practicum.cli import (
    attempts,
    export,
    host,
    runs,
    serve,
    simulate,
    spot_check,
    tasks,
    train,
    verifier,
    verifier_runs,
)
from practicum.cli.failure import INTERRUPTED, failure_of, report
from practicum.errors import StoreError

app = typer.Typer(
    name="practicum",
    help="Turns checkable work into a better model: tasks, sandboxes, verdicts by execution, training.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: it is read in logs as often as on terminals, and starts faster
)
app.add_typer(tasks.app, name="tasks")
app.add_typer(host.sandbox, name="sandbox")
app.add_typer(runs.app, name="runs")
for _command in (verifier_runs.canary, verifier_runs.noise, verifier_runs.rescore, spot_check.spot_check):
    verifier.app.command()(_command)
app.add_typer(verifier.app, name="verifier")
_COMMANDS: tuple[Callable[..., None], ...] = (
    host.doctor,
    train.train,
    serve.serve,
    attempts.rollout,
    attempts.verify,
    attempts.evaluate,
    export.export,
    simulate.simulate,
)
for _command in _COMMANDS:
    app.command("eval" if _command is attempts.evaluate else None)(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"practicum {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version and exit.")
    ] = False,
) -> None:
    return


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 success, 1 negative result, 2 bad usage or input, 3 infrastructure fault."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = given[: given.index("--")] if "--" in given else given
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale without ✓ is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    stop = _Stop()
    for signum in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) is signal.SIG_DFL:  # not under nohup
            signal.signal(signum, stop)
    try:
        if sys.stdout is None:  # before any work: the next file opened would become what children print to
            raise StoreError("there is no standard output to write to", fix="to discard the output: >/dev/null")
        # not app(): that replaces an interrupt, and the message it carries, by a bare exit
        command = typer.main.get_command(app)
        with command.make_context("practicum", list(given)) as context:  # a copy: parsing empties it
            command.invoke(context)
        sys.stdout.flush()
        code = 0
    except typer.Exit as exit_:
        code = exit_.exit_code
    except BaseException as error:  # noqa: BLE001 - the outermost boundary: it ends in a message or a traceback
        code = _tell(error, as_json="--json" in options)
        if code == INTERRUPTED and stop.signum:
            code = 128 + stop.signum
    sys.exit(code)


def _tell(error: BaseException, *, as_json: bool) -> int:
    """Report `error`; the exit code. Where stdout cannot be written, stderr alone says it."""
    failure = failure_of(error)
    try:
        report(failure, error, as_json=as_json)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        # the interpreter flushes stdout once more at exit, and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return failure.exit_code


class _Stop:
    """SIGTERM and SIGHUP stop a command the way Ctrl-C does, so that there is one clean way out."""

    signum: int | None = None

    def __call__(self, signum: int, _frame: FrameType | None) -> None:
        self.signum = signum
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job of a script: Ctrl-C is not for it
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)
