"""The ledger: what may be decided, by whom, and that what was decided stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.assessments import FILE, Assessments, gates_digest
from practicum.curation.ledger import (
    EVIDENCE_BYTES,
    Decided,
    Ledger,
    Standing,
    after,
    ledger_path,
    record,
    record_assessments,
    refusal,
    stages,
)
from practicum.errors import StoreError, TaskError
from practicum.records.assessment import Assessment, Decision, GateResult, Stage
from practicum.records.tree import digest_of

D = digest_of("a task")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".practicum" / "ledger.jsonl"


def say(path: Path, stage: Stage, actor: str = "gate:gold", digest: str = D) -> None:
    record(path, actor=actor, task_id="t", digest=digest, stage=stage, reason=f"made {stage}", evidence={"seen": 1})


def assessed(decision: Decision, seen: int = 0) -> Assessment:
    passed = decision == "admitted"
    gate = GateResult("gold", passed, "as it should" if passed else "it fails", {"seen": seen}, seconds=seen)
    return Assessment("t", digest_of("work"), D, decision, gate.reason, {"gold": gate})


def test_a_decision_is_kept_with_who_when_why_and_evidence(path: Path) -> None:
    """What is recorded is read back whole; large evidence is named by its digest alone."""
    say(path, "admitted")
    entry = stages(path)[D].entry
    assert (entry.actor, entry.task, entry.stage, entry.reason) == ("gate:gold", "t", "admitted", "made admitted")
    assert (entry.evidence, entry.evidence_digest) == ({"seen": 1}, digest_of({"seen": 1}))
    assert entry.time.endswith("+00:00")
    large = {"log": "x" * EVIDENCE_BYTES}
    record(path, actor="run:7", task_id="t", digest=D, stage="quarantined", reason="r", evidence=large)
    entry = stages(path)[D].entry
    assert (entry.evidence, entry.evidence_digest) == (None, digest_of(large))


@pytest.mark.parametrize(
    ("earlier", "stage", "actor", "allowed"),
    [
        ([], "admitted", "gate:all", True),
        ([("admitted", "gate:all")], "candidate", "gate:all", False),
        ([("admitted", "gate:all")], "candidate", "reviewer:kim", False),
        ([("admitted", "gate:all")], "quarantined", "run:7", True),
        ([("quarantined", "gate:all")], "admitted", "gate:all", True),
        ([("quarantined", "run:7")], "admitted", "gate:all", False),
        ([("quarantined", "run:7")], "admitted", "run:7", False),
        ([("quarantined", "run:7")], "admitted", "reviewer:kim", True),
        ([("quarantined", "reviewer:kim")], "admitted", "gate:all", False),
        ([("quarantined", "run:7"), ("quarantined", "gate:all")], "admitted", "gate:all", False),
        ([("rejected", "gate:all")], "admitted", "gate:all", False),
        ([("rejected", "gate:all")], "quarantined", "gate:all", False),
        ([("rejected", "gate:all")], "admitted", "reviewer:kim", True),
        ([("rejected", "gate:all"), ("quarantined", "reviewer:kim")], "admitted", "gate:all", False),
        ([("retired", "run:7")], "admitted", "gate:all", False),
        ([("retired", "run:7")], "rejected", "gate:all", True),
        ([("rejected", "gate:all"), ("admitted", "reviewer:kim")], "quarantined", "gate:all", True),
    ],
)
def test_transitions(path: Path, earlier: list[tuple[Stage, str]], stage: Stage, actor: str, allowed: bool) -> None:
    """What gates set aside for a while gates may bring back; everything else is for a person."""
    for before, who in earlier:
        say(path, before, who)
    if allowed:
        say(path, stage, actor)
        assert stages(path)[D].stage == stage
    else:
        with pytest.raises(TaskError, match="cannot become"):
            say(path, stage, actor)
        assert stages(path)[D].stage == earlier[-1][0]


def test_other_content_starts_anew(path: Path) -> None:
    """A rejection holds for the content that was rejected, and still does when that comes back."""
    say(path, "rejected")
    say(path, "admitted", digest=digest_of("the task, mended"))
    assert {s.stage for s in stages(path).values()} == {"rejected", "admitted"}
    with pytest.raises(TaskError):
        say(path, "admitted")


ACTORS = st.sampled_from(["gate:a", "gate:b", "run:1", "reviewer:kim"])
STAGES: st.SearchStrategy[Stage] = st.sampled_from(["candidate", "admitted", "quarantined", "rejected", "retired"])


@given(st.lists(st.tuples(STAGES, ACTORS), max_size=8))
def test_nobody_but_a_person_undoes_what_was_held(steps: list[tuple[Stage, str]]) -> None:
    """After any history, a task put aside by a rejection, a run or a person was last admitted by a person."""
    from practicum.curation.ledger import Entry

    now: Standing | None = None
    set_aside = False
    for number, (stage, actor) in enumerate(steps):
        if refusal(now, stage, actor):
            continue
        now = after(now, Entry(number, "", actor, "t", D, stage, "r", "", None))
        if actor.startswith("reviewer") and stage == "admitted":
            set_aside = False
        elif stage in ("rejected", "retired") or (stage == "quarantined" and not actor.startswith("gate")):
            set_aside = True
        assert not (set_aside and now.stage in ("admitted", "candidate"))


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        ({"actor": "nobody"}, "kind:name"),
        ({"reason": "  "}, "needs a reason"),
        ({"stage": "good"}, "no stage"),
        ({"digest": "t"}, "no digest"),
    ],
)
def test_a_decision_that_says_too_little(path: Path, harm: dict[str, str], says: str) -> None:
    """Actor, reason, stage and digest are asked for before anything is written."""
    given = {"actor": "gate:x", "task": "t", "digest": D, "stage": "admitted", "reason": "r"} | harm
    with pytest.raises(TaskError, match=says):
        Ledger(path).record([Decided(**given)])  # type: ignore[arg-type]
    assert not path.exists()


def test_a_batch_keeps_its_order_and_tells_what_it_left_out(path: Path) -> None:
    """Decisions of one call see those before them; the allowed ones are written, the others named."""
    other = digest_of("another task")
    refused = Ledger(path).record(
        [
            Decided("gate:a", "t", D, "rejected", "r"),
            Decided("gate:a", "t", D, "admitted", "r"),
            Decided("gate:a", "u", other, "admitted", "r"),
        ]
    )
    assert list(refused) == [D]
    assert {digest: s.stage for digest, s in stages(path).items()} == {D: "rejected", other: "admitted"}


def test_gates_do_not_repeat_themselves(path: Path) -> None:
    """A check that finds the same again writes nothing; only a further failing gate outweighs a person's decision."""
    assert record_assessments(path, [assessed("rejected", 1)]) == {}
    assert record_assessments(path, [assessed("rejected", 1)]) == {}
    assert len(Ledger(path).entries) == 1
    say(path, "admitted", "reviewer:kim")
    assert "admitted by reviewer:kim" in record_assessments(path, [assessed("rejected", 1)])["t"]
    assert stages(path)[D].stage == "admitted"
    assert "admitted by reviewer:kim" in record_assessments(path, [assessed("rejected", 2)])["t"]
    found = assessed("rejected", 3)
    leak = GateResult("leaks", False, "the gold is there", {"seen": 1})
    worse = Assessment("t", found.digest, D, "rejected", "leaks", {**found.gates, "leaks": leak})
    assert record_assessments(path, [worse]) == {}
    assert stages(path)[D].stage == "rejected"
    assert "only a person" in record_assessments(path, [assessed("admitted", 4)])["t"]
    say(path, "admitted", "reviewer:kim")
    assert record_assessments(path, [assessed("admitted", 4)]) == {}
    kept = Assessments(path.with_name(FILE)).get(D)
    assert kept is not None
    assert kept.decision == "admitted"


def test_the_digest_of_gates_leaves_time_out() -> None:
    """Two checks that saw the same have one digest, however long they took."""
    gate = GateResult("gold", True, "fine", {"seen": 1}, seconds=1.0)
    slower = GateResult("gold", True, "fine", {"seen": 1}, seconds=2.0)
    other = GateResult("gold", True, "fine", {"seen": 2}, seconds=1.0)
    made = [gates_digest(Assessment("t", D, D, "admitted", "", {"gold": each})) for each in (gate, slower, other)]
    assert made[0] == made[1] != made[2]


def test_a_fault_of_the_host_takes_nothing_back(path: Path) -> None:
    """Where gates could not be asked, what was decided before stays; a gate that did fail still counts."""
    record_assessments(path, [assessed("admitted")])
    lost = GateResult("noop", False, "no box", {"fault": True}, assessed=False)
    gone = Assessment("t", digest_of("work"), D, "quarantined", "noop: no box", {"noop": lost})
    assert "the host kept" in record_assessments(path, [gone])["t"]
    assert stages(path)[D].stage == "admitted"
    failed = GateResult("leaks", False, "the gold is there", {"seen": 1})
    both = Assessment("t", digest_of("work"), D, "quarantined", "leaks", {"noop": lost, "leaks": failed})
    assert record_assessments(path, [both]) == {}
    assert stages(path)[D].stage == "quarantined"


def test_what_gates_found_is_kept_and_cannot_be_altered(path: Path) -> None:
    """An assessment is read back whole; one that was altered is none, and the ledger names the right one."""
    made = assessed("admitted", 7)
    record_assessments(path, [assessed("admitted", 6)])
    record_assessments(path, [made])
    record_assessments(path, [made])
    kept = Assessments(path.with_name(FILE))
    assert kept.get(D) == made
    assert kept.get(digest_of("nothing")) is None
    assert len(kept.path.read_bytes().splitlines()) == 2
    evidence = stages(path)[D].entry.evidence
    assert evidence is not None
    assert (evidence["gates"], evidence["failed"]) == (gates_digest(made), [])
    assert evidence["verifier"].startswith("execution/")
    kept.path.write_bytes(kept.path.read_bytes().replace(b'"seen": 7', b'"seen": 8'))
    assert Assessments(kept.path).get(D) is None


def test_tampering_is_noticed(path: Path) -> None:
    """An altered ledger is not read, and nothing is added to it."""
    for number in range(3):
        say(path, "admitted", digest=digest_of(number))
    path.write_text(path.read_text().replace("made admitted", "made nothing", 1))
    with pytest.raises(StoreError, match="broken at line 2"):
        stages(path)
    with pytest.raises(StoreError, match="broken at line 2"):
        say(path, "admitted")


def test_an_open_ledger_sees_what_others_write(path: Path) -> None:
    """Rules are applied to what stands on disk when a decision is recorded, not to what was read long ago."""
    mine, theirs = Ledger(path), Ledger(path)
    theirs.record([Decided("run:1", "t", D, "quarantined", "hacked")])
    assert "only a person" in mine.record([Decided("gate:a", "t", D, "admitted", "r")])[D]
    path.unlink()
    with pytest.raises(StoreError, match="cut short"):
        mine.record([Decided("gate:a", "t", D, "admitted", "r")])


def test_a_torn_line_is_cut_off(path: Path) -> None:
    """What a writer that died left half-written is gone before the next entry is appended."""
    say(path, "admitted")
    with open(path, "ab") as file:
        file.write(b'{"seq": 1, "ti')
    assert stages(path)[D].stage == "admitted"
    say(path, "quarantined")
    assert stages(path)[D].stage == "quarantined"


WRITER = """
import sys
from pathlib import Path
from practicum.curation.ledger import Decided, Ledger
from practicum.records.tree import digest_of
ledger = Ledger(Path(sys.argv[1]))
for number in range(50):
    ledger.record([Decided("run:1", "t", digest_of([sys.argv[2], number]), "admitted", "r")])
"""


def test_processes_write_in_turn(path: Path) -> None:
    """Three processes that write at once lose no entry and break no chain."""
    path.parent.mkdir()
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, name]) for name in "abc"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    assert [entry.seq for entry in Ledger(path).entries] == list(range(150))


def test_the_ledger_of_a_single_task_is_that_of_its_folder(tmp_path: Path) -> None:
    """A task directory never holds state of its own."""
    task = tmp_path / "set" / "t"
    task.mkdir(parents=True)
    (task / "task.toml").touch()
    assert ledger_path(task) == ledger_path(tmp_path / "set") == tmp_path / "set" / ".practicum" / "ledger.jsonl"
