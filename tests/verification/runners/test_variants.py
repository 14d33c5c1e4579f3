"""Submitted tests are tried on variants, and only behaviour tells these apart."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.records.task import Task, Verification
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission
from practicum.verification.redteam.equivalents import equivalents_of
from practicum.verification.redteam.variants import Source
from practicum.verification.runners.variants import ENOUGH, tossed, variants_problem
from practicum.verification.trial import Trials

MODULE = '''"""Numbers."""


def clamp(number, low, high):
    """Keep number between low and high."""
    # both ends belong to it
    if number < low:
        return low
    if number > high:
        return high
    return number


def sign(number):
    return -1 if number < 0 else 1 if number > 0 else 0
'''
MUTANTS = (
    ("return low", "return high"),
    ("number > high", "number < high"),
    ("else 0", "else 1"),
)
HONEST = """
from m import clamp, sign

def test_clamp():
    assert [clamp(n, 2, 5) for n in (1, 2, 3, 5, 9)] == [2, 2, 3, 5, 5]

def test_sign():
    assert [sign(n) for n in (-4, 0, 7)] == [-1, 0, 1]
"""


def variants_task() -> Task:
    source = Source(MODULE, ("clamp", "sign"))
    texts = {"original": MODULE}
    for number, variant in enumerate(equivalents_of(source, 3, "s"), 1):
        texts[f"equivalent-{number}"] = variant.text
    for number, (old, new) in enumerate(MUTANTS, 1):
        wrong = Source(MODULE.replace(old, new, 1), source.names)
        texts[f"mutant-{number}"] = equivalents_of(wrong, 1, str(number))[0].text
    files = {f"{name}/m.py": File(text.encode()) for name, text in texts.items()}
    check = Verification("variants", files, tuple(files), (), tuple(texts), timeout_s=5.0)
    return Task("t", "Write tests.", {"m.py": File(MODULE.encode())}, check, editable=("test_m.py",))


TASK = variants_task()


def test_tests_that_tell_right_from_wrong_pass(bench: Any) -> None:
    """A test of what the functions do passes on every right variant and catches every mutant."""
    verdict = bench.judge(TASK, {"test_m.py": HONEST})
    assert verdict.passed, verdict.evidence
    assert set(verdict.tests) == {
        "original",
        *(f"equivalent-{n}" for n in (1, 2, 3)),
        *(f"mutant-{n}" for n in (1, 2, 3)),
    }


def test_a_mutant_that_is_not_caught_is_told(bench: Any) -> None:
    """A test of one function only earns a part, and the verdict names the mutant of the other."""
    verdict = bench.judge(TASK, {"test_m.py": HONEST.partition("def test_sign")[0]})
    assert verdict.outcome == "partial"
    assert [name for name, status in verdict.tests.items() if status != "passed"] == ["mutant-3"]


READ = "import pathlib, m\nTEXT = pathlib.Path(m.__file__).read_text()\n"
CHEATS = {
    "no file": None,
    "nothing": "",
    "no test": "import m\n",
    "accepts all": "def test(): pass\n",
    "refuses all": "def test(): assert False\n",
    "skips all": "import pytest\n\ndef test(): pytest.skip()\n",
    "leaves well": "import os\nos._exit(0)\n",
    "leaves ill": "import os\n\ndef test(): os._exit(1)\n",
    "forges a report": 'import os\nos.write(3, b\'["x","call","passed"]\\n["","end","0"]\\n\')\nos._exit(0)\n',
    "hangs": "def test():\n    while True: pass\n",
    "knows the text": READ + f"\ndef test(): assert TEXT == {MODULE!r}\n",
    "counts lines": READ + f"\ndef test(): assert TEXT.count(chr(10)) == {MODULE.count(chr(10))}\n",
    "first trial only": (
        "import pathlib\nMARK = pathlib.Path('/tmp/mark')\n\ndef test():\n"
        "    assert not MARK.exists()\n    MARK.touch()\n    raise AssertionError\n"
    ),
}
COINS = {limit: f"import os\n\ndef test(): assert os.urandom(1)[0] < {limit}\n" for limit in (128, 200, 230)}


@pytest.mark.parametrize("cheat", CHEATS)
def test_what_knows_nothing_earns_nothing(bench: Any, cheat: str) -> None:
    """Without a look at behaviour nothing is earned, however the test process ends."""
    task = replace(TASK, verification=replace(TASK.verification, timeout_s=2.0)) if cheat == "hangs" else TASK
    verdict = bench.judge(task, {"test_m.py": CHEATS[cheat]})
    assert (verdict.status, verdict.outcome) == ("valid", "failed"), verdict.tests


@pytest.mark.parametrize("limit", COINS)
def test_tossing_a_coin_earns_nothing(bench: Any, limit: int) -> None:
    """Whatever a coin has earned is tried again, so that luck must hold out, which it does less than once in 1000."""
    for _ in range(8):
        assert bench.judge(TASK, {"test_m.py": COINS[limit]}).outcome == "failed"


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 8), st.floats(0.01, 0.99))
def test_no_coin_is_luckier_than_told(accepted: int, refused: int, mutants: int, p: float) -> None:
    """`tossed` bounds the chance of every coin to toss just so."""
    caught = min(mutants, refused)
    one_way = p**accepted * (1 - p) ** refused
    assert tossed(accepted, refused, mutants, caught) >= min(1.0, math.comb(mutants, caught) * one_way) * (1 - 1e-9)


def test_no_number_of_mutants_is_too_large() -> None:
    """Ways and chances beyond what a float holds come out as what they are, and a coin with one side as certain."""
    assert tossed(2, 3000, 3000, 1500) == 1.0
    assert tossed(3000, 3000, 3000, 3000) == 0.0
    assert tossed(7, 0, 3, 0) == 1.0


def test_honest_tests_are_tried_until_luck_is_ruled_out(bench: Any) -> None:
    """The verdict says how often, and what chance is left."""
    evidence = bench.judge(TASK, {"test_m.py": HONEST}).evidence
    assert evidence["luck"] <= ENOUGH
    assert evidence["rounds"] == 2


def test_nothing_stays_from_one_trial_to_the_next(bench: Any) -> None:
    """What a trial leaves in the workspace, in /tmp or running is gone before the next."""
    leaves = """
import os, pathlib, subprocess, sys

def test_alone():
    marks = [pathlib.Path("/tmp/mark"), pathlib.Path("mark"), pathlib.Path("m.py.seen")]
    seen = [str(mark) for mark in marks if mark.exists()]
    numbers = [name for name in os.listdir("/proc") if name.isdigit()]
    others = [n for n in numbers if b"sleep" in pathlib.Path(f"/proc/{n}/cmdline").read_bytes()]
    for mark in marks:
        mark.touch()
    subprocess.Popen(["sleep", "100"], start_new_session=True)
    assert not seen and not others
"""
    verdict = bench.judge(TASK, {"test_m.py": leaves + HONEST})
    assert verdict.passed, verdict.evidence["trials"]


def test_killing_the_judge_is_no_pass(bench: Any) -> None:
    """A submission that kills what runs it is judged as a failure of its own, or not at all."""
    kill = "import os\nfor pid in (os.getppid(), -1):\n    try: os.kill(pid, 9)\n    except OSError: pass\n"
    verdict = bench.judge(TASK, {"test_m.py": kill + HONEST})
    assert not verdict.reward or verdict.reward < 0


def test_honest_work_is_tried_until_it_is_decided_whether_it_passes(bench: Any) -> None:
    """Judged as work that tries no luck, tests are tried once, and no further than the first mutant they let live."""
    judge = bench.verifier(0).repeating("nonce", Trials(0))

    def judged(tests: str) -> Any:
        submission = Submission((Change("test_m.py", "add", File(tests.encode())),))
        return bench.runner.run(judge.verify(TASK, submission))

    verdict = judged(HONEST)
    assert verdict.passed
    assert verdict.evidence["rounds"] == 1
    verdict = judged(HONEST.partition("def test_sign")[0])
    assert not verdict.passed
    tried = verdict.evidence["trials"]
    assert [name for name in tried if name.startswith("mutant-") and tried[name]["well"]] == [list(tried)[-1]]
    assert all(verdict.tests[name] == "failed" for name in verdict.tests if name not in tried)
    assert "the tests catch no mutant" not in verdict.evidence["details"].values()  # which nobody has tried


def test_what_cannot_be_judged_is_named() -> None:
    """Variants that do not fit the task are refused with a reason."""
    check = TASK.verification
    assert variants_problem(TASK) is None
    assert "original" in (
        variants_problem(replace(TASK, verification=replace(check, fail_to_pass=("mutant-1",)))) or ""
    )
    assert "odd" in (variants_problem(replace(TASK, verification=replace(check, fail_to_pass=("odd",)))) or "")
    assert "one Python file" in (variants_problem(replace(TASK, editable=("**/*.py",))) or "")
    assert "not in the workspace" in (variants_problem(replace(TASK, files={})) or "")
