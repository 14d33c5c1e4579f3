"""`practicum doctor` and `practicum sandbox`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.conftest import Cli


def test_doctor(cli: Cli) -> None:
    """The doctor runs a real box, and gives a fix with whatever does not hold."""
    done = cli("doctor", "--json")
    checks = {check["name"]: check for check in done.document["checks"]}
    assert done.code == 0, done.out
    assert done.document["ok"]
    assert checks["a box runs"]["ok"]
    assert all(check["ok"] or check["fix"] for check in checks.values())
    assert "practicum can run here" in cli("doctor").out


def test_doctor_when_something_is_missing(cli: Cli) -> None:
    """What is missing is named with the line that fixes it; exit code 1."""
    done = cli("doctor", PRACTICUM_CACHE="/proc/nothing")
    assert done.code == 1
    assert "✗ cache folder" in done.out
    assert "fix: set PRACTICUM_CACHE" in done.out
    assert "Traceback" not in done.err


def test_sandbox_run(cli: Cli) -> None:
    """A command runs in a box: not as root, with an empty environment; its streams come through."""
    done = cli("sandbox", "run", "--", "sh", "-c", "id -u; env; echo oops >&2; exit 3", SECRET="hunter2")
    assert done.code == 1
    assert done.out.splitlines()[0] == "1000"
    assert "hunter2" not in done.out
    assert done.err == "oops\nexit code 3 (in the box)\n"


def test_sandbox_run_as_json(cli: Cli) -> None:
    """The document is the record of the command; output that is no text does not break it."""
    done = cli("sandbox", "run", "--timeout", "0.5", "--json", "--", "sh", "-c", r"printf '\377'; sleep 9")
    assert done.code == 1
    assert done.document["timed_out"]
    assert done.document["exit_code"] == 124
    assert done.document["stdout"] == r"\xff"


def test_sandbox_run_needs_a_command(cli: Cli) -> None:
    """No command is bad usage."""
    assert cli("sandbox", "run").code == 2


def test_sandbox_gc(cli: Cli) -> None:
    """With nothing left behind there is nothing to end."""
    assert cli("sandbox", "gc", "--json").document["ended"] == []
