"""What commands print: a line of progress is ended before anything else is printed."""

from __future__ import annotations

import pytest

from practicum.cli import output
from practicum.cli.failure import failure_of, report
from practicum.cli.output import Progress, emit

Terminal = pytest.CaptureFixture[str]


@pytest.fixture
def terminal(capsys: Terminal) -> Terminal:
    return capsys


@pytest.fixture(autouse=True)
def _is_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_on_terminal", lambda: True)


@pytest.mark.parametrize("total", [0, 5])
def test_a_result_begins_its_own_line(terminal: Terminal, total: int) -> None:
    """However far the count came, a result is printed behind an ended line, and the line is ended once."""
    progress = Progress("tasks", total)
    progress.last -= 1
    progress.advance("7 tried")
    assert not terminal.readouterr().err.endswith("\n")
    emit({}, "done", as_json=False)
    emit({}, "again", as_json=False)
    assert tuple(terminal.readouterr()) == ("done\nagain\n", "\n")


def test_a_failure_begins_its_own_line(terminal: Terminal) -> None:
    """A command that is stopped says so on a line of its own."""
    Progress("tasks", 0).say("the whole suite", now=True)
    report(failure_of(KeyboardInterrupt()), KeyboardInterrupt(), as_json=False)
    assert terminal.readouterr().err.splitlines()[-1] == "stopped cleanly"


def test_the_count_goes_on_from_before(terminal: Terminal) -> None:
    """What was there before is counted; the total ends the line, and nothing ends it again."""
    progress = Progress("tasks", 3, done=2)
    progress.advance()
    progress.close()
    text = terminal.readouterr().err
    assert "tasks 3/3" in text
    assert text.count("\n") == 1
