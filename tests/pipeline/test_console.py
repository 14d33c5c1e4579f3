"""The console: plain lines in a pipe, a live table on a terminal, and nothing on stdout with `--json`."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading

import pytest

from practicum.pipeline.console import RunConsole, summary_lines
from practicum.pipeline.wording import sparkline

UPDATE = {
    "kind": "update", "update": 3, "success": 0.43, "reward": 0.21, "entropy": 0.87, "groups_with_signal": 0.67,
    "boxes_per_s": 14.1, "time": {"generate": 1.0, "act": 3.0},
}  # fmt: skip
SUMMARY = {
    "held_out": {"n": 96, "before": {"rate": 0.125, "low": 0.073, "high": 0.206},
                 "after": {"rate": 0.844, "low": 0.758, "high": 0.903}, "difference": {"low": 0.601, "high": 0.804}},
    "updates": 40, "episodes": 3840, "wall_s": 252.2, "boxes": {"created": 9120, "leaked": 0},
    "faults": {"SandboxDied": 1}, "faults_handled": {"SandboxDied": {"retried": 1}}, "time": {"act": 1.0},
    "report": "runs/x/report.html",
}  # fmt: skip


def test_plain_lines() -> None:
    """Off a terminal each event is one line, and what a phase came to is told when it ends, or the next begins."""
    out = io.StringIO()
    with RunConsole(stream=out, updates=40) as console:
        console.phase("vetting")
        console.show({"kind": "admission", "task": "a", "admitted": True})
        console.show({"kind": "admission", "task": "b", "admitted": False, "reason": "the gold does not pass"})
        console.phase("warm start")
        console.show({"kind": "sft", "step": 9, "loss": 0.5})
        console.show({"kind": "admission", "task": "c", "admitted": True})
        console.tell_counts()
        console.show({"kind": "evaluation", "split": "test", "update": 0, "rate": 0.5, "low": 0.4, "high": 0.6})
        console.phase("training")
        console.show(UPDATE)
        console.show({"kind": "evaluation", "split": "validation", "update": 3, "rate": 0.5, "low": 0.4, "high": 0.6})
        console.show({"kind": "fault", "fault": "SandboxDied", "handled": "retried", "message": "gone"})
        console.show({"kind": "of another time"})
    assert [line.split(" s  ", 1)[1] for line in out.getvalue().splitlines()] == [
        "vetting",
        "task b refused: the gold does not pass",
        "1 tasks admitted, 1 refused",
        "warm start",
        "warm start ended at step 9, loss 0.50",
        "2 tasks admitted, 1 refused",
        "test after update 0: 50.0 % (40.0 – 60.0 %)",
        "training",
        "update    3/40  success  43 %  reward +0.21  entropy 0.87  signal  67 %  14.1 boxes/s  generate 25 act 75 %",
        "validation after update 3: 50.0 % (40.0 – 60.0 %)",
        "SandboxDied (retried): gone",
    ]


def test_a_missing_signal_is_told_once() -> None:
    """Each reason once, however many updates it lasts."""
    out = io.StringIO()
    with RunConsole(stream=out) as console:
        for update, reason in ((1, "down"), (2, "down"), (3, "malformed")):
            console.show({"kind": "signal", "signal": "judge", "missing": 4, "reason": reason, "update": update})
    assert [line.split(" s  ", 1)[1] for line in out.getvalue().splitlines()] == [
        "signal missing (changes no reward): judge: down",
        "signal missing (changes no reward): judge: malformed",
    ]


def test_summary_block() -> None:
    """The end of a run is a few plain lines with every figure a person asks for first."""
    text = "\n".join(summary_lines(SUMMARY))
    for part in ("12.5 %", "84.4 %", "+71.9", "+60.1 to +80.4", "40 updates, 3,840 episodes, 4 min 12 s",
                 "9,120 created, 0 leaked", "1 SandboxDied (1 retried)", "runs/x/report.html"):  # fmt: skip
        assert part in text
    assert max(len(line) for line in summary_lines(SUMMARY)) <= 80


def test_summary_of_little() -> None:
    """A summary that lacks what was not measured is still told."""
    assert "Faults    none" in summary_lines({})


def test_json_keeps_stdout_empty(capsys: pytest.CaptureFixture[str]) -> None:
    """With `json` everything goes to stderr."""
    with RunConsole(json=True) as console:
        console.phase("training")
        console.update(UPDATE)
        console.summary(SUMMARY)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "84.4 %" in captured.err


def test_hostile_text_cannot_steer() -> None:
    """Escape sequences, carriage returns and surrogates in a message are shown, not obeyed."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with RunConsole(stream=out) as console:
        console.fault({"fault": "SandboxDied", "message": "\x1b[2J\r\ud800 [bold]é"})
        out.seek(0)
        assert "?[2J?\\ud800 [bold]?" in out.read()


PROGRAM = """
import sys
from practicum.pipeline.console import RunConsole
with RunConsole(updates=40, json=sys.argv[1] == "json") as console:
    console.phase("training")
    console.doing("37 of 96 attempts")
    for n in range(1, 41):
        console.update({"update": n, "success": n / 40, "reward": 0.1, "entropy": 0.5, "groups_with_signal": 0.5,
                        "boxes_per_s": 20.0, "time": {"generate": 1.0, "act": 1.0}})
    console.evaluation({"split": "validation", "update": 40, "rate": 0.5})
    console.note("a note \\x1b[2J[red]")
    console.summary({"updates": 40})
"""


def on_terminal(mode: str) -> tuple[str, str]:
    """What the program shows on a terminal of 80 columns, and what reaches stdout where that is a pipe."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "LINES": "40", "TERM": "xterm-256color"}
    piped = mode == "json"
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, mode],
        stdout=subprocess.PIPE if piped else follower,
        stderr=follower,
        env=environment,
    )
    os.close(follower)
    shown = bytearray()

    def drain() -> None:
        while True:
            try:
                data = os.read(leader, 65536)
            except OSError:  # Linux ends a terminal whose program is gone with EIO
                return
            if not data:
                return
            shown.extend(data)

    reader = threading.Thread(target=drain)
    reader.start()
    out = child.communicate(timeout=30)[0]
    reader.join(timeout=30)
    os.close(leader)
    assert child.returncode == 0, shown.decode()
    return shown.decode(), (out or b"").decode()


@pytest.mark.parametrize("mode", ["live", "json"])
def test_terminal_shows_a_live_table(mode: str) -> None:
    """On a terminal the table, the curve and the summary are shown; with `--json` on stderr only."""
    shown, out = on_terminal(mode)
    assert out == ""
    for part in ("success", "40/40", "100 %", "train", "█", "validation", "37 of 96", "Faults    none"):
        assert part in shown
    assert "a note ␛[2J[red]" in shown


def test_sparkline() -> None:
    """A curve keeps its ends, fits its width and bears shares at both edges."""
    assert sparkline([0.0, 1.0]) == "▁█"
    assert len(sparkline([0.5] * 500)) <= 40
    assert sparkline([-1.0, 2.0]) == "▁█"
