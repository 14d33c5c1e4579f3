"""`practicum sandbox shell` and `practicum sandbox bench`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def shell(lines: str, *options: str) -> tuple[str, str]:
    """What a shell that is given `lines` writes to its output and its error stream."""
    done = subprocess.run(
        [sys.executable, "-m", "practicum", "sandbox", "shell", *options],
        input=lines, env=os.environ | {"SECRET": "hunter2"}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_lines_share_a_box() -> None:
    """Files, the folder and exported variables last from line to line; other variables do not."""
    out, err = shell("pwd\nmkdir d; cd d; export A='x  y'; B=1\necho \"$A:$B\"; pwd\necho on > f\ncat /app/d/f\n")
    assert out == "/app\nx  y:\n/app/d\non\n"
    assert err == ""


def test_what_goes_wrong_is_shown() -> None:
    """Exit codes, a line past its time and one that cannot be parsed are told, and the shell goes on."""
    out, err = shell("(exit 3)\nsleep 9\necho 'open\n\necho on; env\n", "--timeout", "0.5")
    assert out.startswith("on\n")
    assert "hunter2" not in out
    for words in ("exit code 3\n", "exit code 124 (timed out)\n", "Unterminated quoted string"):
        assert words in err


@pytest.mark.parametrize("last", ["exit", "exit 5", "  exit  "])
def test_exit_ends_it(last: str) -> None:
    """Nothing after `exit` is run."""
    assert shell(f"echo one\n{last}\necho two\n")[0] == "one\n"


def test_an_unknown_layer() -> None:
    """A layer that does not exist is named, with those that do."""
    done = subprocess.run(
        [sys.executable, "-m", "practicum", "sandbox", "shell", "--layer", "nothing"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "there is no layer named 'nothing'" in done.stderr
    assert "Traceback" not in done.stderr
