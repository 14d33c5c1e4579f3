"""The judge decides by execution, and knows whose fault a fault is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from practicum.errors import BoxOutOfMemory, CreateFailed, SandboxDied, SandboxTimeout, VerifierError
from practicum.records.task import Limits, PlainCheck, Task, Verification
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission
from practicum.sandboxes.contract import BoxSpec, Sandbox, SandboxProvider
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.runners.drivers import Drivers
from practicum.verification.trial import Trials

BUGGY = "def add(a, b):\n    return a - b\n\ndef sub(a, b):\n    return a - b\n"
GOLD = BUGGY.replace("a - b", "a + b", 1)
HALF = "def add(a, b):\n    return a + b if a < 2 else 0\n\ndef sub(a, b):\n    return a - b\n"
BROKEN = "def add(a, b):\n    return a + b\n"


def trees(**texts: str) -> dict[str, File]:
    return {name.replace("_dot_", "."): File(text.encode()) for name, text in texts.items()}


def make(check: Verification, **change: Any) -> Task:
    return replace(
        Task(id="t", instruction="Repair add.", files=trees(calc_dot_py=BUGGY), verification=check), **change
    )


def plain(entry: str = "calc:add", **change: Any) -> Task:
    rows = [{"id": f"c{i}", "args": [i, 1], "expected": i + 1} for i in range(4)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    check = Verification(
        "plain",
        trees(cases_dot_jsonl=text),
        fail_to_pass=("c0", "c1", "c2", "c3"),
        plain=PlainCheck(entry, "cases.jsonl"),
        timeout_s=10.0,
    )
    return make(replace(check, **change))


PYTEST = make(
    Verification(
        "pytest",
        trees(
            test_frozen_dot_py="import calc\n\n\ndef test_one():\n    assert calc.add(1, 1) == 2\n\n\n"
            "def test_two():\n    assert calc.add(2, 1) == 3\n\n\ndef test_sub():\n    assert calc.sub(3, 1) == 2\n",
            test_visible_dot_py="import calc\n",
        ),
        files=("test_frozen.py",),
        visible=("test_visible.py",),
        fail_to_pass=("test_frozen.py::test_one", "test_frozen.py::test_two"),
        pass_to_pass=("test_frozen.py::test_sub",),
        timeout_s=20.0,
    ),
    files=trees(calc_dot_py=BUGGY, test_visible_dot_py="import calc\n"),
)
UNITTEST = make(
    Verification(
        "unittest",
        trees(
            test_frozen_dot_py="import unittest\nimport calc\n\n\nclass Adds(unittest.TestCase):\n"
            "    def test_one(self):\n        self.assertEqual(calc.add(1, 1), 2)\n\n"
            "    def test_two(self):\n        for a in (2, 3):\n            with self.subTest(a=a):\n"
            "                self.assertEqual(calc.add(a, 1), a + 1)\n\n"
            "    def test_sub(self):\n        self.assertEqual(calc.sub(3, 1), 2)\n"
        ),
        files=("test_frozen.py",),
        fail_to_pass=("test_frozen.Adds.test_one", "test_frozen.Adds.test_two"),
        pass_to_pass=("test_frozen.Adds.test_sub",),
        timeout_s=10.0,
    )
)
COMMAND = make(
    Verification(
        "command",
        trees(
            one_dot_py='add = remote("calc:add")\nassert add(1, 1) == 2\n',
            two_dot_sh="test \"$(python3 -c 'import calc; print(calc.add(2, 1))')\" = 3\n",
            sub_dot_py='assert remote("calc:sub")(3, 1) == 2\n',
        ),
        files=("one.py", "two.sh", "sub.py"),
        fail_to_pass=("one.py", "two.sh"),
        pass_to_pass=("sub.py",),
        timeout_s=10.0,
    )
)


@pytest.mark.parametrize("task", [plain(), PYTEST, UNITTEST, COMMAND], ids=lambda task: task.verification.runner)
def test_every_runner_tells_right_from_wrong(bench: Any, task: Task) -> None:
    """Gold passes with 1, doing nothing and breaking what worked get −0.2, half a repair gets its share."""
    table = {GOLD: ("passed", 1.0), HALF: ("partial", 0.3), BUGGY: ("failed", -0.2)}
    if task.verification.pass_to_pass:
        table[BROKEN] = ("failed", -0.2)
    for source, expected in table.items():
        verdict = bench.judge(task, {"calc.py": source})
        assert (verdict.status, verdict.outcome, verdict.reward) == ("valid", *expected), verdict
        assert set(verdict.tests) == {*task.verification.fail_to_pass, *task.verification.pass_to_pass}
        assert (set(verdict.tests.values()) == {"passed"}) == (source == GOLD)


def test_a_project_with_its_own_suite(bench: Any) -> None:
    """A src layout, frozen tests in folders, their own conftest and helper, parametrised and asynchronous names."""
    tests = {
        "conftest.py": "import pytest\n\n@pytest.fixture\ndef three():\n    return 3\n",
        "unit/helper.py": "ONE = 1\n",
        "unit/test_calc.py": "import pytest\nfrom helper import ONE\nfrom pkg.calc import add\n\n"
        "@pytest.mark.parametrize('a', [ONE, 2])\ndef test_add(a, three):\n    assert add(a, three) == a + 3\n\n"
        "def test_known_broken():\n    assert False\n",
    }
    check = Verification(
        "pytest",
        {name: File(text.encode()) for name, text in tests.items()},
        files=("unit/test_calc.py",),
        fail_to_pass=("unit/test_calc.py::test_add[1]", "unit/test_calc.py::test_add[2]"),
    )
    files = {"src/pkg/__init__.py": File(b""), "src/pkg/calc.py": File(BUGGY.encode())}
    task = make(check, files=files)
    assert bench.judge(task, {"src/pkg/calc.py": GOLD}).passed
    assert bench.judge(task).outcome == "failed"


def test_a_verdict_can_be_traced(bench: Any) -> None:
    """Evidence names task, tests, submission, layer and verifier, is plain JSON, and repeats exactly."""
    first, again = (bench.judge(plain(), {"calc.py": HALF}) for _ in range(2))
    assert first.evidence["task_digest"] == plain().digest
    assert first.evidence["tests_digest"] == plain().verification.digest
    assert first.evidence["layer"] == "python"
    assert first.verifier_version.startswith("execution/1+")
    assert json.loads(json.dumps(first.evidence)) == first.evidence
    assert first.evidence["order"] == again.evidence["order"]
    assert bench.judge(plain(), {"calc.py": HALF}, seed=5).evidence["order"] != first.evidence["order"]
    assert "returned 0, not 3" in first.evidence["details"]["c2"]


def test_a_failing_build_is_an_outcome_of_its_own(bench: Any) -> None:
    """A build that fails gives −0.5 and its output; one that works is no obstacle."""
    task = plain(build="python3 -m compileall -q .")
    verdict = bench.judge(task, {"calc.py": "def add(:\n"})
    assert (verdict.outcome, verdict.reward) == ("build_failed", -0.5)
    assert verdict.evidence["build"]["exit_code"] == 1
    assert bench.judge(task, {"calc.py": GOLD}).passed


def test_tampering_vetoes(bench: Any) -> None:
    """Touching a visible test gets −1 even beside a right repair; the repair alone passes."""
    verdict = bench.judge(PYTEST, {"calc.py": GOLD, "test_visible.py": None})
    assert (verdict.outcome, verdict.reward) == ("tampered", -1.0)
    assert [finding.kind for finding in verdict.findings] == ["visible_test_changed"]


STEERING = {
    "conftest.py": "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    "    outcome = yield\n    outcome.get_result().outcome = 'passed'\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "sitecustomize.py": "raise SystemExit(0)\n",
    "pytest.py": "def main(*a, **k):\n    return 0\n",
    "unittest.py": "raise SystemExit(0)\n",
    "values.py": "raise SystemExit(0)\n",
    "candidate.py": "raise SystemExit(0)\n",
}


@pytest.mark.parametrize("task", [plain(), PYTEST, UNITTEST, COMMAND], ids=lambda task: task.verification.runner)
def test_the_workspace_does_not_steer_the_judge(bench: Any, task: Task) -> None:
    """Configuration, hooks and shadow modules of every kind neither help a wrong attempt nor hurt a right one."""
    wrong = bench.judge(task, STEERING)
    assert (wrong.outcome, wrong.reward) == ("failed", -0.2)
    assert {"runner_config_changed", "startup_hook_changed", "shadow_module"} <= {f.kind for f in wrong.findings}
    assert bench.judge(task, STEERING | {"calc.py": GOLD}).passed


@pytest.mark.parametrize("task", [plain(), PYTEST, UNITTEST, COMMAND], ids=lambda task: task.verification.runner)
def test_leaving_early_is_no_pass(bench: Any, task: Task) -> None:
    """A submission that ends its process with status 0 at import has shown nothing."""
    verdict = bench.judge(task, {"calc.py": "import os\nprint('4 passed', flush=True)\nos._exit(0)\n"})
    assert (verdict.status, verdict.outcome, verdict.reward) == ("valid", "failed", -0.2)


EQUAL = "class E:\n    def __eq__(self, o): return True\n    def __getattr__(self, n): return self\n\n"
LIES = {
    "object": EQUAL + "def add(a, b): return E()\ndef sub(a, b): return a - b\n",
    "int": "class I(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\n\n"
    "def add(a, b): return I()\ndef sub(a, b): return a - b\n",
    "bool": "def add(a, b): return 1.0 * (a + b)\ndef sub(a, b): return a - b\n",
}


@pytest.mark.parametrize("lie", LIES)
def test_only_plain_values_cross(bench: Any, lie: str) -> None:
    """Objects that equal everything, subclasses and values of another type fail where data is compared."""
    assert bench.judge(plain(), {"calc.py": LIES[lie]}).outcome == "failed"
    if lie != "bool":  # a script compares with `==`, as its author wrote it
        assert bench.judge(COMMAND, {"calc.py": LIES[lie]}).tests["one.py"] == "failed"


SNOOP = """
import gc, os, sys

def find():
    for pid in os.listdir("/proc"):
        for name in ("mem", "fd/0", "fd/1", "environ"):
            try:
                open(f"/proc/{pid}/{name}").close()
                if int(pid) != os.getpid():
                    return pid
            except (OSError, ValueError):
                pass
    return None

def add(a, b):
    text = repr([o for o in gc.get_objects() if isinstance(o, (str, bytes, dict))])
    seen = [place for place in ("/tests", "/judge/cases.jsonl") if os.path.exists(place)]
    if find() or seen or "assert " + "add" in text:
        return a + b
    return None

def sub(a, b):
    return a - b
"""


def test_expected_values_are_out_of_reach(bench: Any) -> None:
    """A submission that would use the frozen asserts, were they in its memory, files or parent, finds none."""
    check = replace(COMMAND.verification, files=("one.py",), fail_to_pass=("one.py",), pass_to_pass=())
    task = make(replace(check, tests={"one.py": check.tests["one.py"]}))
    assert bench.judge(task, {"calc.py": SNOOP}).outcome == "failed"
    assert bench.judge(task, {"calc.py": GOLD}).passed


def test_hanging_is_failing(bench: Any) -> None:
    """A submission that never ends, busy or asleep, fails within the time limit; other cases still count."""
    for wait in ("while True: pass", "import time; time.sleep(99)"):
        source = f"def add(a, b):\n    if a == 1:\n        {wait}\n    return a + b\n"
        verdict = bench.judge(plain(timeout_s=5.0), {"calc.py": source})
        assert (verdict.outcome, verdict.reward) == ("partial", 0.55), verdict
        assert verdict.tests["c1"] == "failed"


def test_hanging_suites_and_scripts_fail(bench: Any) -> None:
    """A hang at import ends with the time limit as a failure, whatever the runner."""
    for task in (UNITTEST, COMMAND):
        task = replace(task, verification=replace(task.verification, timeout_s=1.0))
        verdict = bench.judge(task, {"calc.py": "while True: pass\n"})
        assert (verdict.status, verdict.outcome, verdict.reward) == ("valid", "failed", -0.2)


def test_using_up_memory_is_failing(bench: Any) -> None:
    """A submission that eats all memory is the candidate's failure, never a fault of the judge."""
    source = "def add(a, b):\n    x = []\n    while True: x.append(bytearray(1 << 20))\n"
    task = replace(plain(), limits=replace(Limits(), memory_bytes=64 * 1024 * 1024))
    verdict = bench.judge(task, {"calc.py": source})
    assert (verdict.status, verdict.outcome, verdict.reward) == ("valid", "failed", -0.2)


@pytest.mark.parametrize(
    "source",
    [
        "import os, signal\nos.kill(-1, signal.SIGKILL)\n",
        "import os\nfor p in range(1, 200):\n    try: os.kill(p, 19 if p > 1 else 9)\n    except OSError: pass\n",
        "import os\nwhile True: os.fork()\n",
        "import sys\nsys.stdout.write('x' * 50_000_000)\ndef add(a, b): return 'y' * 5_000_000\n",
    ],
    ids=["kill-all", "stop-all", "fork-bomb", "flood"],
)
def test_breaking_the_box_is_failing(bench: Any, source: str) -> None:
    """What a submission does to its own box is a failure with a number, not a way out of one."""
    verdict = bench.judge(plain(timeout_s=2.0), {"calc.py": source})
    assert (verdict.status, verdict.outcome, verdict.reward) == ("valid", "failed", -0.2), verdict


GENERATOR = (
    "import json, random, sys\nr = random.Random(int(sys.argv[1]))\n"
    "for i in range(10):\n    a = r.randrange(100, 10**6)\n"
    "    print(json.dumps({'id': f'f{i}', 'args': [a, 1], 'expected': a + 1}))\n"
)


def test_fresh_cases_defeat_a_table_of_answers(bench: Any) -> None:
    """Knowing every frozen answer is worth nothing where fresh cases are drawn; the repair passes them."""
    base = plain().verification
    task = make(
        replace(
            base,
            tests={**base.tests, "gen.py": File(GENERATOR.encode())},
            plain=PlainCheck("calc:add", "cases.jsonl", "gen.py"),
        )
    )
    table = "def add(a, b):\n    return {0: 1, 1: 2, 2: 3, 3: 4}.get(a)\n"
    verdict = bench.judge(task, {"calc.py": table})
    assert (verdict.outcome, verdict.reward) == ("failed", -0.2)
    assert set(verdict.tests.values()) == {"passed"}
    assert verdict.evidence["fresh"] == {"passed": 0, "total": 10}
    assert bench.judge(task, {"calc.py": GOLD}).passed
    broken = make(replace(task.verification, tests={**base.tests, "gen.py": File(b"raise SystemExit(3)\n")}))
    assert bench.judge(broken, {"calc.py": GOLD}).status == "invalid"


def test_skips_and_expected_failures_are_no_passes(bench: Any) -> None:
    """A submission that makes tests skip or xfail has not passed them."""
    skip = "import pytest\ndef add(a, b):\n    pytest.skip('no')\ndef sub(a, b):\n    pytest.xfail('no')\n"
    verdict = bench.judge(PYTEST, {"calc.py": skip})
    assert (verdict.outcome, set(verdict.tests.values())) == ("failed", {"failed"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fail_to_pass": ()}, "no test"),
        ({"pass_to_pass": ("c0",)}, "twice"),
        ({"tests": {}}, "missing"),
        ({"fail_to_pass": ("c0", "c9")}, "c9"),
        ({"tests": {"cases.jsonl": File(b"{")}}, "line 1"),
        ({"plain": PlainCheck("calc:add", "cases.jsonl", "gone.py")}, "gone.py"),
    ],
)
def test_a_broken_task_is_invalid(bench: Any, change: dict[str, Any], reason: str) -> None:
    """What the task gets wrong gives no reward, and says what it is."""
    verdict = bench.judge(plain(**change), {"calc.py": GOLD})
    assert (verdict.status, verdict.reward) == ("invalid", None)
    assert reason in str(verdict.reason)


def test_a_submission_for_other_files_is_invalid(bench: Any) -> None:
    """What edits or deletes a file that the task lacks was made for another task: no number, and the file is named."""
    for change in (Change("gone.py", "edit", File(b"")), Change("gone.py", "delete")):
        verdict = bench.runner.run(ExecutionVerifier(bench.provider).verify(plain(), Submission((change,))))
        assert (verdict.status, verdict.outcome, verdict.reward) == ("invalid", None, None)
        assert "gone.py" in str(verdict.reason)


def test_files_that_cannot_be_side_by_side_are_the_candidates_failure(bench: Any) -> None:
    """A submission that would make a file a folder of another fails; it is not skipped."""
    bad = Submission((Change("calc.py/x.py", "add", File(b"")),))
    verdict = bench.runner.run(ExecutionVerifier(bench.provider).verify(plain(), bad))
    assert (verdict.outcome, verdict.reward) == ("failed", -0.2)
    assert verdict.findings[0].kind == "does_not_apply"


def harbor(script: str) -> Task:
    check = Verification("harbor", trees(test_dot_sh=script), fail_to_pass=("reward",), timeout_s=5.0)
    return make(check)


WRITE = "echo '%s' > /logs/verifier/reward.json\n"
RIGHT = "python3 -c 'import calc; assert calc.add(1, 1) == 2'"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (f"if {RIGHT}; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi", 1.0),
        (WRITE % '{"a": 1, "b": 1.0}', 1.0),
        (WRITE % "0.5", 0.3),
        (WRITE % '{"a": 1, "b": 0}', 0.3),
        (WRITE % "0", -0.2),
        (WRITE % "NaN", None),
        (WRITE % "true", None),
        (WRITE % "{}", None),
        ("exit 0", None),
        (f"set -e\n{RIGHT}\necho 1 > /logs/verifier/reward.txt", 1.0),
    ],
)
def test_harbor_scripts(bench: Any, script: str, expected: float | None) -> None:
    """A finite reward of tests/test.sh becomes the table's number; anything else makes the task invalid."""
    verdict = bench.judge(harbor(script), {"calc.py": GOLD})
    assert verdict.reward == (None if expected is None else pytest.approx(expected, abs=1e-5)), verdict
    assert verdict.status == ("invalid" if expected is None else "valid")


def test_a_script_that_only_the_submission_breaks_is_a_failure(bench: Any) -> None:
    """No reward with this submission, a reward with the untouched task: the fault follows the submission."""
    script = "set -e\npython3 -c 'import calc'\necho 0 > /logs/verifier/reward.txt\n"
    verdict = bench.judge(harbor(script), {"calc.py": "raise SystemExit(1)\n"})
    assert (verdict.status, verdict.outcome, verdict.reward) == ("valid", "failed", -0.2)
    assert verdict.findings[-1].kind == "no_reward"


class Failing:
    """A provider whose boxes die when they hold `poison`, or always; the rest is the real one's."""

    name = "failing"

    def __init__(self, inner: SandboxProvider, poison: bytes | None = None, lives: int = 0) -> None:
        self.inner, self.poison, self.lives = inner, poison, lives
        self.capabilities, self.snapshots = inner.capabilities, inner.snapshots
        self.made = 0

    @asynccontextmanager
    async def _create(self, spec: BoxSpec) -> AsyncIterator[Sandbox]:
        self.made += 1
        if self.made > self.lives and (self.poison is None or any(f.data == self.poison for f in spec.files.values())):
            raise CreateFailed("no room") if self.made % 2 else SandboxTimeout("no answer")
        async with self.inner.create(spec) as box:
            yield box

    def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self._create(spec)

    def fork(self, snapshot: str, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return self.inner.fork(snapshot, spec)


def verify_with(bench: Any, provider: Failing, source: str) -> Any:
    verifier = ExecutionVerifier(cast(SandboxProvider, provider), drivers=bench.drivers)
    change = Change("calc.py", "edit", File(source.encode()))
    return bench.runner.run(verifier.verify(plain(), Submission((change,))))


def test_a_lost_box_is_never_a_number(bench: Any) -> None:
    """Boxes that die whatever they hold leave the verdict unscorable, after one retry and a control."""
    provider = Failing(bench.provider)
    verdict = verify_with(bench, provider, GOLD)
    assert (verdict.status, verdict.outcome, verdict.reward) == ("unscorable", None, None)
    assert "no room" in verdict.reason
    assert provider.made == 4


def test_one_lost_box_is_replaced(bench: Any) -> None:
    """A single fault costs a second box, is on record, and does not change the verdict."""

    class Once(Failing):
        @asynccontextmanager
        async def _create(self, spec: BoxSpec) -> AsyncIterator[Sandbox]:
            self.made += 1
            if self.made == 1:
                raise SandboxDied("gone")
            async with self.inner.create(spec) as box:
                yield box

    verdict = verify_with(bench, Once(bench.provider), GOLD)
    assert verdict.passed
    assert verdict.evidence["faults"] == ["SandboxDied: gone"]


def test_a_box_that_only_this_submission_ends_is_its_failure(bench: Any) -> None:
    """Two lost boxes with the submission and none without: killing the box is no way out of a failure."""
    verdict = verify_with(bench, Failing(bench.provider, poison=GOLD.encode()), GOLD)
    assert (verdict.status, verdict.outcome, verdict.reward) == ("valid", "failed", -0.2)
    assert verdict.findings[-1].kind == "box_lost"


def test_using_up_the_judges_memory_is_a_failure(bench: Any) -> None:
    """A submission that fills the judge's box with what outlives its process is judged as failed, not masked."""
    source = GOLD + "\nwith open('/dev/shm/x', 'wb') as file:\n    file.write(bytes(1 << 20) * 200)\n"
    task = replace(plain(), limits=Limits(memory_bytes=64 << 20, disk_bytes=256 << 20))
    verdict = bench.judge(task, {"calc.py": source})
    assert (verdict.status, verdict.outcome, verdict.reward) == ("valid", "failed", -0.2)


@pytest.mark.parametrize(("always", "status"), [(False, "valid"), (True, "invalid")])
def test_a_box_that_ran_out_of_memory_is_not_tried_again(bench: Any, always: bool, status: str) -> None:
    """It is the submission's failure, unless the untouched task has it as well: then the task is at fault."""

    class Small(Failing):
        @asynccontextmanager
        async def _create(self, spec: BoxSpec) -> AsyncIterator[Sandbox]:
            self.made += 1
            async with self.inner.create(spec) as box:
                yield box
            if always or any(file.data == GOLD.encode() for file in spec.files.values()):
                raise BoxOutOfMemory("it is full")

    provider = Small(bench.provider)
    verdict = verify_with(bench, provider, GOLD)
    assert (verdict.status, verdict.outcome) == (status, "failed" if status == "valid" else None)
    assert provider.made == 2
    assert verdict.evidence["faults"] == ["BoxOutOfMemory: it is full"] * (2 if always else 1)


def test_drivers_are_compiled_once_for_a_layer(bench: Any) -> None:
    """However many ask at the same time, and one failure is not kept."""

    class Counting(Failing):
        @asynccontextmanager
        async def _create(self, spec: BoxSpec) -> AsyncIterator[Sandbox]:
            self.made += 1
            if self.made == 1:
                spec = replace(spec, files=dict(spec.files) | {"bad.py": File(b"not python")})
            async with self.inner.create(spec) as box:
                yield box

    provider = Counting(bench.provider)

    async def ask() -> list[Any]:
        drivers = Drivers(cast(SandboxProvider, provider))
        with pytest.raises(VerifierError, match="could not compile"):
            await drivers.tree("python")
        return await asyncio.gather(*(drivers.tree("python") for _ in range(3)))

    first, second, third = bench.runner.run(ask())
    assert first is second is third
    assert {"plain.pyc", "suites.pyc", "pytest.ini"} <= set(first)
    assert provider.made == 2


def test_a_judge_without_its_tools_is_unscorable(bench: Any) -> None:
    """Where the driver cannot start, nothing was decided."""

    class Bare(Failing):
        def create(self, spec: BoxSpec) -> AbstractAsyncContextManager[Sandbox]:
            return self.inner.create(replace(spec, readonly={}))

    verdict = verify_with(bench, Bare(bench.provider), GOLD)
    assert (verdict.status, verdict.reward) == ("unscorable", None)
    assert "did not start" in verdict.reason


def test_verdicts_are_independent(bench: Any) -> None:
    """Many submissions judged at the same time get the verdicts they get alone."""
    verifier = ExecutionVerifier(bench.provider, max_concurrent=4)
    sources = [GOLD, BUGGY, HALF] * 3

    async def all_at_once() -> list[Any]:
        jobs = [
            verifier.verify(plain(), Submission((Change("calc.py", "edit", File(source.encode())),)))
            for source in sources
        ]
        return await asyncio.gather(*jobs)

    assert [verdict.outcome for verdict in bench.runner.run(all_at_once())] == ["passed", "failed", "partial"] * 3


def test_work_that_is_known_to_be_wrong_fails_once_it_has_used_its_seconds(bench: Any) -> None:
    """An endless loop is ended by the processor's seconds that it was given, and not by the tests' time."""
    endless = "def add(a, b):\n    while True: pass\n\ndef sub(a, b):\n    return a - b\n"
    judge = bench.verifier(0).repeating("nonce", Trials(0), cpu_s=1)
    submission = Submission((Change("calc.py", "edit", File(endless.encode())),))
    task = replace(PYTEST, verification=replace(PYTEST.verification, timeout_s=300.0))
    verdict = bench.runner.run(judge.verify(task, submission))
    assert verdict.outcome == "failed"
    assert (verdict.evidence["how"], verdict.evidence["exit_code"]) in [("ended", -24), ("ended", -9)]


def test_seconds_beyond_those_of_the_box_are_no_obstacle(bench: Any) -> None:
    """Work that may use more of a processor than its box allows comes to run, by what the box allows."""
    judge = bench.verifier(0).repeating("nonce", Trials(0), cpu_s=10_000)
    submission = Submission((Change("calc.py", "edit", File(GOLD.encode())),))
    verdict = bench.runner.run(judge.verify(PYTEST, submission))
    assert verdict.passed, verdict.evidence
