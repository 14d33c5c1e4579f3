"""Each planted fault is caught by the gate that is meant to, and only there."""

from __future__ import annotations

import hashlib
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from practicum.curation.gates.contract import Settings
from practicum.records.task import MIB, Task
from practicum.records.tree import File

if TYPE_CHECKING:
    from collections.abc import Mapping

    from curation.gates.conftest import Assess, Shop

START = b"def total(items):\n    result = 0\n    for item in items:\n        result -= item\n    return result\n"
START += b"\n\ndef largest(items):\n    return max(items)\n"
GOLD = START.replace(b"-= item", b"+= item")
TESTS = (
    b"from shop import largest, total\n\n\n"
    b"def test_total():\n    assert total([1, 2, 4]) == 7\n\n\n"
    b"def test_total_of_one():\n    assert total([3]) == 3\n\n\n"
    b"def test_largest():\n    assert largest([2, 5, 3]) == 5\n"
)

PATCH = b"--- a/shop.py\n+++ b/shop.py\n@@ -4 +4 @@\n-        result -= item\n+        result += item\n"


def loose(data: bytes) -> tuple[str, File]:
    """A git object as git would store it."""
    whole = b"blob %d\0" % len(data) + data
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    return f".git/objects/{name[:2]}/{name[2:]}", File(zlib.compress(whole))


def packed(folder: Path, data: bytes) -> tuple[str, File]:
    """A pack made by git, with the data as a delta on what the workspace holds, and reachable from nothing."""

    def git(*words: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(["git", "-C", str(folder), *words], input=stdin, capture_output=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    names = [git("hash-object", "-w", "--stdin", stdin=each) for each in (START, data)]
    made = git("pack-objects", "-q", "--window=5", ".git/objects/pack/pack", stdin=b"\n".join(names) + b"\n").decode()
    return f".git/objects/pack/pack-{made}.pack", File((folder / f".git/objects/pack/pack-{made}.pack").read_bytes())


def with_files(task: Task, files: Mapping[str, File]) -> Task:
    return replace(task, files={**task.files, **files})


LEAKS = {
    "shop.py.orig": GOLD,
    "docs/old/shop.py": GOLD,
    "notes/fix.patch": PATCH,
    "__pycache__/shop.cpython-311.pyc": b"\xa7\r\r\n bytecode",
    "checks/tests.py": TESTS,
    "cache.zip.bak": b"",
}


@pytest.mark.parametrize("place", [name for name in LEAKS if LEAKS[name]])
def test_a_planted_leak_is_found(assess: Assess, shop: Shop, place: str) -> None:
    """The gold, a part of it, its bytecode or the frozen tests in the workspace reject the task."""
    (found,) = assess(with_files(shop(), {place: File(LEAKS[place])}), gates=["leaks"])
    leaks = found.gates["leaks"]
    assert (leaks.passed, leaks.assessed) == (False, True)
    assert place in leaks.reason
    assert found.decision == "rejected"
    assert found.reason.startswith("leaks: ")


def test_objects_of_git_give_the_gold_away(assess: Assess, shop: Shop, tmp_path: Path) -> None:
    """A later blob is found whether it lies loose or as a delta in a pack, and reachable from no commit."""
    for place, file in (loose(GOLD), packed(tmp_path, GOLD)):
        (found,) = assess(with_files(shop(), {place: file}), gates=["leaks"])
        assert not found.gates["leaks"].passed
        assert "an object of git" in found.gates["leaks"].reason
    (clean,) = assess(with_files(shop(), dict([loose(START), loose(b"blob of something else\n")])), gates=["leaks"])
    assert clean.gates["leaks"].passed, clean.gates["leaks"].reason


def test_what_stays_within_the_task_is_no_leak(assess: Assess, shop: Shop) -> None:
    """Visible tests, code like that under repair and names that promise much are not held against a task."""
    task = shop()
    visible = b"from shop import total\n\n\ndef test_visible():\n    assert total([]) == 0\n"
    check = replace(
        task.verification,
        tests={**task.verification.tests, "test_visible.py": File(visible)},
        visible=("test_visible.py",),
    )
    like = b"def product(items):\n    result = 1\n    for item in items:\n        result *= item\n    return result\n"
    files = {"test_visible.py": File(visible), "solution.py": File(like), "product.py": File(like)}
    (found,) = assess(with_files(replace(task, verification=check), files), gates=["leaks"])
    assert found.gates["leaks"].passed, found.gates["leaks"].reason


FLAKY = {
    "chance": "import random\n\n    assert total([1]) == 1 and random.random() < 0.5",
    "hash seed": "assert total([1]) == 1 and hash('a word') == {hash}",
    "time zone": "import time\n\n    assert total([1]) == 1 and time.timezone == 0",
    "clock": "import datetime\n\n    today = datetime.date.today()\n    assert total([1]) == 1\n"
    "    assert abs((today - datetime.date({year}, {month}, {day})).days) < 3",
    "order": "import shop\n\n    assert total([1]) == 1 and hasattr(shop, 'left_behind')",
}


@pytest.mark.parametrize("by", sorted(FLAKY))
def test_a_flaky_test_is_found(assess: Assess, shop: Shop, by: str) -> None:
    """A test that passes only by luck, by what ran before it, or under one hash seed, zone or date rejects the task."""
    import datetime
    import sys

    now = datetime.datetime.now(datetime.UTC)
    at_zero = subprocess.run(
        [sys.executable, "-c", "print(hash('a word'))"],
        env={"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    body = FLAKY[by].replace("{hash}", at_zero)
    for name in ("year", "month", "day"):
        body = body.replace(f"{{{name}}}", str(getattr(now, name)))
    tests = TESTS
    if by == "order":
        tests = tests.replace(
            b"    assert largest", b"    import shop\n\n    shop.left_behind = True\n    assert largest"
        )
    task = shop(tests + f"\n\ndef test_odd():\n    {body}\n".encode(), more=["test_odd"])
    # Once in a while luck holds for the gold; then it must not for all that follows.
    (found,) = assess(task, gates=["determinism"], settings=Settings(repeat=1, more_rounds=24))
    if by == "chance" and not found.gates["gold"].passed:
        assert found.decision == "rejected"
        return
    assert (found.gates["determinism"].passed, found.gates["determinism"].assessed) == (False, True), by
    assert found.decision == "rejected"
    if by != "chance":
        rows = found.gates["determinism"].evidence["judgements"]
        assert any(not row["as_before"] for row in rows)


def test_a_steady_task_bears_all_conditions(assess: Assess, shop: Shop) -> None:
    """A task whose tests depend on nothing but the work passes under each condition, and what was varied is named."""
    (found,) = assess(shop(), gates=["determinism"])
    result = found.gates["determinism"]
    assert result.passed, result.reason
    assert all(row["as_before"] for row in result.evidence["judgements"])
    assert any("clock" in row["condition"] for row in result.evidence["judgements"])
    assert "the time of day as Python sees it" in result.evidence["varied"]


@pytest.mark.parametrize(
    "body",
    [
        "    total([1])\n    assert True\n",
        "    assert total([1]) == total([1])\n",
        "    try:\n        assert total([1]) == 1\n    except Exception:\n        pass\n",
        "    pass\n",
    ],
)
def test_a_vacuous_test_is_found(assess: Assess, shop: Shop, body: str) -> None:
    """A test that passes whatever is handed in rejects the task, be it named in one list or the other."""
    task = shop(TESTS + b"\n\ndef test_nothing():\n" + body.encode(), more=["test_nothing"])
    (found,) = assess(task, gates=["assertions"])
    assert found.decision == "rejected"
    assert "test_nothing" in found.gates["assertions"].reason


def test_helpers_and_raises_count_as_checks(assess: Assess, shop: Shop) -> None:
    """A test is not vacuous that checks by a helper, by a fixture, or by the exception that it expects."""
    tests = TESTS + (
        b"\nimport pytest\n\n\ndef same(found, wanted):\n    assert found == wanted\n\n\n"
        b"def test_by_helper():\n    same(total([1]), 1)\n\n\n"
        b"def test_by_exception():\n    with pytest.raises(TypeError):\n        total(None)\n"
    )
    (found,) = assess(shop(tests, more=["test_by_helper", "test_by_exception"]), gates=["assertions"])
    assert found.gates["assertions"].passed, found.gates["assertions"].reason
    assert found.gates["assertions"].evidence["check_something"] == 5


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_tests_that_nothing_can_ask(assess: Assess, shop: Shop, seed: int) -> None:
    """Where all that must come to pass checks by helpers, a forged report is tried whatever is drawn, and rejects."""
    tests = (
        b"from shop import largest, total\n\n\ndef same(found, wanted):\n    assert found == wanted\n\n\n"
        b"def test_total():\n    same(total([3, 4]), 7)\n\n\ndef test_total_of_one():\n    same(total([3]), 3)\n\n\n"
        b"def test_largest():\n    same(largest([3, 1]), 3)\n"
    )
    (found,) = assess(shop(tests), gates=["attacks"], settings=Settings(repeat=1, attacks=1, seed=seed))
    assert found.decision == "rejected"
    assert "reports-patched" in found.gates["attacks"].reason
    (found,) = assess(shop(), gates=["attacks"], settings=Settings(repeat=1, attacks=1, seed=seed))
    assert found.gates["attacks"].passed, found.gates["attacks"].reason


def test_a_gold_that_sometimes_fails(assess: Assess, shop: Shop) -> None:
    """A gold that passes by luck is rejected by its own gate, with how often it passed."""
    lucky = GOLD.replace(b"    return result\n", b"    import os\n\n    return result + os.urandom(1)[0] % 2\n", 1)
    (found,) = assess(shop(gold=lucky), gates=["gold"], settings=Settings(repeat=12))
    assert found.decision == "rejected"
    assert found.gates["gold"].assessed
    assert found.gates["gold"].evidence["passed"] < 12


def test_doing_nothing_must_fail(assess: Assess, shop: Shop) -> None:
    """A task that is done already, or whose lists are wrong, is rejected by the gate on doing nothing."""
    done = replace(shop(), files={"shop.py": File(GOLD + b"\n")})
    (found,) = assess(done, gates=["noop"])
    assert found.reason == "noop: doing nothing passes"
    task = shop()
    wrong = replace(task.verification, fail_to_pass=(*task.verification.fail_to_pass, "test_shop.py::test_largest"))
    (found,) = assess(replace(task, verification=replace(wrong, pass_to_pass=())), gates=["noop"])
    assert "named in fail_to_pass, but pass on the untouched task" in found.reason


def test_limits_without_margin(assess: Assess, shop: Shop) -> None:
    """A memory limit that is only just enough rejects the task, and is named."""
    hungry = GOLD.replace(b"    result = 0\n", b"    held = b'x' * (80 << 20)\n    result = len(held) * 0\n")
    task = shop(gold=hungry)
    tight = replace(task, limits=replace(task.limits, memory_bytes=160 * MIB))
    (found,) = assess(tight, gates=["limits"])
    assert found.gates["gold"].passed, found.gates["gold"].reason
    assert found.decision == "rejected"
    assert found.gates["limits"].evidence["tight"] == ["memory_bytes"]


def test_an_instruction_that_does_not_name_what_is_asked(assess: Assess, shop: Shop) -> None:
    """A function, an exception or a message that only the tests and the gold know of puts the task into quarantine."""
    gold = GOLD + (
        b"\n\nclass Bankrupt(Exception):\n    pass\n\n\n"
        b"def invoice(items):\n    if not items:\n        raise Bankrupt('nothing was ordered')\n"
        b"    return total(items)\n"
    )
    tests = TESTS.replace(b"from shop import", b"import pytest\nfrom shop import Bankrupt, invoice,") + (
        b"\n\ndef test_invoice():\n    assert invoice([1]) == 1\n"
        b"    with pytest.raises(Bankrupt, match='nothing was ordered'):\n        invoice([])\n"
    )
    task = shop(tests, gold=gold, more=["test_invoice"])
    (found,) = assess(replace(task, verification=replace(task.verification, pass_to_pass=())), gates=["requirements"])
    told = {(each["kind"], each["what"]) for each in found.gates["requirements"].evidence["unstated"]}
    assert {("name", "invoice"), ("name", "Bankrupt"), ("message", "nothing was ordered")} <= told
    assert found.decision == "quarantined"
    words = "Add invoice(items), which raises Bankrupt with the message `nothing was ordered` where items is empty."
    named = replace(task, instruction=f"{task.instruction} {words}")
    (found,) = assess(replace(named, verification=replace(task.verification, pass_to_pass=())), gates=["requirements"])
    assert found.gates["requirements"].passed, found.gates["requirements"].reason


def test_weak_tests_let_mutants_live(assess: Assess, shop: Shop) -> None:
    """Tests that accept most wrong variants of the gold reject the task, and survivors are shown as diffs."""
    weak = TESTS.replace(b"== 7", b"!= -7").replace(b"== 3", b"!= -3")
    (found,) = assess(shop(weak), gates=["mutants"])
    result = found.gates["mutants"]
    assert (result.passed, result.assessed) == (False, True)
    assert result.evidence["killed"] < result.evidence["tried"]
    assert "+" in result.evidence["survivors"][0]["differs_from_gold"]


def test_a_planted_duplicate(assess: Assess, shop: Shop) -> None:
    """Of two tasks that are the same work the first by id stays; the other is rejected and names it."""
    first, second = assess(shop(id="a"), shop(id="b"), gates=["duplicates"])
    assert first.gates["duplicates"].passed
    assert second.decision == "rejected"
    assert "the same work as a" in second.reason


def test_what_is_kept_for_measuring_is_protected(assess: Assess, shop: Shop) -> None:
    """A task for training that is like one of the split for testing is rejected, and the evidence names what it was
    compared with; the one that is kept for testing stays."""
    train, kept = shop(id="a"), replace(shop(id="b"), split="test")
    first, second = assess(train, kept, gates=["contamination"])
    assert first.decision == "rejected"
    assert "like the protected b" in first.reason
    assert first.gates["contamination"].evidence["compared_with"] == {"split test": 1, "split validation": 0}
    assert second.gates["contamination"].passed
    assert "no protected set was named" in second.gates["contamination"].reason


def test_many_tests_that_must_keep_passing(assess: Assess, shop: Shop) -> None:
    """Where pass_to_pass is long, wrong work is first asked for what it must repair; what passes that is asked all."""
    many = b"\nimport pytest\n\n\n@pytest.mark.parametrize('n', range(25))\ndef test_kept(n):\n"
    many += b"    assert largest([n, 0]) == n\n"
    kept = tuple(f"test_shop.py::test_kept[{n}]" for n in range(25))

    def with_many(tests: bytes) -> Task:
        task = shop(tests + many)
        return replace(task, verification=replace(task.verification, pass_to_pass=kept))

    settings = Settings(repeat=2, attacks=2, mutants=4)
    (found,) = assess(with_many(TESTS), gates=["mutants", "attacks"], settings=settings)
    assert found.gates["mutants"].passed, found.gates["mutants"].reason
    assert found.gates["attacks"].passed, found.gates["attacks"].reason
    weak = TESTS.replace(b"== 7", b"!= -7").replace(b"== 3", b"!= -3")
    (found,) = assess(with_many(weak), gates=["mutants"], settings=settings)
    assert not found.gates["mutants"].passed
    assert found.gates["mutants"].evidence["survivors"]


def test_nothing_dear_is_asked_of_a_task_that_is_rejected(assess: Assess, shop: Shop) -> None:
    """After a gate that rejects, the others are recorded as not asked, with the gate that did it."""
    weak = TESTS.replace(b"== 7", b"!= -7").replace(b"== 3", b"!= -3")
    (found,) = assess(shop(weak))
    assert found.decision == "rejected"
    assert found.reason.startswith("mutants: ")
    for name in ("attacks", "determinism", "equivalents", "limits"):
        assert not found.gates[name].assessed
        assert found.gates[name].evidence == {"needs": "mutants"}
    assert "needs" not in found.gates["duplicates"].evidence  # it looks at others too


def test_the_last_of_the_golds_judgements_is_that_of_its_limits(assess: Assess, shop: Shop) -> None:
    """Where the gold passes with less of each limit, that is not judged again."""
    (found,) = assess(shop(), gates=["gold", "limits"], settings=Settings(repeat=2))
    assert found.gates["gold"].evidence["passed"] == 2
    assert found.gates["limits"].passed
    assert found.gates["limits"].seconds == 0.0  # which counts work in boxes: there was none
