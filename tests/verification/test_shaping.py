"""Signals are asked for after a pass, shape it, and are missing rather than 0 where there is none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from practicum.records.task import RewardRule, Task, Verification
from practicum.records.tree import Change, File
from practicum.records.verdict import Missing, Signal, Submission, Verdict
from practicum.sandboxes.fake import FakeProvider
from practicum.verification.judges.model import NAME
from practicum.verification.process import CHANGE, CONDUCT, Measured, conduct
from practicum.verification.shaping import JUDGE, SIGNALS, ShapingVerifier, completed, with_signals
from practicum.verification.statics import STYLE, Security, Tool, risky_calls

OLD = "def f(x):\n    return eval(x)\n"
TASK = Task(
    "t",
    "Repair f.",
    {"f.py": File(OLD.encode())},
    Verification("plain", {}, reward=RewardRule("default", 0.2, ("security", "style"))),
)


def changed(source: str) -> Submission:
    return Submission((Change("f.py", "edit", File(source.encode())),))


class Fixed:
    """A verifier that always says the same."""

    version = "fixed/1"

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    async def verify(self, task: Task, submission: Submission) -> Verdict:
        return self.verdict


def judged(verdict: Verdict, source: str, *sources: Any, task: Task = TASK) -> Verdict:
    return asyncio.run(ShapingVerifier(Fixed(verdict), sources).verify(task, changed(source)))


PASSED = Verdict("valid", "passed", 1.0, {"a": "passed"})


def test_a_pass_is_shaped_by_what_is_known() -> None:
    """What the task names and no source gives is named as missing; without any, the reward is the table's."""
    clean = judged(PASSED, "def f(x):\n    return int(x)\n", Security())
    assert (clean.reward, clean.evidence["signals_missing"]) == (1.0, {"style": "nothing here gives it"})
    risky = judged(PASSED, OLD + "exec('1')\n", Security())
    assert risky.reward == pytest.approx(0.9)
    assert risky.signals == (Signal("security", 0.5),)
    assert risky.verifier_version == "fixed/1"
    none = judged(PASSED, OLD)
    assert (none.reward, list(none.evidence["signals_missing"])) == (1.0, ["security", "style"])


def test_what_is_no_pass_is_not_asked_about() -> None:
    """A failure and an unscorable verdict come through as they are; so does a task that asks for nothing."""
    for verdict in (Verdict("valid", "failed", -0.2), Verdict("unscorable", None, None, reason="x")):
        assert replace(judged(verdict, OLD, Security()), verifier_version="") == verdict
    plain = replace(TASK, verification=replace(TASK.verification, reward=RewardRule()))
    assert judged(PASSED, OLD + "exec('1')\n", Security(), task=plain).reward == 1.0


def naming(*signals: str) -> Task:
    return replace(TASK, verification=replace(TASK.verification, reward=RewardRule("default", 0.2, signals)))


def test_a_name_that_can_never_be_a_signal_is_the_tasks_fault() -> None:
    """It is no number, and the reason says what was meant; a name that some run may give is only missing."""
    for submitted in (PASSED, Verdict("valid", "failed", -0.2)):
        refused = judged(submitted, OLD, task=naming("security", "secruity"))
        assert (refused.status, refused.reward) == ("invalid", None)
        assert refused.reason == "there is no signal 'secruity': did you mean 'security'?"
    assert judged(PASSED, OLD, task=naming(*SIGNALS)).reward == 1.0
    assert JUDGE == NAME


def test_a_verifier_knows_the_change_and_not_the_turns() -> None:
    """What can be read from the submission shapes; how it came about is missing, and named with the reason."""
    both = judged(PASSED, OLD + "x\n" * 42, *map(Measured, CHANGE), task=naming("size", "turns"))
    assert both.signals == (Signal("size", 0.5),)
    assert both.reward == pytest.approx(0.9)
    assert both.evidence["signals_missing"] == {"turns": "the attempt's turns are not known"}


def test_a_verdict_is_completed_by_what_becomes_known() -> None:
    """The reward is that of all signals together, in whatever order they came; what was missing no longer is."""
    task = naming("size", "turns", "protocol")
    known: dict[str, Signal | Missing] = {"turns": Signal("turns", 0.0), "protocol": Missing("unknown")}
    known["security"] = Signal("security", 0.0)
    first = judged(PASSED, OLD + "x\n" * 42, *map(Measured, CHANGE), task=task)
    done = completed(task, first, known)
    assert done.reward == pytest.approx(1 - 0.2 * 0.75)
    assert {signal.name for signal in done.signals} == {"size", "turns"}
    assert done.evidence["signals_missing"] == {"protocol": "unknown"}
    assert completed(task, done, known) == done
    late = completed(task, completed(task, PASSED, known), {"size": Signal("size", 0.5)})
    assert (late.reward, late.evidence) == (done.reward, done.evidence)
    whole = completed(task, done, {"protocol": Signal("protocol", 1.0)})
    assert "signals_missing" not in whole.evidence


def test_no_conduct_changes_what_is_no_pass() -> None:
    """A failure keeps its reward, a masked verdict its lack of one, and neither gets signals."""
    known = {name: Signal(name, 0.0) for name in CONDUCT}
    for verdict in (Verdict("valid", "failed", -0.2), Verdict("invalid", None, None), Verdict("valid", "tampered", -1)):
        assert completed(naming(*CONDUCT), verdict, known) == verdict
    assert completed(naming("security"), PASSED, conduct(TASK, ())) == PASSED


def test_what_stands_outside_is_part_of_the_version() -> None:
    """A model that gives a signal is named; no two sources share a name; the usual ones need nothing but boxes."""
    judge = Security()
    judge.version = "judge:m"
    assert ShapingVerifier(Fixed(PASSED), [judge]).version == "fixed/1+judge:m"
    with pytest.raises(ValueError, match="one name"):
        ShapingVerifier(Fixed(PASSED), [Security(), Security()])
    assert with_signals(FakeProvider(), Fixed(PASSED)).version == "fixed/1"


def test_only_new_problems_count() -> None:
    """A call that was there is not held against a change."""
    assert judged(PASSED, OLD.replace("x", "y"), Security()).signals == (Signal("security", 1.0),)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("eval('1')", ["eval"]),
        ("from os import system as s\ns('x')", ["os.system"]),
        ("import subprocess as p\np.run('x', shell=True)", ["subprocess.run"]),
        ("import subprocess\nsubprocess.run(['x'], shell=False)", []),
        ("import sys\nsys._getframe(1)", ["sys._getframe"]),
        ("def (", ["does not parse"]),
        ("model.eval()", []),
    ],
)
def test_risky_calls(source: str, found: list[str]) -> None:
    """By what is called, whatever name it was imported under."""
    assert sorted(risky_calls(source.encode())) == found


def test_tools_of_the_layer(bench: Any) -> None:
    """A checker counts what a change brings; one that the layer does not have says nothing."""
    checker = Tool(bench.provider, "tabs", ("python3", "-I", "-c", "import sys\nfor p in sys.argv[2:]:\n"
        "    [print(f'{p}:{n}: tab') for n, line in enumerate(open(p), 1) if '\\t' in line]"))  # fmt: skip

    def score(tool: Tool, source: str) -> Signal | Missing:
        signal: Signal | Missing = bench.runner.run(tool.signal(TASK, changed(source), PASSED))
        return signal

    assert score(checker, OLD.replace("    ", "  ")) == Signal("tabs", 1.0)
    assert score(checker, OLD.replace("    ", "\t") + "if 1:\n\tpass\n") == Signal("tabs", 1 / 3)
    absent = score(Tool(bench.provider, "none", ("python3", "-I", "-m", "no_such_module")), OLD)
    assert absent == Missing("the layer has no such checker, or it came to no end")
    nothing = bench.runner.run(checker.signal(TASK, Submission(()), PASSED))
    assert nothing == Missing("no Python file was changed")
    unfit = replace(TASK, layer="no-such-layer")
    boxless = bench.runner.run(checker.signal(unfit, changed(OLD), PASSED))
    assert boxless == Missing("the checker could not be run (CreateFailed)")
    assert STYLE[3] == "ruff"
