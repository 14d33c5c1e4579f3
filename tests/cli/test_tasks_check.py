"""`practicum tasks check`: a set through the gates, resumed after it was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from practicum.cli.template import template_task
from practicum.curation.gates.ladder import LADDER
from practicum.curation.ledger import ledger_path, record_assessments
from practicum.records.assessment import Assessment, GateResult
from practicum.tasks.harbor import save_task

if TYPE_CHECKING:
    from cli.conftest import Cli

QUICK = ("--repeat", "1", "--attacks", "1", "--mutants", "2")


@pytest.fixture
def taskset(cli: Cli, tmp_path: Path) -> Path:
    """Three tasks: one that is sound, one whose gold does not pass, one that doing nothing passes."""
    for name in ("good", "no-gold", "no-bug"):
        assert cli("tasks", "new", f"set/{name}").code == 0
    (tmp_path / "set/no-gold/solution/solve.sh").write_text("#!/bin/bash\ntrue\n")
    (tmp_path / "set/no-gold/instruction.md").write_text("The mean of values in stats.py is wrong. Mend it, please.\n")
    module = tmp_path / "set/no-bug/environment/workspace/stats.py"
    gold = (tmp_path / "set/no-bug/solution/solve.sh").read_text()
    module.write_text(gold.split("<<'PYTHON'\n")[1].split("PYTHON\n")[0])
    return tmp_path / "set"


def by_task(document: Any) -> dict[str, Any]:
    """Rows by task, without how long gates took."""
    for row in document["tasks"]:
        for result in row["gates"].values():
            del result["seconds"]
    return {row["task"]: row for row in document["tasks"]}


def test_decisions_are_printed_recorded_and_reused(cli: Cli, taskset: Path) -> None:
    """Each task has a decision with the gate that it rests on, a result of every gate, and an entry in the ledger; a
    second check asks nothing again and says the same."""
    done = cli("tasks", "check", taskset, *QUICK, "--json", timeout_s=300)
    assert done.code == 1, done.err
    rows = by_task(done.document)
    assert {name: row["decision"] for name, row in rows.items()} == {
        "good": "admitted",
        "no-gold": "rejected",
        "no-bug": "rejected",
    }
    assert rows["no-bug"]["reason"] == "noop: doing nothing passes"
    assert rows["no-gold"]["reason"].startswith("gold: the gold does not pass: failed")
    assert "provisional" in rows["good"]["reason"]
    for row in rows.values():
        assert list(row["gates"]) == [gate.name for gate in LADDER]
        assert all(not result["passed"] or result["evidence"] for result in row["gates"].values())
    unasked = rows["no-gold"]["gates"]["mutants"]
    assert (unasked["passed"], unasked["assessed"]) == (False, False)
    assert "the gate `gold` was not passed" in unasked["reason"]
    summary = done.document["summary"]
    assert (summary["admitted"], summary["rejected"], summary["quarantined"]) == (1, 2, 0)
    assert summary["first_failing_gate"] == {"gold": 1, "noop": 1}
    assert summary["seconds_by_gate"]["gold"] > 0
    assert summary["effort"]["cpu_s"] > 0
    assert summary["provisional"] == 1
    assert summary["next"].startswith("practicum tasks review")
    ledger = [json.loads(line)["data"] for line in (taskset / ".practicum/ledger.jsonl").read_text().splitlines()]
    assert {entry["task"]: entry["stage"] for entry in ledger} == {name: row["decision"] for name, row in rows.items()}
    again = cli("tasks", "check", taskset, *QUICK, "--json", timeout_s=300)
    assert by_task(again.document) == rows
    assert again.document["summary"]["reused_results"] > 20
    assert len((taskset / ".practicum/ledger.jsonl").read_text().splitlines()) == len(ledger)


def test_a_killed_check_goes_on_where_it_was(cli: Cli, tmp_path: Path) -> None:
    """After kill -9 in the middle, checking again asks only what had not been answered, and leaves no box behind."""
    for name in "abc":
        assert cli("tasks", "new", f"set/{name}").code == 0
    records = tmp_path / "set/.practicum/checks.jsonl"
    command = [
        sys.executable,
        "-m",
        "practicum",
        "tasks",
        "check",
        "set",
        *QUICK,
        "--gates",
        "noop",
        "--concurrency",
        "1",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 100
        while not (records.exists() and records.read_bytes().count(b'"gate": "environment"')):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.005)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    known = records.read_bytes().count(b"\n")
    assert 0 < known < 12
    records.write_bytes(records.read_bytes() + b'{"schema": 1, "torn')
    done = cli("tasks", "check", "set", *QUICK, "--gates", "noop", "--json", timeout_s=300)
    assert done.code == 0, done.err
    assert done.document["summary"]["reused_results"] == known
    assert records.read_bytes().count(b"\n") == 3 * 3  # schema, environment and noop of each, once
    assert not (tmp_path / "set/.practicum/ledger.jsonl").exists()  # some gates alone decide nothing


def test_records_elsewhere_and_bad_words(cli: Cli, tmp_path: Path) -> None:
    """--state keeps records out of the task set; an unknown gate and a wrong number are refused by name."""
    assert cli("tasks", "new", "mine").code == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    done = cli("tasks", "check", "mine", "--gates", "schema,assertions", "--state", "records/here", "--json")
    assert done.code == 0, done.err
    assert (tmp_path / "records/here/checks.jsonl").read_text().count("\n") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "records"])
    wrong = cli("tasks", "check", "mine", "--gates", "gilt", "--json")
    assert wrong.code == 2
    assert "gilt" in wrong.document["error"]["message"]
    assert cli("tasks", "check", "mine", "--attacks", "some").code == 2
    assert cli("tasks", "check", "mine", "--protected", "nowhere").code == 2


def test_directories_that_are_no_tasks_keep_no_other_from_being_checked(cli: Cli, tmp_path: Path) -> None:
    """Each is a rejected item of the gate schema under its folder's name; the others are checked."""
    for name in ("good", "broken", "twin"):
        assert cli("tasks", "new", f"set/{name}").code == 0
    (tmp_path / "set/broken/task.toml").write_text("x=[")
    manifest = tmp_path / "set/twin/task.toml"
    manifest.write_text(manifest.read_text().replace("twin", "good"))
    done = cli("tasks", "check", "set", "--gates", "schema", "--json")
    assert done.code == 1, done.err
    rows = by_task(done.document)
    assert rows["good"]["gates"]["schema"]["passed"]
    for name, words in (("broken", "not valid TOML"), ("twin", "'good' is already taken")):
        assert (rows[name]["decision"], rows[name]["digest"]) == ("rejected", None)
        assert rows[name]["reason"].startswith("schema: ")
        assert words in rows[name]["reason"]
    summary = done.document["summary"]
    assert (summary["rejected"], summary["passed_all_asked"]) == (2, 1)
    assert summary["first_failing_gate"] == {"schema": 2}
    text = cli("tasks", "check", "set", "--gates", "schema")
    assert "1 of 3 tasks passed schema; nothing was decided" in text.out
    for name in ("broken", "twin"):
        (tmp_path / f"set/{name}/task.toml").write_text("x=[")
    alone = cli("tasks", "check", "set/broken", "--json")
    assert (alone.code, by_task(alone.document)["broken"]["decision"]) == (1, "rejected")


def test_altered_results_are_asked_again(cli: Cli, tmp_path: Path) -> None:
    """A result that was altered by hand is asked again, and said to be."""
    assert cli("tasks", "new", "set/mine").code == 0
    (tmp_path / "set/mine/solution/solve.sh").write_text("#!/bin/bash\ntrue\n")
    asked = ("tasks", "check", "set", "--repeat", "1", "--attacks", "1", "--mutants", "1", "--json")
    before = cli(*asked, timeout_s=300)
    assert (before.code, before.document["tasks"][0]["decision"]) == (1, "rejected")
    records = tmp_path / "set/.practicum/checks.jsonl"
    records.write_text(records.read_text().replace('"passed": false', '"passed": true'))
    after = cli(*asked, timeout_s=300)
    assert by_task(after.document) == by_task(before.document)
    assert after.document["summary"]["altered_results"] > 0
    assert after.code == 1
    again = cli(*asked, timeout_s=300)
    assert again.document["summary"]["altered_results"] == 0
    assert again.document["summary"]["reused_results"] > 0


def test_what_the_ledger_keeps_stands(cli: Cli, tmp_path: Path) -> None:
    """A task that a person rejected is not told as admitted although all gates pass."""
    assert cli("tasks", "new", "set/mine").code == 0
    asked = ("tasks", "check", "set", *QUICK)
    assert cli(*asked, timeout_s=300).code == 0
    assert cli("tasks", "decide", "set", "mine", "rejected", "--by", "kim", "--reason", "Too easy.").code == 0
    done = cli(*asked, "--json", timeout_s=300)
    (row,) = done.document["tasks"]
    assert (done.code, row["decision"]) == (1, "rejected")
    assert "reviewer:kim" in row["reason"]
    assert "Too easy." in row["reason"]
    assert all(result["passed"] for name, result in row["gates"].items() if name != "difficulty")
    assert (done.document["summary"]["admitted"], done.document["summary"]["rejected"]) == (0, 1)
    assert "mine: rejected: by the ledger" in cli(*asked, timeout_s=300).out


def test_a_stopped_check_says_how_far_it_was_and_how_to_go_on(cli: Cli, tmp_path: Path) -> None:
    """On a terminal results are counted from the start, not only whole tasks; Ctrl-C says that it can be run again."""
    assert cli("tasks", "new", "set/a").code == 0
    records = tmp_path / "set/.practicum/checks.jsonl"
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "practicum", "tasks", "check", "set", "--fresh", "--concurrency", "1"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        end = time.monotonic() + 100
        while b"gate results " not in said or not (records.exists() and records.stat().st_size):
            assert process.poll() is None
            assert time.monotonic() < end
            said += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            said += part
            if not part:
                break
    finally:
        process.kill()
        code = process.wait()
        os.close(ours)
    text = said.decode()
    assert code == 130, text
    assert "0 of 1 tasks done" in text
    assert "run it again without --fresh to go on" in text


def test_a_release_is_checked_without_being_touched(cli: Cli, tmp_path: Path) -> None:
    """Records of a check of a release stand beside it, and go on from its ledger."""
    task = replace(template_task("a"), provenance={"license": "MIT"})
    save_task(task, tmp_path / "set/a")
    gates = {"gold": GateResult("gold", True, "passes", {"repeat": 3})}
    found = Assessment("a", task.digest, task.content, "admitted", "all gates passed", gates)
    record_assessments(ledger_path(tmp_path / "set"), [found])
    made = cli("tasks", "release", "set", "out", "--json")
    assert made.code == 0, made.err
    release = tmp_path / made.document["release"]["path"]
    before = {path: path.stat().st_mtime_ns for path in release.rglob("*")}
    assert before
    done = cli("tasks", "check", release, "--gates", "schema,assertions", "--json")
    assert done.code == 0, done.err
    assert {path: path.stat().st_mtime_ns for path in release.rglob("*")} == before
    beside = release.parent / ".practicum" / release.name
    assert (beside / "checks.jsonl").read_text().count("\n") == 2
    assert (beside / "ledger.jsonl").read_bytes() == (release / ".practicum/ledger.jsonl").read_bytes()
