"""`practicum tasks review` as a reviewer meets it, on a terminal and from files."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from practicum.cli.review_page import wrapped
from practicum.cli.template import template_task
from practicum.curation.ledger import ledger_path, record_assessments, stages
from practicum.records.assessment import Assessment, GateResult
from practicum.tasks.harbor import save_task
from practicum.tasks.taskset import load_taskset

if TYPE_CHECKING:
    from cli.conftest import Cli

GOOD: dict[str, Any] = {
    "clear": True,
    "sufficient": True,
    "fair": True,
    "no_leak": True,
    "difficulty": 2,
    "decision": "accept",
}


@pytest.fixture
def taskset(tmp_path: Path) -> Path:
    """Four admitted tasks, and one that a gate has left to a person; one instruction tries to drive the terminal."""
    folder = tmp_path / "set"
    found = []
    for name in "abcde":
        task = template_task(name)
        if name == "a":
            task = replace(task, instruction=task.instruction + "\nhidden\x1b[2Jtext\u202e\U000e0041\n")
        save_task(task, folder / name)
        doubtful = name == "e"
        gate = GateResult(
            "requirements", not doubtful, "names all" if not doubtful else "`odd` is stated nowhere", {"n": 1}
        )
        decision = "quarantined" if doubtful else "admitted"
        found.append(Assessment(name, task.digest, task.content, decision, gate.reason, {"requirements": gate}))  # type: ignore[arg-type]
    record_assessments(ledger_path(folder), found)
    return folder


def on_terminal(
    arguments: Sequence[str | Path], steps: Sequence[tuple[str, str]], timeout_s: float = 60
) -> tuple[int, str]:
    """Run the command on a terminal of its own; each step waits for a text and then types a line."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "practicum", *map(str, arguments)]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, close_fds=True, start_new_session=True)
    os.close(slave)
    screen, seen, deadline = b"", 0, time.monotonic() + timeout_s
    waiting = list(steps)
    try:
        while time.monotonic() < deadline:
            if waiting and (at := screen.find(waiting[0][0].encode(), seen)) >= 0:
                seen = at + len(waiting[0][0])
                os.write(master, f"{waiting.pop(0)[1]}\n".encode())
            ready, _, _ = select.select([master], [], [], 0.2)
            if ready:
                try:
                    chunk = os.read(master, 65536)
                except OSError:  # the other end was closed
                    break
                screen += chunk
            elif process.poll() is not None:
                break
        code = process.wait(timeout=10)
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert not waiting, f"never asked {waiting[0][0]!r}:\n{screen.decode(errors='replace')}"
    return code, screen.decode(errors="replace")  # what is echoed may fall between two bytes


def test_a_review_on_a_terminal(taskset: Path) -> None:
    """The task is shown whole and made harmless, a contradiction is asked again, a defect is in quarantine at once."""
    whole = [("clear:", "y"), ("sufficient:", "n"), ("fair:", "y"), ("no_leak:", "y"), ("difficulty:", "2")]
    code, screen = on_terminal(
        ["tasks", "review", taskset, "--by", "Kim", "--task", "a"],
        [
            ("clear:", "t"),
            ("clear:", "w stats.py"),
            *whole[:1],
            ("sufficient:", "b"),
            *whole,
            ("decision:", "a"),
            ("decision:", "d"),
            ("reason:", ""),
            ("reason:", "one spelling"),
        ],
    )
    assert code == 0, screen
    assert "a task cannot be accepted with sufficient answered by no" in screen
    for part in ("INSTRUCTION", "FILES", "GOLD", "solve.sh", "TESTS", "GATES  1 of 1 passed", "names all"):
        assert part in screen, part
    assert "hidden␛[2Jtext\\u202e\\ue0041" in screen
    assert "\x1b[2J" not in screen
    assert "1 reviewed (0 accept, 1 defect, 0 skip)" in screen
    (task,) = (task for task in load_taskset(taskset) if task.id == "a")
    standing = stages(ledger_path(taskset))[task.content]
    assert (standing.stage, standing.entry.actor, standing.entry.reason) == (
        "quarantined",
        "reviewer:kim",
        "one spelling",
    )


def test_leaving_keeps_what_was_finished(taskset: Path) -> None:
    """`q` leaves; the same command goes on with the rest; a half-filled form counts for nothing."""
    command: list[str | Path] = ["tasks", "review", taskset, "--by", "kim"]
    good = [("clear:", "y"), ("sufficient:", "y"), ("fair:", "y"), ("no_leak:", "y"), ("difficulty:", "1")]
    steps = [
        ("[1/5]", ""),
        *good,
        ("decision:", "a"),
        ("reason:", ""),
        ("[2/5]", ""),
        ("clear:", "y"),
        ("sufficient:", "q"),
    ]
    code, screen = on_terminal(command, steps)
    assert code == 0, screen
    assert "1 reviewed (1 accept, 0 defect, 0 skip); 4 of the queue left" in screen
    code, screen = on_terminal(command, [("[1/4]", ""), ("clear:", "s"), ("[2/4]", ""), ("clear:", "q")])
    assert "1 reviewed (0 accept, 0 defect, 1 skip); 3 of the queue left" in screen


def test_answers_from_a_pipe(taskset: Path) -> None:
    """Without a terminal the same lines do, and the end of the input leaves."""
    done = subprocess.run(
        [sys.executable, "-m", "practicum", "tasks", "review", taskset, "--by", "kim"],
        input=b"y\ny\ny\ny\n3\na\nfine\ny\n" + b"\xff\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "1 reviewed (1 accept, 0 defect, 0 skip); 4 of the queue left" in done.stdout.decode()


def test_reviewers_are_blind_and_compared(cli: Cli, taskset: Path, tmp_path: Path) -> None:
    """Two reviewers get one queue, whatever the first said; the report compares them and bounds the defects."""
    first = cli("tasks", "review", taskset, "--by", "kim", "--json").document
    ids = [item["task"] for item in first["waiting"]]
    assert sorted(ids) == list("abcde")
    assert [item["why"] for item in first["waiting"] if item["stratum"] == "flagged"] == [
        "requirements: `odd` is stated nowhere"
    ]
    bad = {"decision": "defect", "clear": False, "reason": "kim finds it vague"}
    rows = [{"task": name, **GOOD, **(bad if name in "bc" else {})} for name in ids]
    forms = tmp_path / "kim.jsonl"
    forms.write_text("\n".join(map(json.dumps, rows)))
    done = cli("tasks", "review", taskset, "--by", "kim", "--answers", forms, "--json")
    assert done.code == 0, done.err
    assert (len(done.document["recorded"]), done.document["left"]) == (5, 0)

    code, screen = on_terminal(["tasks", "review", taskset, "--by", "lee"], [("clear:", "s")] * 5)
    assert code == 0
    assert "vague" not in screen
    assert "kim" not in screen
    shown = [screen.index(f"[{number}/5]  {name}") for number, name in enumerate(ids, 1)]
    assert shown == sorted(shown)
    forms.write_text("\n".join(json.dumps({"task": name, **GOOD, **(bad if name == "b" else {})}) for name in ids))
    assert cli("tasks", "review", taskset, "--by", "lee", "--answers", forms).code == 0

    good = [("clear:", "y"), ("sufficient:", "y"), ("fair:", "y"), ("no_leak:", "y"), ("difficulty:", "1")]
    command: list[str | Path] = ["tasks", "review", taskset, "--by", "sam", "--task", "c"]
    assert on_terminal(command, [*good, ("decision:", "a"), ("reason:", "plain to me")])[0] == 0
    report = cli("tasks", "review", taskset, "--report", "--json").document
    (pair,) = report["agreement"]
    assert pair["reviewers"] == ["kim", "lee"]
    assert (pair["by"]["decision"]["n"], pair["by"]["decision"]["agreed"]) == (5, 4)
    assert (report["disputes"], report["estimate"]["tasks"]) == ([], 4)
    assert report["cleared"] == ["c"]
    text = cli("tasks", "review", taskset, "--report", "--target", "0.05")
    assert text.code == 1
    assert "goes back whole" in text.out
    assert "kim: defect: kim finds it vague" in text.out


def test_bad_input(cli: Cli, taskset: Path, tmp_path: Path) -> None:
    """Forms that cannot be are told by line and the others recorded; a review needs a name."""
    forms = tmp_path / "forms.jsonl"
    forms.write_text(
        "\n".join(["{", json.dumps({"task": "zz", **GOOD}), json.dumps({"task": "a", "decision": "fine"}), "",
                   json.dumps({"task": "b", **GOOD})])
    )  # fmt: skip
    done = cli("tasks", "review", taskset, "--by", "kim", "--answers", forms, "--json")
    assert done.code == 1
    assert [each["line"] for each in done.document["refused"]] == [1, 2, 3]
    assert [each["task"] for each in done.document["recorded"]] == ["b"]
    assert cli("tasks", "review", taskset).code == 2


def test_the_queue_needs_no_name(cli: Cli, taskset: Path) -> None:
    """With --json alone the whole queue is printed, whatever a reviewer has done of it."""
    assert cli("tasks", "review", taskset, "--by", "kim", "--answers", "/dev/null").code == 0
    done = cli("tasks", "review", taskset, "--json")
    assert done.code == 0, done.err
    assert sorted(item["task"] for item in done.document["waiting"]) == list("abcde")
    assert done.document["reviewer"] is None


def test_lines_break_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """No word is cut at the screen's edge; lists hang, and code is left as it is."""
    monkeypatch.setenv("COLUMNS", "50")
    text = "  - " + "sentence after sentence " * 8 + "\n\n  ```\n  " + "x = 1;" * 20 + "\n  ```"
    shown = wrapped(text)
    assert shown.split() == text.split()
    prose = shown.partition("```")[0].splitlines()
    assert max(map(len, prose)) < 50
    assert prose[1].startswith("    sentence") or prose[1].startswith("    after")
    assert "x = 1;" * 20 in shown


def test_the_instruction_is_shown_again(taskset: Path) -> None:
    """`i` brings it back when the questions have pushed it away."""
    code, screen = on_terminal(
        ["tasks", "review", taskset, "--by", "Kim", "--task", "b"], [("clear:", "i"), ("clear:", "q")]
    )
    assert code == 0, screen
    (task,) = (task for task in load_taskset(taskset) if task.id == "b")
    first = task.instruction.strip().splitlines()[0]
    assert screen.count(first[:40]) == 2


def test_tasks_that_cannot_be_read_are_told_wherever_tasks_are_counted(cli: Cli, taskset: Path, tmp_path: Path) -> None:
    """They are in no queue, and the queue, what a file of answers came to and the report all say so."""
    (taskset / "broken").mkdir()
    (taskset / "broken" / "task.toml").write_text("x = [")
    queue = cli("tasks", "review", taskset, "--json").document
    ((folder, why),) = queue["unreadable"].items()
    assert folder.endswith("broken")
    assert why
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"task": "b", **GOOD}) + "\n")
    done = cli("tasks", "review", taskset, "--by", "kim", "--answers", answers, "--json")
    assert done.document["unreadable"] == queue["unreadable"]
    assert "1 more cannot be read" in cli("tasks", "review", taskset, "--by", "lee", "--answers", answers).out
    report = cli("tasks", "review", taskset, "--report")
    assert "1 tasks cannot be read" in report.out
    assert cli("tasks", "review", taskset, "--report", "--json").document["unreadable"] == queue["unreadable"]
