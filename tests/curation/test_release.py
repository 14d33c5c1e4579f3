"""Releases: what may go into one, that it is named by its content, and that nothing in it changes unnoticed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.cli.template import template_task
from practicum.curation.ledger import Decided, Ledger, ledger_path, record_assessments
from practicum.curation.release import Released, make_release, release_of
from practicum.curation.release_check import diff_releases, read_manifest, verify_release
from practicum.curation.release_manifest import canary_of, folder_names, read_sums, sums_text
from practicum.curation.review import Form, Reviews, reviews_path
from practicum.curation.reviewqueue import draw_queue
from practicum.curation.soundness.noise import write_noise
from practicum.errors import ConfigError, TaskError
from practicum.records.assessment import Assessment, GateResult
from practicum.records.task import Task
from practicum.tasks.harbor import save_task
from practicum.tasks.taskset import load_taskset
from practicum.verification.calibration.bounds import Rate
from practicum.verification.calibration.noise import Evidence, estimate


def task_of(name: str, **changes: Any) -> Task:
    return replace(template_task(name), provenance={"license": "MIT", "source": "by hand"}, **changes)


def check(folder: Path, *, failing: tuple[str, ...] = (), seconds: float = 1.0) -> None:
    """Record what gates would have found on every task of `folder`."""
    found = []
    for task in load_taskset(folder):
        bad = task.id in failing
        gates = {
            "gold": GateResult("gold", True, "passes 3 of 3 times", {"repeat": 3}, seconds=seconds),
            "contamination": GateResult("contamination", True, "like none", {"compared_with": {"he": 164}}),
            "leaks": GateResult("leaks", not bad, "the gold is in /app" if bad else "none", {"looked_at": 7}),
        }
        decision, reason = ("rejected", "leaks: the gold is in /app") if bad else ("admitted", "all 3 gates passed")
        found.append(Assessment(task.id, task.digest, task.content, decision, reason, gates))  # type: ignore[arg-type]
    record_assessments(ledger_path(folder), found)


@pytest.fixture
def taskset(tmp_path: Path) -> Path:
    """Four tasks, the third of which a gate has rejected; one id has a slash in it."""
    folder = tmp_path / "set"
    for name in ("a", "b", "c", "org/d"):
        save_task(task_of(name), folder / name.replace("/", "-"))
    check(folder, failing=("c",))
    return folder


def released(taskset: Path, out: Path, **options: Any) -> Path:
    made = make_release(taskset, out, name="demo", **options)
    assert made.ref is not None, made.problem
    return made.ref.path


def test_a_release_holds_what_was_admitted(taskset: Path, tmp_path: Path) -> None:
    """Admitted tasks are in it, whole and loadable; the others are named with the reason."""
    made = make_release(taskset, tmp_path / "out", name="demo")
    assert made.ref is not None
    assert (made.tasks, made.left_out, made.refused) == (3, {"c": "rejected: leaks: the gold is in /app"}, {})
    path = made.ref.path
    assert path.name == f"demo-{made.ref.digest[:12]}"
    assert hashlib.sha256((path / "release.json").read_bytes()).hexdigest() == made.ref.digest
    source = {task.id: task.content for task in load_taskset(taskset)}
    assert {t.id: t.content for t in load_taskset(path)} == {name: source[name] for name in ("a", "b", "org/d")}
    manifest = read_manifest(path)
    (row,) = (row for row in manifest["tasks"] if row["id"] == "a")
    assert (row["licence"], row["admitted_by"], row["provenance"]["source"]) == ("MIT", "gate:all", "by hand")
    assert row["gates"].keys() == {"gold", "contamination", "leaks"}
    assert row["verifier"].startswith("execution/")
    assert manifest["protected"] == {"compared_with": {"he": 164}}
    assert manifest["ledger"]["entries"] == 4
    assert "MIT: 3 tasks" in (path / "LICENCES.txt").read_text()
    for part in ("instruction.md", "task.toml"):
        assert manifest["canary"] in (path / "tasks" / "a" / part).read_text()
    assert "canary" not in load_taskset(path)[0].instruction
    assert verify_release(path) == []


def test_the_same_input_gives_the_same_digest(taskset: Path, tmp_path: Path) -> None:
    """Neither day, place, a copy of the set nor the time that gates took changes the digest; a decision does."""
    first = released(taskset, tmp_path / "one")
    copy = tmp_path / "copy"
    shutil.copytree(taskset, copy)
    check(copy, failing=("c",), seconds=9.0)
    second = released(copy, tmp_path / "two")
    assert first.name == second.name
    assert released(taskset, tmp_path / "one") == first
    (task,) = (task for task in load_taskset(copy) if task.id == "b")
    Ledger(ledger_path(copy)).record([Decided("run:7", "b", task.content, "quarantined", "hacked")])
    assert released(copy, tmp_path / "two").name != second.name


def flip(path: Path, release: Path) -> None:
    (release / path).chmod(0o644)
    data = bytearray((release / path).read_bytes())
    data[len(data) // 2] ^= 1
    (release / path).write_bytes(data)


Harm = Callable[[Path], None]


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda r: flip(Path("tasks/a/instruction.md"), r), "tasks/a/instruction.md (task a) was altered"),
        (lambda r: flip(Path("tasks/a/task.toml"), r), "tasks/a/task.toml (task a) was altered"),
        (lambda r: flip(Path("evidence.jsonl"), r), "evidence.jsonl was altered"),
        (lambda r: flip(Path("SHA256SUMS"), r), "SHA256SUMS is not what the manifest names"),
        (lambda r: flip(Path("release.json"), r), "release.json"),
        (lambda r: flip(Path("made.json"), r), ""),
        (lambda r: shutil.rmtree(r / "tasks" / "b"), "task b is missing"),
        (lambda r: (r / "tasks" / "b" / "tests" / "test_frozen.py").unlink(), "(task b) is missing"),
        (lambda r: save_task(task_of("z"), r / "tasks" / "z"), "a task was added"),
        (lambda r: (r / "tasks" / "a" / "environment" / "workspace" / "x").write_text(""), "(task a) was added"),
        (lambda r: (r / "tasks" / "a" / "link").symlink_to("/etc/passwd"), "(task a) was added"),
        (lambda r: (r / "tasks" / "a" / "solution" / "solve.sh").chmod(0o444), "task a is no longer what was released"),
        (lambda r: (r / ".practicum" / "ledger.jsonl").write_text(""), "cut short"),
        (lambda r: (r / ".practicum" / "ledger.jsonl").unlink(), "the ledger: it is missing"),
        (lambda r: r.rename(r.with_name("demo-0123456789ab")), "not the"),
    ],
)
def test_whatever_differs_is_named(taskset: Path, tmp_path: Path, harm: Harm, says: str) -> None:
    """A flipped byte, a removed or an added task or file, another mode, another name: each is told."""
    path = released(taskset, tmp_path / "out")
    harm(path)
    (path,) = (tmp_path / "out").iterdir()
    try:
        found = [each.said for each in verify_release(path)]
    except TaskError as error:
        found = [error.message]
    assert any(says in each for each in found), found
    assert found


def test_what_comes_later_is_no_difference(taskset: Path, tmp_path: Path) -> None:
    """Decisions made after the release are added to its ledger, and the release is still what it was."""
    path = released(taskset, tmp_path / "out")
    task = load_taskset(path)[0]
    ledger = Ledger(ledger_path(path))
    assert {s.stage for s in ledger.stages().values()} == {"admitted", "rejected"}
    ledger.record([Decided("run:7", task.id, task.content, "quarantined", "hacked")])
    (path / "tasks" / ".practicum").mkdir()
    (path / "tasks" / ".practicum" / "difficulty.jsonl").touch()
    assert verify_release(path) == []


def test_a_release_is_released_again(taskset: Path, tmp_path: Path) -> None:
    """What was decided on a release's tasks since makes its next release, on the evidence of the first and named so."""
    first = released(taskset, tmp_path / "out")
    (task,) = (task for task in load_taskset(first) if task.id == "a")
    Ledger(ledger_path(first)).record([Decided("run:7", "a", task.content, "quarantined", "hacked")])
    dead = tmp_path / "out" / ".release.999999999.x"
    dead.mkdir()
    made = make_release(first, tmp_path / "out")
    assert made.ref is not None
    assert made.left_out == {"a": "quarantined: hacked"}
    assert verify_release(made.ref.path) == []
    assert read_manifest(made.ref.path)["parent"]["digest"][:12] == first.name[-12:]
    assert [each["task"] for each in diff_releases(first, made.ref.path)["removed"]] == ["a"]
    assert not dead.exists()


def test_which_release_a_folder_is(taskset: Path, tmp_path: Path) -> None:
    """A release is known by any of its folders, other folders are none, and an altered one is refused."""
    path = released(taskset, tmp_path / "out")
    ref = release_of(path)
    assert ref is not None
    assert (ref.name, ref.digest[:12], ref.path) == ("demo", path.name[-12:], path)
    assert release_of(path / "tasks") == release_of(path / "tasks" / "a") == ref
    assert release_of(taskset) is None
    assert release_of(tmp_path / "nowhere") is None
    (taskset / "release.json").write_text("{}")
    assert release_of(taskset) is None
    flip(Path("tasks/a/instruction.md"), path)
    with pytest.raises(TaskError, match="no longer the release"):
        release_of(path)


def test_only_evidence_of_this_content_counts(taskset: Path, tmp_path: Path) -> None:
    """A task changed since it was checked is left out; one whose evidence was altered is refused."""
    text = taskset / "a" / "instruction.md"
    text.write_text(text.read_text() + "Be quick.\n")
    kept = ledger_path(taskset).with_name("assessments.jsonl")
    lines = kept.read_text().splitlines(keepends=True)
    kept.write_text(
        "".join(line.replace('"repeat": 3', '"repeat": 9') if '"task": "b"' in line else line for line in lines)
    )
    made = make_release(taskset, tmp_path / "out", name="demo")
    assert made.left_out["a"] == "nothing is decided on it as it is now"
    assert "not what the ledger holds" in made.refused["b"]
    assert made.tasks == 1


def test_licences(taskset: Path, tmp_path: Path) -> None:
    """A task without a stated licence is refused unless asked for, and is then listed as such."""
    save_task(replace(task_of("e"), provenance={}), taskset / "e")
    check(taskset, failing=("c",))
    made = make_release(taskset, tmp_path / "out", name="demo")
    assert "licence" in made.refused["e"]
    path = released(taskset, tmp_path / "out", allow_unlicensed=True)
    assert "not stated: 1 tasks" in (path / "LICENCES.txt").read_text()
    (taskset / "LICENSE-set").write_text("Permission is granted.\n")
    path = released(taskset, tmp_path / "out")
    assert (path / "licences" / "LICENSE-set").read_text() == "Permission is granted.\n"
    assert verify_release(path) == []


def test_a_person_may_admit(taskset: Path, tmp_path: Path) -> None:
    """What a person admitted against a gate is released with that gate's finding and the person's name."""
    (task,) = (task for task in load_taskset(taskset) if task.id == "c")
    Ledger(ledger_path(taskset)).record([Decided("reviewer:kim", "c", task.content, "admitted", "the gate erred")])
    path = released(taskset, tmp_path / "out")
    (row,) = (row for row in read_manifest(path)["tasks"] if row["id"] == "c")
    assert row["admitted_by"] == "reviewer:kim"
    assert '"passed": false' in (path / "evidence.jsonl").read_text()


def review(taskset: Path, decision: str = "accept") -> None:
    tasks = [task for task in load_taskset(taskset) if task.id != "c"]
    everything = load_taskset(taskset)
    contents = [task.content for task in everything]
    released = {task.content for task in tasks}
    reviews = Reviews(reviews_path(taskset))
    queue = reviews.open_queue(
        draw_queue(everything, contents, releasable=released.__contains__, flagged={}, sample=9, seed=0, strata=())
    )
    form = Form("accept", "", True, True, True, True, 1)
    for item in queue.items:
        bad = decision == "defect" and item.task == "a"
        this = replace(form, decision="defect", clear=False, reason="vague") if bad else form
        reviews.add(task=item.task, content=item.content, by="kim", form=this, queue=queue.id)


def problem_of(made: Released) -> str:
    assert made.ref is None
    return made.problem or ""


def test_a_release_may_ask_for_reviews(taskset: Path, tmp_path: Path) -> None:
    """Nothing is released without reviews of this very state, or above the bound; what is says what they came to."""
    out = tmp_path / "out"
    assert "nobody has reviewed" in problem_of(make_release(taskset, out, name="demo", review_bound=0.05))
    review(taskset)
    path = released(taskset, out, review_bound=0.05)
    assert read_manifest(path)["reviews"]["estimate"]["high"] == 0
    save_task(task_of("e"), taskset / "e")
    check(taskset, failing=("c",))
    assert "another state" in problem_of(make_release(taskset, out, name="demo", review_bound=0.05))


def test_a_batch_with_too_many_defects_goes_back(taskset: Path, tmp_path: Path) -> None:
    """One bad task of three is above the bound; without a bound the others are released, and it is in quarantine."""
    review(taskset, "defect")
    made = make_release(taskset, tmp_path / "out", name="demo", review_bound=0.05)
    assert "goes back whole" in problem_of(made)
    assert made.left_out["a"] == "quarantined: vague"
    assert {task.id for task in load_taskset(released(taskset, tmp_path / "out"))} == {"b", "org/d"}


def test_error_rates_and_parent_are_named(taskset: Path, tmp_path: Path) -> None:
    """Measured error rates of the released tasks and the release before are in the manifest."""
    first = released(taskset, tmp_path / "out")
    tasks = load_taskset(taskset)
    evidence = Evidence(wrong=Rate(0, 40), right=Rate(0, 40), wrong_distinct=Rate(0, 10), right_distinct=Rate(0, 10))
    write_noise(taskset / "noise.json", [estimate(task.id, task.digest, evidence) for task in tasks])
    second = read_manifest(released(taskset, tmp_path / "out", parent=release_of(first)))
    assert second["noise"]["tasks"].keys() == {"a", "b", "org/d"}
    assert second["noise"]["tasks"]["a"]["false_positive"][0] == 0
    assert second["parent"]["digest"][:12] == first.name[-12:]


def test_two_releases_are_compared(taskset: Path, tmp_path: Path) -> None:
    """Tasks added, removed, regraded and changed are told apart, each with the reason that the ledger gives."""
    first = released(taskset, tmp_path / "out")
    (gone,) = (task for task in load_taskset(taskset) if task.id == "org/d")
    Ledger(ledger_path(taskset)).record(
        [Decided("run:7", "org/d", gone.content, "quarantined", "the gold stopped passing")]
    )
    for name, changes in (("a", {"instruction": "Mend it."}), ("b", {"difficulty": "hard"}), ("e", {})):
        shutil.rmtree(taskset / name, ignore_errors=True)
        save_task(task_of(name, **changes), taskset / name)
    check(taskset, failing=("c",))
    found = diff_releases(first, released(taskset, tmp_path / "out"))
    assert found == {
        "added": [{"task": "e", "reason": "admitted by gate:all: all 3 gates passed"}],
        "removed": [{"task": "org/d", "reason": "quarantined by run:7: the gold stopped passing"}],
        "regraded": [{"task": "a", "what": ["work or judging"], "reason": "admitted by gate:all: all 3 gates passed"}],
        "changed": [{"task": "b", "what": ["difficulty"], "reason": "admitted by gate:all: all 3 gates passed"}],
    }


def test_what_is_no_task_keeps_no_other_from_being_released(taskset: Path, tmp_path: Path) -> None:
    """A directory that cannot be read, and a second one with the same id, are refused by folder."""
    (taskset / "broken").mkdir()
    (taskset / "broken/task.toml").write_text("x=[")
    save_task(task_of("a"), taskset / "twin")
    made = make_release(taskset, tmp_path / "out", name="demo")
    assert made.ref is not None
    assert made.tasks == 3
    assert {Path(folder).name for folder in made.refused} == {"broken", "twin"}
    assert "already taken" in made.refused[str(taskset / "twin")]


def test_what_cannot_be_released(taskset: Path, tmp_path: Path) -> None:
    """A name or place that cannot be used, a set with nothing admitted, and a folder that was altered are refused."""
    for name in (".x", "../x", "a b"):
        with pytest.raises(ConfigError, match="cannot name"):
            make_release(taskset, tmp_path / "out", name=name)
    with pytest.raises(ConfigError, match="in the task set"):
        make_release(taskset, taskset / "out", name="demo")
    path = released(taskset, tmp_path / "out")
    flip(Path("tasks/a/instruction.md"), path)
    with pytest.raises(TaskError, match="there already, and was altered"):
        make_release(taskset, tmp_path / "out", name="demo")
    assert [each.name for each in (tmp_path / "out").iterdir()] == [path.name]
    shutil.rmtree(taskset / ".practicum")
    assert "no task" in problem_of(make_release(taskset, tmp_path / "out", name="demo"))
    with pytest.raises(TaskError, match="no release"):
        verify_release(taskset)


NAMES = st.from_regex(r"[a-z0-9_][a-z0-9_.]{0,3}(/[a-z0-9_]{1,3})?", fullmatch=True)


@given(st.lists(NAMES, unique=True, max_size=12))
def test_folders_never_collide(ids: list[str]) -> None:
    """Each id has a folder of its own, whatever underscores and slashes it holds."""
    names = folder_names(sorted(ids))
    assert len(set(names)) == len(ids)
    assert not any("/" in name for name in names)
    assert canary_of("x", []) == canary_of("x", [])


@given(st.dictionaries(st.text("ab /._", min_size=1, max_size=8), st.sampled_from(["0" * 64, "1f" * 32])))
def test_sums_read_back(sums: dict[str, str]) -> None:
    """What is listed is read back; a name that would break the list is refused."""
    assert read_sums(sums_text(sums)) == sums
    with pytest.raises(TaskError):
        sums_text({"a\nb": "0" * 64})


def test_the_manifest_is_plain_json(taskset: Path, tmp_path: Path) -> None:
    """Anyone can read the manifest, and it holds no date of its own."""
    path = released(taskset, tmp_path / "out")
    text = (path / "release.json").read_text()
    assert json.loads(text)["schema"] == "release/1"
    year = json.loads((path / "made.json").read_text())["time"][:4]
    assert f'"{year}-' not in text
