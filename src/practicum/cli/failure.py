"""What a person is told when a command cannot go on, and the process's exit code.

Owns: the map from exceptions to `Failure`, and how one is printed.
Invariant: an expected condition is one message with its fix, never a traceback; a bug always shows its own.
Must not know: any command.
"""

from __future__ import annotations

import asyncio
import errno
import json
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from typer.exceptions import Abort, TyperException

from practicum.cli.output import end_progress
from practicum.errors import PracticumError

NEGATIVE, BAD_INPUT, INFRASTRUCTURE = 1, 2, 3
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + the signal, as a shell shows it

_PATH = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP}
_PATH_IF_NAMED = {errno.EINVAL, errno.EIO}  # about anything else, they say that a call or a device is at fault
_LONGEST_PATH = 200  # characters shown


@dataclass(frozen=True, slots=True)
class Failure:
    """One condition that ends a command. `fix` says what to do, `bug` that it was not foreseen."""

    kind: str
    message: str
    fix: str | None
    exit_code: int
    bug: bool = False


def failure_of(error: BaseException) -> Failure:
    """The failure to report for `error`; of a group of errors, the first that is a bug, else the first."""
    failures = [_failure_of_leaf(leaf) for leaf in _leaves(error)]
    return next((failure for failure in failures if failure.bug), failures[0])


def report(failure: Failure, error: BaseException, *, as_json: bool) -> None:
    """Print `failure` on stderr, and as a JSON document on stdout where `as_json`."""
    if failure.exit_code == BROKEN_PIPE:
        return
    end_progress()
    if failure.bug:
        traceback.print_exception(error)
    prefix = "" if failure.exit_code == INTERRUPTED else "error: "
    print(f"{prefix}{failure.message}", file=sys.stderr)
    if failure.fix:
        print(f"  fix: {failure.fix}", file=sys.stderr)
    if as_json:
        document = {"error": {"kind": failure.kind, "message": failure.message, "fix": failure.fix}}
        print(json.dumps(document), flush=True)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _failure_of_leaf(error: BaseException) -> Failure:
    if isinstance(error, PracticumError):
        return Failure(error.kind, error.message, error.fix, error.exit_code)
    if isinstance(error, TyperException):
        return _usage(error)
    if isinstance(error, (KeyboardInterrupt, asyncio.CancelledError, Abort)):
        return Failure("Interrupted", str(error) or "stopped cleanly", None, INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        return Failure("BrokenPipe", "the reader of the output went away", None, BROKEN_PIPE)
    if isinstance(error, OSError):
        return _system(error)
    if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "safetensors", "tokenizers"):
        return Failure(
            "ConfigError",
            f"this command needs {error.name}, which is not installed",
            "pip install -c constraints.txt -e '.[train]'   (or run ./quickstart.sh once)",
            BAD_INPUT,
        )
    message = f"{type(error).__name__}: {error}"
    return Failure("InternalError", message, "this is a bug in practicum; please report it", INFRASTRUCTURE, bug=True)


def _usage(error: TyperException) -> Failure:
    context = getattr(error, "ctx", None)  # only usage errors carry one
    command = context.command_path if context is not None else "practicum"
    message = error.format_message().rstrip(".").replace(": Value error, ", ": ", 1)  # pydantic's own prefix
    return Failure("UsageError", message, f"see: {command} --help", BAD_INPUT)


def _system(error: OSError) -> Failure:
    where = f": {_shortened(str(error.filename))}" if error.filename else ""
    message = f"{error.strerror or error}{where}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Failure("StoreError", message, "free some space, or choose another folder", INFRASTRUCTURE)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Failure(
            "StoreError", message, "choose a folder that you may use, or change its permissions", INFRASTRUCTURE
        )
    if error.errno in _PATH or (error.errno in _PATH_IF_NAMED and error.filename):
        return Failure("ConfigError", message, "check the path", BAD_INPUT)
    return Failure("InternalError", f"{type(error).__name__}: {message}", None, INFRASTRUCTURE, bug=True)


def _shortened(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}… ({len(path)} characters)"
