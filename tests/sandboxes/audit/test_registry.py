"""What counts as blocked."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from practicum.sandboxes.audit.inside.registry import PROBES, judge, opens, probe


def fails(number: int) -> Callable[[], object]:
    def attempt() -> object:
        raise OSError(number, os.strerror(number))

    return attempt


def test_only_an_explicit_refusal_is_blocked() -> None:
    """EPERM and its like are refusals; a complaint about arguments is not, unless it says that the call got through."""
    assert judge([("a", fails(errno.EPERM)), ("b", fails(errno.EROFS))]).status == "blocked"
    assert judge([("a", fails(errno.EPERM)), ("b", fails(errno.EINVAL))]).status == "unclear"
    assert judge([("a", fails(errno.EFAULT))], past=(errno.EFAULT,)).status == "open"
    assert judge([("a", fails(errno.ESRCH))], refusals=(errno.ESRCH,)).status == "blocked"
    assert judge([]).status == "unclear"


def test_one_success_is_open_whatever_else_was_refused() -> None:
    """The worst attempt decides, and its name is in the finding."""
    finding = judge([("a", fails(errno.EPERM)), ("the gap", lambda: None), ("c", fails(errno.EINVAL))])
    assert finding.status == "open"
    assert "the gap" in finding.observed


def test_opening_writes_nothing(tmp_path: object) -> None:
    """An attempt to open for writing neither creates nor changes the file."""
    path = f"{tmp_path}/state"
    assert judge([("open", opens(path, os.O_WRONLY))]).status == "blocked"  # ENOENT: it is not created
    with open(path, "w") as file:
        file.write("kept")
    assert judge([("open", opens(path, os.O_WRONLY))]).status == "open"
    with open(path) as file:
        assert file.read() == "kept"


def test_an_id_is_declared_once() -> None:
    """Two probes of one id would hide each other."""
    PROBES.setdefault("P0", None)  # type: ignore[arg-type]
    try:
        with pytest.raises(ValueError, match="P0"):
            probe("P0", "g", "t", "e", threat="x")(lambda: None)
    finally:
        del PROBES["P0"]
