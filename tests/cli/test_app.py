"""The frame of the command line: speed, usage errors, streams, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum import __version__

if TYPE_CHECKING:
    from cli.conftest import Cli

HEAVY = ["torch", "pyarrow", "httpx", "numpy", "pydantic", "jinja2", "rich.console"]
GROUPS: list[list[str]] = [[], ["tasks"], ["sandbox"], ["runs"]]
COMMANDS = [
    *(["doctor"], ["train"], ["rollout"], ["verify"], ["eval"], ["tasks", "new"], ["tasks", "import"]),
    *(["tasks", "check"], ["sandbox", "run"], ["sandbox", "gc"], ["runs", "list"], ["runs", "show"]),
    ["runs", "trajectory"],
]


def test_help_imports_nothing_heavy() -> None:
    """Showing help loads no model, store, HTTP or number library."""
    script = f"""
import sys
from practicum.cli.app import run
try:
    run(["--help"])
except SystemExit:
    print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.strip() == "[]"


def test_help_everywhere() -> None:
    """Every group and command explains itself, and every command takes --json."""
    script = f"""
import sys
from practicum.cli.app import run
for command in {GROUPS + COMMANDS}:
    print("===", *command)
    try:
        run([*command, "--help"])
    except SystemExit as exit_:
        assert exit_.code == 0
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    pages = done.stdout.split("===")[1:]
    assert len(pages) == len(GROUPS + COMMANDS)
    for command, page in zip(GROUPS + COMMANDS, pages, strict=True):
        assert f"Usage: practicum {' '.join(command)}".strip() in page
        assert ("--json" in page) == (command in COMMANDS)


def test_version(cli: Cli) -> None:
    """`--version` names the version."""
    assert cli("--version").out == f"practicum {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["eval"], ["eval", ".", "--policy", "noop", "--samples", "0"], ["rollout", ".", "--agnet", "noop"]],
    ids=" ".join,
)
def test_bad_usage(cli: Cli, arguments: list[str]) -> None:
    """Bad usage is one message with the way to the help, exit code 2, no traceback."""
    done = cli(*arguments)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert "fix: see: practicum" in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_bad_usage_as_json(cli: Cli) -> None:
    """With --json an error is one JSON document on stdout as well."""
    done = cli("eval", ".", "--json")
    assert done.code == 2
    assert done.document["error"]["kind"] == "UsageError"
    assert "--policy" in done.document["error"]["message"]
    assert done.err.startswith("error: ")


@pytest.mark.parametrize("arguments", [["--json"], ["--json", "eval", "t1"]], ids=" ".join)
def test_json_comes_first(cli: Cli, arguments: list[str]) -> None:
    """--json where no command takes it is bad usage, said as one JSON document too."""
    done = cli(*arguments)
    assert done.code == 2
    assert done.document["error"]["kind"] == "UsageError"


@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_unwritable_output(tmp_path: Path, where: str) -> None:
    """Where --json cannot be answered on stdout, one message on stderr says so, and exit code 3."""
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m practicum runs list --json {where}"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 2  # the message and its fix


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_stops_where_interrupts_are_ignored(tmp_path: Path, signum: signal.Signals) -> None:
    """A background job of a script, which ignores Ctrl-C, is stopped by SIGTERM and SIGHUP all the same."""
    script = f"""
import asyncio, os, signal, typer
from practicum.cli import app
signal.signal(signal.SIGINT, signal.SIG_IGN)
async def wait():
    try:
        asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), {int(signum)})
        await asyncio.sleep(30)
    finally:
        await asyncio.sleep(0)
        print("tidied")
@app.app.command()
def waiting() -> None:
    asyncio.run(wait())
app.run(["waiting"])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + signum, "tidied\n", "stopped cleanly\n")


def test_reader_that_leaves(tmp_path: Path) -> None:
    """Output into a closed pipe ends quietly, as for any Unix tool."""
    command = f"{sys.executable} -m practicum train quickstart --dry-run; echo code $? >&2"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; ({command}) | true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr in ("code 141\n", "code 0\n")  # 0 where all was written before the reader left


def test_full_disk(tmp_path: Path) -> None:
    """No space for the output is an infrastructure fault with a message, not a traceback."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "practicum", "train", "quickstart", "--dry-run"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == "error: No space left on device\n  fix: free some space, or choose another folder\n"


def test_any_locale(cli: Cli) -> None:
    """A locale without the characters of the output is no reason to fail."""
    done = cli("train", "quickstart", "--set", "nmae=✓", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.code == 2
    assert "error: unknown key nmae" in done.err


def test_unwritable_folder(cli: Cli, tmp_path: Path) -> None:
    """A folder that cannot be made is named, without a traceback."""
    (tmp_path / "file").write_text("")
    done = cli("tasks", "new", tmp_path / "file" / "task", "--json")
    assert done.code in (2, 3)
    assert "Traceback" not in done.err
    assert "file" in json.loads(done.out)["error"]["message"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_not_root(tmp_path: Path) -> None:
    """The help works for a user without a home."""
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-m", "practicum"]
    done = subprocess.run(
        [*command, "--help"], env={"HOME": "/nonexistent"}, capture_output=True, timeout=60, check=False
    )
    if done.returncode == 127 or b"Permission denied" in done.stderr:
        pytest.skip("this python lies where only root can read it")
    assert done.returncode == 0
