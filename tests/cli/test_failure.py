"""From exceptions to messages and exit codes."""

from __future__ import annotations

import asyncio
import errno

import pytest

from practicum.cli.failure import failure_of
from practicum.errors import ConfigError, NothingLearned, SandboxDied, StoreError


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (ConfigError("bad key"), "ConfigError", 2),
        (SandboxDied("gone"), "SandboxDied", 3),
        (NothingLearned("no update"), "NothingLearned", 2),
        (KeyboardInterrupt(), "Interrupted", 130),
        (BrokenPipeError(), "BrokenPipe", 141),
        (OSError(errno.ENOSPC, "No space left on device", "runs/x"), "StoreError", 3),
        (PermissionError(errno.EACCES, "Permission denied", "/root/x"), "StoreError", 3),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), "ConfigError", 2),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 5000), "ConfigError", 2),
        (OSError(errno.ELOOP, "Too many levels of symbolic links", "x"), "ConfigError", 2),
        (OSError(errno.EINVAL, "Invalid argument", "x"), "ConfigError", 2),
        (OSError(errno.EIO, "Input/output error", "/proc/self/mem"), "ConfigError", 2),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), "ConfigError", 2),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_expected_conditions(error: BaseException, kind: str, code: int) -> None:
    """What can be foreseen has a kind and an exit code, and is no bug."""
    failure = failure_of(error)
    assert (failure.kind, failure.exit_code, failure.bug) == (kind, code, False)
    assert 0 < len(failure.message) < 300


def test_path_is_named() -> None:
    """A system error says which path it is about."""
    assert "runs/x" in failure_of(OSError(errno.ENOSPC, "No space left on device", "runs/x")).message


def test_bug_is_a_bug() -> None:
    """What was not foreseen is reported as a bug, and is never taken for a negative result."""
    failure = failure_of(ZeroDivisionError("division by zero"))
    assert failure.bug
    assert failure.exit_code == 3


def test_groups_are_opened() -> None:
    """An error that several tasks carried out together reads as itself; a bug among them is not hidden."""
    expected = BaseExceptionGroup("", [BaseExceptionGroup("", [StoreError("full")]), ConfigError("later")])
    assert failure_of(expected).message == "full"
    assert failure_of(ExceptionGroup("", [StoreError("full"), KeyError("x")])).bug


def test_interrupt_carries_its_message() -> None:
    """A command can say how to go on after Ctrl-C."""
    assert failure_of(KeyboardInterrupt("continue with --resume")).message == "continue with --resume"


def test_cancellation_is_an_interrupt() -> None:
    """A cancelled main task reads as stopped, not as a bug."""
    assert failure_of(asyncio.CancelledError()).exit_code == 130
