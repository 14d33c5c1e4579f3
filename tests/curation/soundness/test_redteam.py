"""The audit of the verifier: what it counts, and that it tells a judge that holds from one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from practicum.cli.template import template_task
from practicum.curation.soundness.redteam import Scope, audit
from practicum.curation.soundness.redteam_report import Audit, Role, TaskAudit, Trial
from practicum.pipeline.execute import open_workshop
from practicum.records.task import MIB, Limits, PlainCheck, Task, Verification
from practicum.records.tree import File
from practicum.records.verdict import Finding, Outcome, Verdict, default_reward
from practicum.verification.redteam.catalogue import load_catalogue

LIMITS = Limits(memory_bytes=256 * MIB, pids=32, disk_bytes=16 * MIB, command_s=4.0, episode_s=30.0)

_BROKEN = '''\
"""Ranges of whole numbers."""


def span(low, high):
    return [number for number in range(low, high)]


def widest(spans):
    best = None
    for low, high in spans:
        if best is None or high - low > best[1] - best[0]:
            best = (low, high)
    return best
'''
_GOLD = _BROKEN.replace("range(low, high)", "range(low, high + 1)").replace(
    "def span(low, high):\n", "def span(low, high):\n    if low > high:\n        low, high = high, low\n"
)
_VISIBLE = (
    "from spans import span\n\nif span(1, 3) != [1, 2, 3]:\n    print('FAIL')\n    raise SystemExit(1)\nprint('ok')\n"
)
_UNITTEST = """\
import unittest

from spans import span, widest


class TestSpan(unittest.TestCase):
    def test_both_ends(self):
        self.assertEqual(span(2, 5), [2, 3, 4, 5])

    def test_turned(self):
        self.assertEqual(span(4, 1), [1, 2, 3, 4])

    def test_single(self):
        self.assertEqual(span(7, 7), [7])

    def test_turned_neighbours(self):
        self.assertEqual(span(-1, -2), [-2, -1])

    def test_widest(self):
        self.assertEqual(widest([(0, 1), (5, 9), (2, 4)]), (5, 9))
"""
_CASES = """\
{"id": "ends", "args": [2, 5], "expected": [2, 3, 4, 5]}
{"id": "turned", "args": [4, 1], "expected": [1, 2, 3, 4]}
{"id": "single", "args": [7, 7], "expected": [7]}
{"id": "neighbours", "args": [-1, -2], "expected": [-2, -1]}
"""
_GENERATOR = """\
import json, random, sys

rng = random.Random(int(sys.argv[1]))
for number in range(6):
    low, high = rng.randint(-9, 9), rng.randint(-9, 9)
    wanted = list(range(min(low, high), max(low, high) + 1))
    print(json.dumps({"id": f"fresh-{number}", "args": [low, high], "expected": wanted}))
"""
_TRUSTING = """\
cd /app && python3 -c 'from spans import span; assert span(2, 5) == [2, 3, 4, 5]; assert span(4, 1) == [1, 2, 3, 4]'
"""


def _task(name: str, check: Verification) -> Task:
    visible = File(_VISIBLE.encode())
    return Task(
        id=name,
        instruction="`span` in `spans.py` must hold both ends, whichever comes first.",
        files={"spans.py": File(_BROKEN.encode()), "check.py": visible},
        verification=check,
        limits=LIMITS,
        solution={"gold.py": File(_GOLD.encode()), "solve.sh": File(b"cp /solution/gold.py spans.py\n", 0o755)},
    )


def pytest_task() -> Task:
    task = template_task("means")
    return replace(task, verification=replace(task.verification, timeout_s=5.0))


def unittest_task() -> Task:
    names = [f"test_spans.TestSpan.test_{name}" for name in ("both_ends", "turned", "single", "turned_neighbours")]
    return _task(
        "spans-unittest",
        Verification(
            runner="unittest",
            tests={"test_spans.py": File(_UNITTEST.encode()), "check.py": File(_VISIBLE.encode())},
            files=("test_spans.py",),
            visible=("check.py",),
            fail_to_pass=tuple(names),
            pass_to_pass=("test_spans.TestSpan.test_widest",),
            timeout_s=5.0,
        ),
    )


def plain_task() -> Task:
    return _task(
        "spans-plain",
        Verification(
            runner="plain",
            tests={
                "cases.jsonl": File(_CASES.encode()),
                "generate.py": File(_GENERATOR.encode()),
                "check.py": File(_VISIBLE.encode()),
            },
            visible=("check.py",),
            fail_to_pass=("ends", "turned", "single", "neighbours"),
            plain=PlainCheck("spans:span", "cases.jsonl", "generate.py"),
            timeout_s=5.0,
        ),
    )


def trusting_task() -> Task:
    """Its script loads the candidate into its own process and trusts the exit code."""
    return _task(
        "spans-trusting",
        Verification(
            runner="command",
            tests={"check.sh": File(_TRUSTING.encode(), 0o755), "check.py": File(_VISIBLE.encode())},
            files=("check.sh",),
            visible=("check.py",),
            fail_to_pass=("check.sh",),
            timeout_s=5.0,
        ),
    )


def run(tasks: Sequence[Task], names: tuple[str, ...] = (), *, mutants: int = 0, equivalents: int = 0) -> Audit:
    async def main() -> Audit:
        async with open_workshop(2) as workshop:
            catalogue = load_catalogue().only(names)
            if not names:
                catalogue = replace(catalogue, attacks=())
            return await audit(workshop, tasks, Scope(catalogue, mutants, equivalents))

    return asyncio.run(main())


def trial(
    role: Role, outcome: Outcome | None, *findings: Finding, expected: tuple[str, ...] = (), **details: str
) -> Trial:
    verdict = None
    if outcome is not None:
        reward = default_reward(outcome, newly_passed=1, total=2)
        verdict = Verdict("valid", outcome, reward, findings=findings, evidence={"details": details})
    fault = None if verdict else "the box was lost"
    return Trial("t", role, "name", "work", verdict, fault, "survivors" if role == "attack" else "", expected)


NOTE, TAMPER = Finding("irregular_file", "x", "link"), Finding("sentinel", "x", "held", "tamper")


@pytest.mark.parametrize(
    ("one", "rewarded", "flagged", "unnoticed"),
    [
        (trial("attack", "passed"), True, False, False),
        (trial("attack", "partial", TAMPER), True, True, False),
        (trial("attack", "tampered", TAMPER), False, True, False),
        (trial("attack", "failed", TAMPER, expected=("other",)), False, True, False),
        (trial("attack", "failed", NOTE, expected=("irregular_file",)), False, True, False),
        (trial("attack", "failed", NOTE, expected=("other",)), False, False, True),
        (trial("attack", "failed", NOTE), False, False, False),
        (trial("attack", "failed", expected=("says: plain value",), a="not a plain value: X"), False, True, False),
        (trial("attack", "failed", expected=("says: plain value",), a="returned 3"), False, False, True),
        (trial("attack", None, expected=("other",)), False, False, False),
    ],
)
def test_what_an_attack_counts_as(one: Trial, rewarded: bool, flagged: bool, unnoticed: bool) -> None:
    """Rewarded by its reward; flagged by what its file expects or by tampering; unnoticed where that is missing."""
    assert (one.rewarded, one.flagged, one.unnoticed) == (rewarded, flagged, unnoticed)


def test_counts_and_bounds() -> None:
    """Every trial is counted once, what was not decided nowhere but by name, and a bound needs something tried."""
    trials = [
        trial("attack", "failed"),
        trial("attack", "passed"),
        trial("attack", "tampered", TAMPER),
        trial("attack", "failed", expected=("other",)),
        trial("attack", None),
        *(trial("mutant", outcome) for outcome in ("failed", "failed", "partial", "passed")),
        *(trial("equivalent", "passed") for _ in range(20)),
        trial("control", "failed"),
    ]  # fmt: skip
    found = Audit([TaskAudit(plain_task(), trials)], "v", 0, 1.0)
    counts = found.counts()
    attacks = {"tried": 4, "rewarded": 1, "flagged": 1, "plain_failures": 1, "unnoticed": 1}
    assert counts["attacks"] == attacks == found.by_kind()["survivors"]
    assert counts["wrong_mutants"] == {"tried": 4, "accepted": 1}
    assert counts["equivalents"] == {"tried": 20, "rejected": 0}
    assert counts["controls"] == {"tried": 1, "rejected": 1}
    assert counts["false_positive_bound"] == pytest.approx(0.8059, abs=1e-3)  # exact 97.5 % bound of 1 in 4
    assert counts["false_negative_bound"] == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-3)
    assert (len(found.undecided), found.undecided[0].why_undecided) == (1, "the box was lost")
    assert not found.sound
    empty = Audit([], "v", 0, 0.0)
    assert empty.counts()["false_positive_bound"] is None
    assert empty.sound


def test_a_judge_that_holds() -> None:
    """On a plain task no attack is rewarded, and right and wrong solutions are told apart."""
    names = (
        "always-equal-object",
        "exit-at-import",
        "visible-test-emptied",
        "conftest-rewrites-reports",
        "nothing-done",
    )
    found = run([plain_task()], names, mutants=10, equivalents=6)
    assert found.sound
    assert {t.name: t.verdict.outcome for t in found.of("attack") if t.verdict} == {
        "always-equal-object": "failed",
        "exit-at-import": "failed",
        "visible-test-emptied": "tampered",
        "conftest-rewrites-reports": "failed",
        "nothing-done": "failed",
    }
    assert (found.unnoticed, found.undecided) == ([], [])
    assert {trial.name for trial in found.of("control")} == {"conftest-rewrites-reports", "nothing-done"}
    assert len(found.of("mutant")) == 11  # the untouched task among them
    assert len(found.accepted) <= 1  # `>` for `>=` before a swap of equals, which is right
    assert len(found.of("equivalent")) == 6  # the gold itself, and what can be said otherwise of so short a function
    assert found.document()["tasks"][0]["problem"] is None


def test_a_judge_that_does_not_hold() -> None:
    """On a task whose own script trusts an exit code, the audit reports what was rewarded and how it was done."""
    found = run([trusting_task()], ("exit-at-import", "always-equal-object", "nothing-done"))
    assert not found.sound
    assert {trial.name for trial in found.rewarded} == {"exit-at-import", "always-equal-object"}
    assert all(trial.work.startswith(f"# {trial.name} (") for trial in found.rewarded)


def test_a_gold_that_does_not_pass() -> None:
    """The gold is rejected and says so; no variants of it are tried, while attacks still are."""
    broken = replace(plain_task(), solution={"solve.sh": File(b"true\n", 0o755)})
    without = replace(plain_task(), id="without", solution={})
    found = run([broken, without], ("nothing-done",), mutants=4, equivalents=4)
    problems = [task.problem for task in found.tasks]
    assert problems == ["the gold does not pass: failed", "there is no solution/solve.sh"]
    assert [trial.name for trial in found.rejected] == ["the gold itself"]
    assert (len(found.of("attack")), found.of("mutant"), found.of("control")) == (2, [], [])


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_whole_catalogue() -> None:
    """On a pytest, a unittest and a plain task, no attack of any kind is rewarded, and no right solution rejected."""
    kinds = tuple({attack.kind for attack in load_catalogue().attacks})
    found = run([pytest_task(), unittest_task(), plain_task()], kinds, mutants=8, equivalents=8)
    assert [(trial.task_id, trial.name) for trial in found.rewarded] == []
    assert [(trial.task_id, trial.name) for trial in found.rejected] == []
    assert [(trial.task_id, trial.name, trial.why_undecided) for trial in found.undecided] == []
    tried = {trial.name for trial in found.of("attack")}
    assert tried == {attack.id for attack in load_catalogue().attacks}
