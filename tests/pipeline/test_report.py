"""The report: self-contained, complete, harmless, and possible at any point of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from practicum.config import RunConfig
from practicum.pipeline.report import write_report
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.story import LONGEST, cut, pick_stories
from practicum.records.task import Task, Verification
from practicum.records.trajectory import Action, Fault, Trajectory, Turn
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission, Verdict

EVIL = "<script>alert(1)</script>\0\x1b[31m\u202e\ud800</pre>"
BEFORE = {"calc.py": File(b"def low(x):\n    return max(x)\n")}
TASK = Task("calc-1", f"Repair calc.py {EVIL}", BEFORE, Verification("pytest", {}, fail_to_pass=("t",)))


def attempt(name: str, *, passed: bool, task: str = "calc-1", fault: Fault | None = None) -> Trajectory:
    turns = tuple(
        Turn(i, (1,), (2,), (-0.5,), 4, "stop", f"said {EVIL}", action, f"saw {EVIL}", "a", "b", {"act": 0.1})
        for i, action in enumerate((Action("bash", {"command": f"pytest {EVIL}"}), Action("submit")))
    )
    change = Change("calc.py", "edit", File(b"def low(x):\n    return min(x)\n" if passed else b"\xff\0"))
    verdict = Verdict(
        "valid", "passed" if passed else "failed", 1.0 if passed else -0.2,
        {f"test {EVIL}": "passed" if passed else "failed"}, verifier_version="execution-7",
    )  # fmt: skip
    return Trajectory(
        name, "g", task, TASK.digest, turns, "submitted", fault, Submission((change,)), None if fault else verdict
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder.create(tmp_path, RunConfig(name="demo")) as made:
        yield made


def fill(folder: RunFolder) -> None:
    folder.append_metric({"kind": "admission", "task": "calc-9", "split": "train", "admitted": False, "reason": EVIL})
    folder.append_metric({"kind": "admission", "task": "calc-1", "split": "test", "admitted": True})
    folder.append_metric({"kind": "sft", "step": 1, "loss": 2.5})
    for n in (1, 2):
        folder.append_metric(
            {"kind": "update", "update": n, "phase": "rl", "success": 0.3 * n, "reward": 0.1, "entropy": 0.9,
             "groups_with_signal": 0.5, "staleness": 0.5, "episodes": 96, "boxes_per_s": 20.0, "loss": float("nan"),
             "time": {"generate": 1.0, "act": 3.0}}
        )  # fmt: skip
        folder.append_metric(
            {"kind": "evaluation", "split": "validation", "update": n, "rate": 0.5, "low": 0.4, "high": 0.6, "n": 24}
        )
    folder.append_metric({"kind": "fault", "fault": "SandboxDied", "handled": "retried", "message": EVIL, "update": 1})
    folder.store.append("test", 0, [attempt("before", passed=False)])
    died = attempt("died", passed=False, fault=Fault("SandboxDied", EVIL))
    folder.store.append("test", 2, [died, attempt("good", passed=True), attempt("bad", passed=False, task="calc-2")])
    folder.write_summary(
        {"seed": 0, "wall_s": 12.0, "updates": 2, "episodes": 192, "boxes": {"created": 400, "leaked": 0},
         "faults": {"SandboxDied": 1}, "time": {"generate": 2.0, "act": 6.0}, "provenance": {"layer": EVIL},
         "held_out": {"n": 96, "before": {"successes": 12, "rate": 0.125, "low": 0.07, "high": 0.21},
                      "after": {"successes": 81, "rate": 0.844, "low": 0.76, "high": 0.9},
                      "difference": {"low": 0.6, "high": 0.8}}}
    )  # fmt: skip


def page(folder: RunFolder) -> str:
    return write_report(folder, {TASK.id: TASK}).read_text("utf-8")


class Tags(HTMLParser):
    """Collects tags and checks that they close in order."""

    VOID = frozenset({"meta", "line", "circle", "polyline"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.links += [name for name, _ in attrs if name in ("src", "href", "onload", "onclick")]
        if tag not in self.VOID and tag != "li":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID and tag != "li":
            assert self.open.pop() == tag


def test_report_tells_the_run(folder: RunFolder) -> None:
    """The page shows results with intervals, faults, refusals, time, both stories and where numbers come from."""
    fill(folder)
    text = page(folder)
    for part in (
        "12.5 %", "84.4 %", "+71.9 points", "+60.0 to +80.0", "excludes zero", "SandboxDied", "1 retried",
        "Why 1 refused", "act 75 %", "A success", "A failure", "reward +1.00", "reward −0.20", "execution-7",
        TASK.verification.digest, "chain intact", "-    return max(x)", "+    return min(x)",
        "Binary file calc.py differs", "max_staleness = 1", "Warm start: loss", "400",
    ):  # fmt: skip
        assert part in text, part


def test_report_is_self_contained_and_harmless(folder: RunFolder) -> None:
    """No script, no link, no remote address; hostile text is escaped and hidden characters are shown."""
    fill(folder)
    text = page(folder)
    tags = Tags(text)
    assert tags.open == []
    assert tags.links == []
    assert tags.seen & {"script", "img", "link", "iframe", "object", "base", "form"} == set()
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|url\(|@import", text)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;␀␛[31m\\u202e\\ud800&lt;/pre&gt;" in text
    assert not set(text) & set("\0\x1b\u202e")


def test_stories_come_from_the_latest_policy_and_leave_faults_out(folder: RunFolder) -> None:
    """The success and the failure told are the policy's own latest on held-out tasks, never a masked attempt."""
    fill(folder)
    folder.store.append("demonstration", 9, [attempt("oracle", passed=True)])
    folder.store.append("rl", 9, [attempt("rl", passed=True)])
    stories = pick_stories(folder.store, {})
    assert [story.trajectory.id for story in stories] == ["good", "bad"]
    assert all(story.partial_diff for story in stories)


def test_interrupted_run_has_a_report(folder: RunFolder) -> None:
    """A run without a summary gets a page that says so, from its first moment on."""
    assert "has not finished" in page(folder)
    folder.append_metric({"kind": "update", "update": 1, "success": None})
    folder.append_metric({"kind": "update", "update": 2, "success": 0.5, "time": {"act": 1.0}})
    assert "act 100 %" in page(folder)


def test_a_difference_that_may_be_none_is_said_to_be(folder: RunFolder) -> None:
    """An interval that includes zero is told as no difference, and a loss is not dressed up as a gain."""
    side = {"rate": 0.5, "low": 0.4, "high": 0.6}
    folder.write_summary(
        {"held_out": {"n": 9, "before": side, "after": side, "difference": {"low": -0.1, "high": 0.1}}}
    )
    assert "includes zero" in page(folder)


def test_broken_audit_trail_is_shown(folder: RunFolder) -> None:
    """A trail that was tampered with is named in the report instead of hiding it."""
    folder.audit("admitted", task="a")
    folder.audit_path.write_text(folder.audit_path.read_text().replace("admitted", "refused "))
    folder.audit("later")
    folder.audit_path.write_text(folder.audit_path.read_text().replace('"task": "a"', '"task": "b"'))
    assert "is broken at line 3" in page(folder)


def test_long_text_is_cut_and_says_so() -> None:
    """Only what is too long is cut, in its middle, with the number of characters left out."""
    assert cut("x" * LONGEST) == "x" * LONGEST
    assert "… 2 characters left out …" in cut("x" * (LONGEST + 2))
