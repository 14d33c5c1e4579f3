"""What gates work with, without boxes: decisions, the cache, git's objects, overlaps, orders, the clock."""

from __future__ import annotations

import ast
import asyncio
import json
import subprocess
import sys
import time
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.difficulty import Measured, append_measured
from practicum.curation.gates import difficulty
from practicum.curation.gates.attacks import sample
from practicum.curation.gates.cache import FILE, Cache
from practicum.curation.gates.contract import Case, Found, NotAssessed, Settings, Surroundings
from practicum.curation.gates.gitobjects import Unreadable, git_objects
from practicum.curation.gates.ladder import LADDER, chosen, decide, first_failing
from practicum.curation.gates.overlap import secret_of
from practicum.curation.gates.schema import schema_problems
from practicum.curation.gates.starving import starved
from practicum.curation.soundness.order import reordered, without_pass_to_pass
from practicum.curation.soundness.solutions import cut_short
from practicum.errors import ConfigError
from practicum.records.assessment import GateResult
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission, Verdict
from practicum.verification.redteam.catalogue import load_catalogue

if TYPE_CHECKING:
    from curation.gates.conftest import Shop

PASSED = {gate.name: GateResult(gate.name, True, "fine", {"seen": 1}) for gate in LADDER}


def test_decisions() -> None:
    """All passed admits; a task at fault is rejected whatever else is not known; the rest is quarantined, by name."""
    assert decide(PASSED)[0] == "admitted"
    lost = PASSED | {"gold": GateResult("gold", False, "no box", {"fault": True}, assessed=False)}
    assert decide(lost) == ("quarantined", "gold: not assessed: no box")
    assert first_failing(lost, "quarantined") == "gold"
    both = lost | {"leaks": GateResult("leaks", False, "a copy lies there", {"leaks": ["x"]})}
    assert decide(both) == ("rejected", "leaks: a copy lies there")
    assert first_failing(both, "rejected") == "leaks"
    doubtful = PASSED | {"requirements": GateResult("requirements", False, "a name", {"unstated": ["x"]})}
    assert decide(doubtful)[0] == "quarantined"
    unsure = PASSED | {"leaks": GateResult("leaks", False, "perhaps", {"doubtful": True})}
    assert decide(unsure) == ("quarantined", "leaks: perhaps")
    unasked = PASSED | {"leaks": GateResult("leaks", False, "not asked for", {"asked": False}, assessed=False)}
    assert decide(unasked) == ("quarantined", f"not decided: 1 of {len(LADDER)} gates were not asked")
    assert first_failing(unasked, "quarantined") is None


def test_every_need_stands_before_who_needs_it() -> None:
    """The ladder can be climbed from the bottom, and choosing a gate chooses what it needs."""
    order = [gate.name for gate in LADDER]
    assert len(set(order)) == len(order)
    for gate in LADDER:
        assert all(order.index(need) < order.index(gate.name) for need in gate.needs)
        assert all(hasattr(Settings(), name) for name in gate.parameters)
    assert chosen(["mutants"]) == {"schema", "environment", "gold", "noop", "mutants"}
    assert chosen([]) == set(order)
    with pytest.raises(ConfigError, match="no gate 'gilt'"):
        chosen(["gilt"])


class _Judge:
    version = "execution/1+test"


class _Shop:
    """As much of a bench as keys are made of."""

    verifier = _Judge()


class _Bench:
    workshop = _Shop()

    @staticmethod
    def layer_of(layer: object) -> str:
        return f"digest of {layer}"


def case_of(task: Any, **settings: Any) -> Case:
    return Case(task, _Bench(), Settings(**settings), Surroundings([task]))  # type: ignore[arg-type]


def test_the_cache_survives_a_torn_line_and_knows_what_it_is_about(shop: Shop, tmp_path: Path) -> None:
    """A result comes back for the same task, gate and parameters only; a torn end and damaged lines cost no more than
    asking again."""
    gold = next(gate for gate in LADDER if gate.name == "gold")
    result = GateResult("gold", True, "passes", {"passed": 3}, seconds=1.5)
    case = case_of(shop())
    Cache(tmp_path).put(case, gold, result)
    Cache(tmp_path).put(case, gold, GateResult("gold", False, "no box", {}, assessed=False))
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"schema": 1, "key": "torn')
    again = Cache(tmp_path)
    assert again.get(case, gold) == result
    assert again.get(case_of(shop(), repeat=5), gold) is None
    assert again.get(case_of(shop(), mutants=5), gold) == result
    assert again.get(case, replace(gold, version="another")) is None
    assert again.get(case_of(replace(shop(), solution={})), gold) is None
    assert Cache(tmp_path, fresh=True).get(case, gold) is None
    again.put(case_of(shop(), repeat=5), gold, result)
    assert Cache(tmp_path).get(case_of(shop(), repeat=5), gold) == result


def test_git_objects(tmp_path: Path) -> None:
    """Every object of a repository is read, loose and packed, deltas on others included; what is damaged is named."""

    def git(*words: str) -> bytes:
        who = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", "-C", str(tmp_path), *who, *words], capture_output=True, check=True).stdout

    git("init", "-q")
    texts = [b"".join(b"line %d of %d\n" % (n, k) for n in range(200 + k)) for k in range(5)]
    for text in texts:
        (tmp_path / "file").write_bytes(text)
        git("add", "file")
        git("commit", "-q", "-m", "more")

    def objects() -> set[tuple[str, bytes]]:
        files = {
            path.relative_to(tmp_path).as_posix(): File(path.read_bytes())
            for path in (tmp_path / ".git").rglob("*")
            if path.is_file()
        }
        return {each for _, each in git_objects(files)}

    loose = objects()
    assert {data for kind, data in loose if kind == "blob"} == set(texts)
    git("repack", "-q", "-a", "-d", "-f", "--depth=10", "--window=10")
    git("prune-packed", "-q")
    assert objects() == loose
    pack = next((tmp_path / ".git/objects/pack").glob("*.pack")).read_bytes()
    with pytest.raises(Unreadable, match=r"x\.pack"):
        list(git_objects({"x.pack": File(pack[: len(pack) // 2])}))


WORDS = st.lists(st.sampled_from("abcdef+-=()"), max_size=60).map(" ".join)


@given(WORDS, WORDS, WORDS)
def test_secrets(kept: str, given_instead: str, other: str) -> None:
    """What an agent has anyway gives nothing away; a copy of what is kept back does, also amid something else."""
    nothing = secret_of([kept.encode()], [f"{other} {kept}".encode()])
    assert nothing.found_in(kept.encode()) is None
    whole = f"{kept} {' '.join(f'own{n}' for n in range(20))}"
    secret = secret_of([whole.encode()], [given_instead.encode()])
    assert secret.found_in(f"{other}\n{whole}\n{other}".encode()) is not None
    assert secret.found_in(given_instead.encode()) is None


def test_orders(shop: Shop) -> None:
    """Tests change places behind all else of their module; for a suite of unittest there is no other order."""
    tests = b"import shop\n\ndef test_a():\n    assert CASES\n\nCASES = [1]\n\ndef test_b():\n    assert shop\n"
    task = reordered(shop(tests))
    assert task is not None
    tree = ast.parse(task.verification.tests["test_shop.py"].data)
    assert [getattr(node, "name", None) for node in tree.body] == [None, None, "test_b", "test_a"]
    check = shop(tests).verification
    assert reordered(replace(shop(), verification=replace(check, runner="unittest"))) is None
    alone = without_pass_to_pass(shop())
    assert alone is not None
    assert alone.verification.pass_to_pass == ()


def test_parts_of_a_gold(shop: Shop) -> None:
    """A gold cut short lacks one named thing each time, and notes beside code are not taken for work."""
    task = shop()
    start = task.files["shop.py"].data
    data = start.replace(b"-=", b"+=").replace(b"max(items)", b"max(list(items))")
    gold = Submission((Change("shop.py", "edit", File(data)), Change("NOTES.md", "add", File(b"done\n"))))
    names = {name for name, _ in cut_short(task, gold)}
    assert "the untouched task" in names
    assert {name.partition(":")[0] for name in names} == {"the untouched task", "shop.py"}
    assert sum("hunk" in name for name in names) == 2
    digests = [each.digest for _, each in cut_short(task, gold)]
    assert len(set(digests)) == len(digests)
    assert gold.digest not in digests


def test_the_sample_of_attacks() -> None:
    """It is the same for the same task, another for another, spread over kinds, and some are always in it."""
    attacks = load_catalogue().attacks
    first = sample(attacks, 8, "0-digest")
    assert first == sample(list(reversed(attacks)), 8, "0-digest") != sample(attacks, 8, "0-other")
    assert first[0].id == "visible-answers-hard-coded"
    assert len({attack.kind for attack in first[1:]}) == len(first) - 1 == 8
    assert len(sample(attacks, None, "x")) == len(attacks)


def test_schema(shop: Shop) -> None:
    """Placeholders, limits that cannot be and an empty instruction are named; a task about TODO notes is no problem."""
    task = shop()
    assert list(schema_problems(task)) == []
    assert list(schema_problems(replace(task, instruction="TODO: describe the task here")))
    notes = {**task.files, "notes.py": File(b"# TODO\n")}
    assert not list(schema_problems(replace(task, files=notes, instruction="Resolve each TODO in notes.py.")))
    assert list(schema_problems(replace(task, limits=replace(task.limits, command_s=0.0))))
    assert list(schema_problems(replace(task, instruction="fix")))


def test_a_busy_host_is_told_from_work_that_hangs() -> None:
    """Only where the host is busy, and the judged process got little of a processor, is nothing said."""

    def verdict(wall_s: float, cpu_s: float, why: str = "did not end in time") -> Verdict:
        used = {"wall_s": wall_s, "cpu_s": cpu_s}
        return Verdict("valid", "failed", -0.2, evidence={"scripts": {"a": used}, "details": {"a": why}})

    assert starved(verdict(30.0, 4.0), 9.0)
    assert not starved(verdict(30.0, 4.0), 1.0)
    assert not starved(verdict(30.0, 29.0), 9.0)
    assert not starved(verdict(30.0, 4.0, "AssertionError"), 9.0)
    assert not starved(Verdict("valid", "failed", -0.2), 9.0)


@pytest.mark.parametrize(
    ("passed", "judged", "outcome"), [(6, 12, True), (0, 12, False), (12, 12, False), (1, 2, None), (0, 0, None)]
)
def test_difficulty(shop: Shop, tmp_path: Path, passed: int, judged: int, outcome: bool | None) -> None:
    """Tasks that references always or never pass are set aside; one with too few attempts passes provisionally, and
    not at all where measured difficulty is required."""
    task = shop()
    if judged:
        row = Measured(task.digest, task.id, "reference", "1", judged=judged, passed=passed)
        append_measured(tmp_path / "difficulty.jsonl", row)

    def ask(*, strict: bool) -> Found:
        case = case_of(task, require_difficulty=strict)
        case.around.state = tmp_path
        structure = {"changed_files": 1, "changed_lines": 2}
        case.results["gold"] = GateResult("gold", True, "passes", {"structure": structure})

        async def assess() -> Found:
            return await difficulty.GATE.assess(case)

        return asyncio.run(assess())

    found = ask(strict=False)
    assert found.passed == (outcome is not False)
    if outcome is not None:
        assert ask(strict=True) == found
        return
    assert found.reason.startswith("provisional")
    assert found.evidence["provisional_stratum"] == "easy"
    with pytest.raises(NotAssessed, match="too few attempts"):
        ask(strict=True)


def test_the_moved_clock(tmp_path: Path) -> None:
    """The present moves and nothing else does: times that are given, durations and types stay as they are."""
    code = resources.files("practicum.curation.soundness.inside") / "clock.py"
    (tmp_path / "sitecustomize.py").write_bytes(code.read_bytes())
    program = (
        "import json, datetime, time\n"
        "d = datetime.datetime(2020, 2, 3, 4)\n"
        "print(json.dumps([time.time(), datetime.datetime.now().timestamp(), time.mktime(time.localtime()),"
        " datetime.date.today().year, d.isoformat(), repr(d + datetime.timedelta(1)),"
        " isinstance(d, datetime.datetime), isinstance(d, datetime.date), isinstance(datetime.date(2020, 1, 1),"
        " datetime.datetime), issubclass(datetime.datetime, datetime.date), time.gmtime(0).tm_year,"
        " datetime.datetime.utcnow().year]))\n"
    )
    shift = 10 * 366 * 86400
    before = time.time()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={"PYTHONPATH": str(tmp_path), "PRACTICUM_CLOCK_S": str(shift), "TZ": "UTC0"},
        capture_output=True,
        check=True,
    )
    now, stamp, local, year, *rest = json.loads(done.stdout)
    for value in (now, stamp, local):
        assert before + shift - 2 <= value <= time.time() + shift
    assert year == rest.pop() == time.gmtime(before + shift).tm_year
    assert rest == ["2020-02-03T04:00:00", "datetime.datetime(2020, 2, 4, 4, 0)", True, True, False, True, 1970]
