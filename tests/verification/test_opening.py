"""Judging in leased boxes, by copies of warm drivers, decides as judging in boxes made anew does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from practicum.curation.soundness.clock import OtherDay
from practicum.records.task import PlainCheck, Task, Verification
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission, Verdict
from practicum.sandboxes.provider import open_provider
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.opening import open_verifier

GOOD, BAD = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a - b\n"
PYTEST = b"""import os
import pytest
from calc import add

@pytest.mark.parametrize("a", [1, 5])
def test_add(a, tmp_path, capsys, monkeypatch):
    print("seen")
    assert capsys.readouterr().out == "seen\\n"
    assert add(a, 2) == a + 2
    assert os.environ["PYTHONHASHSEED"] == "0"

def test_negative():
    assert add(-4, 1) == -3
"""
UNITTEST = b"""import unittest
from calc import add

class TestAdd(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_negative(self):
        self.assertEqual(add(-4, 1), -3)
"""
COMMAND = b"assert remote('calc:add')(2, 3) == 5\n"
CASES = b'{"id": "five", "args": [2, 3], "expected": 5}\n{"id": "two", "args": [1, 1], "expected": 2}\n'


def task(runner: str) -> Task:
    checks = {
        "pytest": Verification(
            "pytest",
            {"test_add.py": File(PYTEST)},
            ("test_add.py",),
            fail_to_pass=("test_add.py::test_add[1]", "test_add.py::test_add[5]", "test_add.py::test_negative"),
        ),
        "unittest": Verification(
            "unittest",
            {"test_add.py": File(UNITTEST)},
            ("test_add.py",),
            fail_to_pass=("test_add.TestAdd.test_add", "test_add.TestAdd.test_negative"),
        ),
        "plain": Verification(
            "plain",
            {"cases.jsonl": File(CASES)},
            fail_to_pass=("five", "two"),
            plain=PlainCheck("calc:add", "cases.jsonl"),
        ),
        "command": Verification("command", {"check.py": File(COMMAND)}, ("check.py",), fail_to_pass=("check.py",)),
    }
    files = {"calc.py": File(BAD.encode())}
    return Task(id=f"add-{runner}", instruction="mend add", files=files, verification=checks[runner])


def submission(code: str) -> Submission:
    return Submission((Change("calc.py", "edit", File(code.encode())),))


def judge(one: Task, codes: list[str], *, warm: bool) -> list[Verdict]:
    async def use() -> list[Verdict]:
        async with open_provider(limits_by="cgroup-or-rlimit") as provider:
            if not warm:
                verifier = ExecutionVerifier(provider)
                return [await verifier.verify(one, submission(code)) for code in codes]
            async with open_verifier(provider, max_concurrent=1) as verifier:
                return [await verifier.verify(one, submission(code)) for code in codes]

    return asyncio.run(use())


@pytest.mark.parametrize("runner", ["pytest", "unittest", "plain", "command"])
def test_both_ways_decide_alike(runner: str) -> None:
    """Right, wrong, broken, crashing and hanging-on-import submissions get the same outcome, reward and statuses."""
    codes = [GOOD, BAD, GOOD, "def add(a, b)\n", "import os\nos._exit(0)\n", GOOD, "raise SystemExit(3)\n", GOOD]
    found = [judge(task(runner), codes, warm=warm) for warm in (False, True)]
    seen = [[(v.status, v.outcome, v.reward, dict(v.tests)) for v in verdicts] for verdicts in found]
    assert seen[0] == seen[1]
    assert next(v.reward for v in found[1]) == 1.0 == found[1][-1].reward


CONDITION = b"""import os, time
from calc import add

def test_add():
    assert add(2, 3) == 5
    assert (os.environ["PYTHONHASHSEED"], os.environ["TZ"], time.tzname[0]) == ("7", "EAST-14", "EAST")
    assert time.time() > LATER
    assert hash("a") == SEEN
"""


def test_under_other_variables() -> None:
    """Copies of a warm process have the variables, the hash seed and the clock of the condition, and of no other."""
    later, shift_s = time.time() + 1e8, 200_000_000
    env = {"PYTHONHASHSEED": "7", "TZ": "EAST-14"}
    program = [sys.executable, "-c", "print(hash('a'))"]
    seen = subprocess.run(program, env=os.environ | env, capture_output=True, text=True, check=True).stdout.strip()
    text = CONDITION.replace(b"LATER", repr(later).encode()).replace(b"SEEN", seen.encode())
    check = Verification("pytest", {"test_add.py": File(text)}, ("test_add.py",), (), ("test_add.py::test_add",))
    one = replace(task("pytest"), verification=check)

    async def use() -> list[bool]:
        async with (
            open_provider(limits_by="cgroup-or-rlimit") as provider,
            open_verifier(provider, max_concurrent=1) as plain,
        ):
            other = plain.under(env, seed=0, boxes=lambda own: OtherDay(own, shift_s))
            judges = [other, plain, other, other, plain, plain, other]
            return [(await judge.verify(one, submission(GOOD))).passed for judge in judges]

    assert asyncio.run(use()) == [True, False, True, True, False, False, True]


SABOTAGE = {
    "killed": "os.kill(pid, 9)",
    "stopped": "os.kill(pid, signal.SIGSTOP)",
    "starved": "resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))",
    "slowed": "os.setpriority(os.PRIO_PROCESS, pid, 19)",
}


@pytest.mark.parametrize("runner", ["pytest", "plain"])
@pytest.mark.parametrize("what", SABOTAGE)
def test_nothing_done_to_the_warm_process_reaches_the_next_verdict(runner: str, what: str) -> None:
    """A submission that ends or changes every process it can see gains nothing, and the next one is judged right."""
    hostile = (
        "import os, resource, signal\n"
        "for name in os.listdir('/proc'):\n"
        "    pid = int(name) if name.isdigit() else 0\n"
        "    if pid > 1 and pid not in (os.getpid(), os.getppid()):\n"
        f"        try:\n            {SABOTAGE[what]}\n"
        "        except OSError:\n            pass\n"
    )
    first, second, attack, *rest = judge(task(runner), [GOOD, GOOD, hostile + BAD, GOOD, BAD, GOOD], warm=True)
    assert [v.reward for v in (first, second)] == [1.0, 1.0]
    assert attack.reward is not None
    assert attack.reward <= 0
    assert [v.outcome == "passed" for v in rest] == [True, False, True]
    assert all("faults" not in v.evidence for v in rest)


def test_memory_of_the_warm_process_is_closed() -> None:
    """A submission can neither read nor write the memory, descriptors or environment of any other process."""
    code = (
        "import os\nfound = []\n"
        "for name in os.listdir('/proc'):\n"
        "    if name.isdigit() and int(name) != os.getpid():\n"
        "        for part in ('mem', 'environ', 'fd', 'maps'):\n"
        "            try:\n"
        "                path = f'/proc/{name}/{part}'\n"
        "                os.listdir(path) if part == 'fd' else open(path, 'rb').close()\n"
        "                found.append(path)\n"
        "            except OSError:\n"
        "                pass\n"
        "def add(a, b):\n    return str(found)\n"
    )
    *_, verdict = judge(task("plain"), [GOOD, GOOD, code], warm=True)
    details = str(verdict.evidence)
    assert "'[]'" in details or '"[]"' in details, details


CRIPPLE = """
import os, resource
for which in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_STACK, resource.RLIMIT_DATA):
    try:
        resource.prlimit(1, which, (1, 1))
    except OSError:
        pass
for kind, who in ((os.PRIO_PROCESS, 1), (os.PRIO_USER, 0)):
    try:
        os.setpriority(kind, who, 19)
    except OSError:
        pass
"""


@pytest.mark.parametrize("runner", ["pytest", "unittest", "plain", "command"])
def test_no_submission_ends_or_cripples_its_judge(runner: str) -> None:
    """What tries to end the box's first process, or to slow it, fails with a number; the next is judged right."""
    first, attack, again = judge(task(runner), [GOOD, CRIPPLE + BAD, GOOD], warm=True)
    assert (first.reward, attack.status, attack.outcome, again.reward) == (1.0, "valid", "failed", 1.0)


OTHERS_MEMORY = """
import os, re, sys, time

def rewrite():
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/maps") as maps:
                areas = [line.split()[0] for line in maps if " rw" in line and "[vv" not in line]
            memory = os.open(f"/proc/{name}/mem", os.O_RDWR)
        except OSError:
            continue
        for area in areas:
            begin, end = (int(part, 16) for part in area.split("-"))
            try:
                data = os.pread(memory, end - begin, begin)
                for old, new in ((b"exit 1\\n", b"exit 0\\n"), (b"false", b"true ")):
                    at = data.find(old)
                    while at >= 0:
                        os.pwrite(memory, new, begin + at)
                        at = data.find(old, at + 1)
            except OSError:
                pass

def add(a, b):
    rewrite()
    time.sleep(0.2)
    return a - b

if __name__ == "__main__":
    if os.fork() == 0:  # stays, to look into whatever comes next
        os.setsid()
        for stream in (0, 1, 2):
            os.close(stream)
        for _ in range(2000):
            rewrite()
            time.sleep(0.001)
        os._exit(0)
    if len(sys.argv) > 2:
        print(add(int(sys.argv[1]), int(sys.argv[2])))
"""
SHELL = b'out=$(python3 calc.py 2 3)\nif [ "$out" != 5 ]; then\n  exit 1\nfi\nexit 0\n'


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(
    "check",
    [
        Verification("command", {"check.sh": File(SHELL)}, ("check.sh",), fail_to_pass=("check.sh",)),
        Verification("command", {"b.py": File(COMMAND)}, ("b.py",), fail_to_pass=("b.py",), build="python3 calc.py"),
        Verification(
            "command",
            {"a.py": File(b"remote('calc:add')(2, 3)\n"), "b.py": File(COMMAND)},
            ("a.py", "b.py"),
            fail_to_pass=("a.py", "b.py"),
        ),
    ],
    ids=["shell", "after the build", "between scripts"],
)
def test_a_daemon_cannot_rewrite_the_result(check: Verification, warm: bool) -> None:
    """What runs beside a judge's process, or was left by an earlier step, cannot turn its failure into a pass."""
    one = Task(id="daemon", instruction="mend", files={"calc.py": File(BAD.encode())}, verification=check)
    for verdict in judge(one, [OTHERS_MEMORY] * 2, warm=warm):
        assert verdict.status == "valid"
        assert check.files[-1] not in [name for name, status in verdict.tests.items() if status == "passed"]
        assert verdict.outcome != "passed"
