"""What gates make of work that is slow, paid in part, or done with less than a task allows."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from practicum.curation.gates import attacks, gold
from practicum.curation.gates.contract import Bench, Case, Settings, Surroundings, result_of
from practicum.curation.gates.ladder import LADDER
from practicum.curation.gates.mutants import Wrong, judged
from practicum.curation.soundness.scripts import script_agent
from practicum.records.task import MIB, Limits, Task, Verification
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission
from practicum.rollouts.attempt import AttemptSpec

if TYPE_CHECKING:
    from curation.gates.conftest import Assess, Shop

SLOW = b"""\
import time

while time.process_time() < %d:
    pass


def total(items):
    return sum(items)


def largest(items):
    return max(items)
"""


def submission(data: bytes) -> Submission:
    return Submission((Change("shop.py", "edit", File(data)),))


async def _with_gold(task: Task, bench: Bench, settings: Settings) -> Case:
    """A case whose gold was found by an earlier check: only the results are known."""
    first = Case(task, bench, settings, Surroundings([task]))
    found = await gold.GATE.assess(first)
    assert found.passed, found.reason
    case = Case(task, bench, settings, Surroundings([task]))
    case.results["gold"] = result_of(gold.GATE, found, 0.0)
    assert case.hanging_s is not None
    return case


def test_slow_work_is_not_taken_for_wrong(shop: Shop, boxes: tuple[asyncio.Runner, Bench]) -> None:
    """What uses many times the gold's seconds of a processor within the task's limits may pass: as an attack it is
    rewarded, and as a wrong variant of the gold it lives, or is left out where enough others fail."""
    runner, bench = boxes

    async def run() -> None:
        task = shop()
        case = await _with_gold(task, bench, Settings(repeat=1, min_mutants=1))
        assert case.hanging_s is not None
        slow = SLOW % (case.hanging_s + 1)
        script = f"cat > shop.py <<'END'\n{slow.decode()}END\n"
        spec = AttemptSpec(case.required, "slow", seed=0)
        attack = await attacks.attempt(case, script_agent({spec.id: script}), spec)
        assert attack.verdict is not None
        assert attack.verdict.passed, attack.verdict
        late = Wrong("part", "slow", submission(slow), str)
        wrong = [Wrong("part", f"wrong {n}", submission(b"total = %d\nlargest = max\n" % n), str) for n in range(3)]
        assert [(each.name, verdict.passed) for each, verdict in await judged(case, [late], [])] == [("slow", True)]
        decided = await judged(case, [late, *wrong], [])
        assert [(each.name, verdict.passed) for each, verdict in decided] == [(each.name, False) for each in wrong]

    runner.run(run())


def test_a_gold_that_fits_no_smaller_box_is_judged(assess: Assess, shop: Shop) -> None:
    """That no box can be made with half the disk says nothing against the gold; it is for the gate `limits` to say."""
    task = shop()
    full = replace(
        task, files={**task.files, "data.bin": File(bytes(6 * MIB))}, limits=replace(task.limits, disk_bytes=10 * MIB)
    )
    (found,) = assess(full, gates=["gold", "limits"], settings=Settings(repeat=2))
    assert found.gates["gold"].passed, found.gates["gold"].reason
    assert found.gates["gold"].evidence["passed"] == 2
    assert not found.gates["limits"].passed


MODULE = b"def low(a, b):\n    return min(a, b)\n\n\ndef high(a, b):\n    return max(a, b)\n"
WEAK = b"from m import low\n\n\ndef test_low():\n    assert low(1, 2) == 1\n"
STRONG = WEAK + b"\n\ndef test_high():\n    from m import high\n\n    assert [high(1, 2), high(2, 1)] == [2, 2]\n"


def test_doing_nothing_that_is_paid_in_part_is_found_each_time(assess: Assess) -> None:
    """Tests that the workspace holds already, and that catch one mutant, are seen to earn something, by no luck."""
    texts = {
        "original": MODULE,
        "mutant-1": MODULE.replace(b"min(a, b)", b"a + b"),
        "mutant-2": MODULE.replace(b"max(a, b)", b"a"),
        "mutant-3": MODULE.replace(b"max(a, b)", b"b"),
        "mutant-4": MODULE.replace(b"max(a, b)", b"min(a, b)"),
    }
    files = {f"{name}/m.py": File(text) for name, text in texts.items()}
    task = Task(
        id="tests",
        instruction="Write tests for low and high of m.py, in test_m.py, so that mistakes in them are caught.",
        files={"m.py": File(MODULE), "test_m.py": File(WEAK)},
        verification=Verification("variants", files, tuple(files), (), tuple(texts), timeout_s=20.0),
        editable=("test_m.py",),
        limits=Limits(command_s=10.0),
        solution={"solve.sh": File(b"cp /solution/test_m.py test_m.py\n", 0o755), "test_m.py": File(STRONG)},
    )
    (found,) = assess(task, gates=["noop"], settings=Settings(repeat=10))
    assert found.decision == "rejected"
    verdicts = found.gates["noop"].evidence["verdicts"]
    assert [verdict["outcome"] for verdict in verdicts] == ["partial"] * 10


def test_all_gates_that_are_named_are_asked(assess: Assess, shop: Shop) -> None:
    """After one that rejects as well, be it that all of the ladder are named; where none is, the others are not."""
    task = replace(shop(b"def test_total(): ...\n\n\ndef test_total_of_one(): ...\n"), solution={})
    named, unnamed = (assess(task, gates=gates)[0].gates for gates in ([gate.name for gate in LADDER], []))
    assert [found["assertions"].passed for found in (named, unnamed)] == [False, False]
    assert named["environment"].passed
    assert named["gold"].assessed
    assert unnamed["environment"].evidence == {"needs": "assertions"}
