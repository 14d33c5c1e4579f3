"""Harbor task directories are read strictly, written whole, and survive the way there and back."""

from __future__ import annotations

import os
import string
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from practicum.errors import TaskError
from practicum.records.task import Limits, PlainCheck, RewardRule, Runner, Task, Verification
from practicum.records.tree import File
from practicum.tasks.harbor import load_task, save_task
from practicum.tasks.manifest import LEAST_MEMORY

TOML = """
schema_version = "1.4"
[task]
name = "practicum/adder"
[metadata]
difficulty = "easy"
author = "someone"
[some_other_tool]
anything = 1
[environment]
cpus = 2
memory_mb = 128
[practicum]
editable = ["*.py"]
build = "python3 -m compileall -q ."
split = "validation"
[practicum.tests]
runner = "pytest"
files = ["test_frozen.py"]
visible = ["test_visible.py"]
fail_to_pass = ["test_frozen.py::test_add"]
timeout_s = 7
"""


def lay(folder: Path, toml: str = TOML, **files: str) -> Path:
    """A task directory; `files` replace or add (with `/` written as `__`)."""
    content = {
        "task.toml": toml,
        "instruction.md": "Repair add.\n",
        "environment/workspace/calc.py": "def add(a, b):\n    return a - b\n",
        "tests/test_frozen.py": "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n",
        "tests/test_visible.py": "from calc import add\n",
        "solution/solve.sh": "#!/bin/sh\nsed -i 's/-/+/' calc.py\n",
        **{name.replace("__", "/"): text for name, text in files.items()},
    }
    for name, text in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    return str(caught.value)


def test_a_directory_becomes_a_task(tmp_path: Path) -> None:
    """Every key that is honoured arrives, visible tests are in the workspace, other tables are left alone."""
    task = load_task(lay(tmp_path / "t"))
    assert (task.id, task.split, task.difficulty, task.provenance) == (
        "adder",
        "validation",
        "easy",
        {"author": "someone"},
    )
    assert set(task.files) == {"calc.py", "test_visible.py"}
    assert set(task.verification.tests) == {"test_frozen.py", "test_visible.py"}
    assert task.verification.fail_to_pass == ("test_frozen.py::test_add",)
    assert task.verification.timeout_s == 7.0
    assert (task.limits.cpus, task.limits.memory_bytes) == (2.0, 128 * 1024 * 1024)
    assert task.solution["solve.sh"].data.startswith(b"#!/bin/sh")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("editable =", "editabel =", ["editabel", "[practicum]", "task.toml", "did you mean `editable`"]),
        ("timeout_s =", "time_limit =", ["time_limit", "[practicum.tests]", "known keys"]),
        ('runner = "pytest"', 'runner = "pytset"', ["pytset", "pytest, unittest"]),
        ('runner = "pytest"', "runner = 3", ["runner", "must be a string"]),
        ('files = ["test_frozen.py"]', 'files = "test_frozen.py"', ["files", "list of strings"]),
        ('files = ["test_frozen.py"]', 'files = ["gone.py"]', ["tests/gone.py is missing"]),
        ('visible = ["test_visible.py"]', 'visible = ["gone.py"]', ["tests/gone.py is missing"]),
        ('fail_to_pass = ["test_frozen.py::test_add"]', "fail_to_pass = []", ["fail_to_pass", "doing nothing"]),
        ("timeout_s = 7", "timeout_s = -1", ["timeout_s", "positive"]),
        ("cpus = 2", 'cpus = 2\nnetwork_mode = "public"', ["network_mode", "'public'", "no-network"]),
        ("cpus = 2", "cpus = 2\nallow_internet = true", ["allow_internet", "no network"]),
        ("cpus = 2", "cpus = 2\ngpus = 1", ["gpus", "[environment]"]),
        ("cpus = 2", 'cpus = 2\nos = "windows"', ["os", "linux"]),
        ("cpus = 2", 'cpus = 2\ndocker_image = "ubuntu 24.04"', ["ubuntu 24.04", "no name of an image"]),
        ("cpus = 2", "cpus = 0", ["cpus", "positive"]),
        ('schema_version = "1.4"', "schema_version = ", ["not valid TOML"]),
        ('name = "practicum/adder"', 'name = "../adder"', ["../adder", "cannot be used"]),
        ('split = "validation"', 'workspace = "/app/../etc"', ["workspace"]),
        ("[practicum.tests]", "[practicum.plain]\nentry='a:b'\ncases='c'\n[practicum.tests]", ["practicum.plain"]),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    """An unknown, mistyped or unsupported key names itself, its table, the file and the way out."""
    assert old in TOML
    text = refusal(lay(tmp_path / "t", TOML.replace(old, new)))
    assert all(word in text for word in words), text


@pytest.mark.parametrize("part", ["task.toml", "instruction.md", "tests"])
def test_a_missing_part_is_named(tmp_path: Path, part: str) -> None:
    """A directory without one of its parts is refused with the part's name."""
    folder = lay(tmp_path / "t")
    (folder / part).rename(tmp_path / "elsewhere")
    assert part in refusal(folder)


def test_harbor_tasks_need_their_script(tmp_path: Path) -> None:
    """Without [practicum] the task is judged by tests/test.sh, with Harbor's own time limit."""
    plain = '[task]\nname = "org/task"\n[verifier]\ntimeout_sec = 90\n'
    task = load_task(lay(tmp_path / "a", plain, tests__test_sh="", **{"tests/test.sh": "exit 0\n"}))
    assert (task.id, task.verification.runner, task.verification.timeout_s) == ("org/task", "harbor", 90.0)
    assert "test.sh is missing" in refusal(lay(tmp_path / "b", plain))


def test_canary_lines_are_dropped(tmp_path: Path) -> None:
    """Lines that hold a canary comment do not reach the agent; other lines are untouched."""
    text = "<!-- benchmark canary GUID 1 -->\nRepair  add.\n# CANARY string\n\n# Heading\n"
    task = load_task(lay(tmp_path / "t", **{"instruction.md": text}))
    assert task.instruction == "Repair  add.\n\n# Heading\n"


@pytest.mark.parametrize(
    "place", ["tests/link", "environment/workspace/link", "solution/link", "environment/workspace"]
)
def test_links_are_refused(tmp_path: Path, place: str) -> None:
    """A symbolic link anywhere in a task directory is refused by name."""
    folder = lay(tmp_path / "t")
    if (folder / place).is_dir():
        (folder / place).rename(tmp_path / "moved")
        (folder / place).symlink_to(tmp_path / "moved")
    else:
        (folder / place).symlink_to("/etc/passwd")
    text = refusal(folder)
    assert place in text
    assert "symbolic link" in text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('split = "validation"', 'split = "validation set"', "the split 'validation set' cannot be used"),
        ("memory_mb = 128", "memory_mb = 8", "too few for anything to run in"),
        ("[practicum]", '[practicum]\nworkspace = "/tests/work"', "/tests for frozen tests"),
        ("[practicum]", '[practicum]\nworkspace = "/opt"', "/opt/practicum"),
        ("[practicum]", '[practicum]\nworkspace = "/usr"', "/usr of the system"),
        ("[practicum]", '[practicum]\nworkspace = "/usr/lib/x"', "/usr of the system"),
        ("[practicum]", '[practicum]\nworkspace = "/etc/app"', "/etc of the system"),
        ("[practicum]", '[practicum]\nlayer = "../../etc"', "'../../etc' is no name of an image"),
        ("[practicum]", '[practicum]\nlayer = "a/../../etc"', "'a/../../etc' is no name of an image"),
        ("[practicum]", '[practicum]\nlayer = "/etc"', "'/etc' is no name of an image"),
        ("[practicum]", '[practicum]\nlayers = "python"', "did you mean `layer`"),
        ("[practicum.tests]", "[practicum.test]", "`test`"),
    ],
)
def test_what_is_mistyped_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    """A value that nobody can have meant, and a key that is not known, are named."""
    assert old in TOML
    assert words in refusal(lay(tmp_path / "t", TOML.replace(old, new, 1)))


@pytest.mark.parametrize(
    "line", ['workspace = "/usr/src/app"', 'layer = "reg.example:5000/org/tool:1.2_3@sha256:ab"', 'layer = "_x"']
)
def test_images_and_their_workspaces_have_such_names(tmp_path: Path, line: str) -> None:
    """What images are called, and where they commonly have their work, is taken; a name has to begin like one."""
    folder = lay(tmp_path / "t", TOML.replace("[practicum]", f"[practicum]\n{line}", 1))
    if "_x" in line:
        assert "'_x' is no name" in refusal(folder)
    else:
        assert load_task(folder)


def test_an_empty_instruction_is_refused(tmp_path: Path) -> None:
    """Nobody could know what to do, also where a canary is all that there is."""
    for number, text in enumerate(("", " \n\t", "# canary GUID 1\n")):
        assert "instruction is empty" in refusal(lay(tmp_path / str(number), **{"instruction.md": text}))


def test_pipes_are_refused_without_hanging(tmp_path: Path) -> None:
    """A named pipe among the tests is refused, not opened."""
    folder = lay(tmp_path / "t")
    os.mkfifo(folder / "tests" / "pipe")
    assert "special file" in refusal(folder)


@pytest.mark.parametrize(
    ("dockerfile", "word"),
    [
        ("FROM --platform=linux/arm64 python\n", "--platform"),
        ("FROM python:3.12\nADD x.tar /x\n", "line 2: the instruction `ADD x.tar /x`"),
        ("FROM python:3.12\nCOPY secrets /app\n", "COPY secrets"),
        ("FROM python:3.12\nWORKDIR $HOME\n", "WORKDIR $HOME"),
        ("WORKDIR /app\n", "no FROM"),
        ("FROM python:3.12\nWORKDIR /a\nCOPY workspace/ /b\n", "WORKDIR ends as /a"),
    ],
)
def test_other_dockerfiles_are_refused(tmp_path: Path, dockerfile: str, word: str) -> None:
    """An instruction outside the honoured subset is refused with its line."""
    assert word in refusal(lay(tmp_path / "t", **{"environment/Dockerfile": dockerfile}))


def test_a_simple_dockerfile_is_honoured(tmp_path: Path) -> None:
    """A python image with WORKDIR and the workspace copied gives layer and workspace."""
    text = "# comment\nFROM python:3.12-slim\nWORKDIR /work/here\nCOPY workspace/ .\n"
    task = load_task(lay(tmp_path / "t", **{"environment/Dockerfile": text}))
    assert (task.layer, task.workspace) == ("python", "/work/here")


def test_unused_environment_files_are_refused(tmp_path: Path) -> None:
    """A compose file would change the environment, so it is not passed over."""
    assert "docker-compose.yaml" in refusal(lay(tmp_path / "t", **{"environment/docker-compose.yaml": ""}))


def test_saving_keeps_what_is_there(tmp_path: Path) -> None:
    """The same task may be written again; any other content of the place is refused and left alone."""
    task = load_task(lay(tmp_path / "t"))
    save_task(task, tmp_path / "out")
    save_task(replace(task, split="test"), tmp_path / "out")
    assert load_task(tmp_path / "out").split == "test"
    with pytest.raises(TaskError, match="not empty"):
        save_task(replace(task, instruction="Other.\n"), tmp_path / "out")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep")
    with pytest.raises(TaskError, match="not empty"):
        save_task(task, tmp_path / "notes")
    assert (tmp_path / "notes" / "mine.txt").read_text() == "keep"
    assert load_task(tmp_path / "out").instruction == "Repair add.\n"


@pytest.mark.parametrize(
    "change",
    [
        {"instruction": "a\n# canary\n"},
        {"files": {"../x": File(b"")}},
        {"files": {"a": File(b"", 0o600)}},
        {"provenance": {"x": object()}},
        {"id": "a b"},
        {"split": "train "},
        {"split": ""},
        {"instruction": " \n"},
        {"workspace": "/tests"},
        {"workspace": "/solution/inner"},
        {"workspace": "/opt"},
        {"limits": Limits(memory_bytes=LEAST_MEMORY - 1)},
    ],
)
def test_nothing_is_left_of_a_failed_save(tmp_path: Path, change: dict[str, object]) -> None:
    """A task that the form cannot hold is refused, and neither the place nor a temporary folder remains."""
    task = replace(load_task(lay(tmp_path / "t")), **change)  # type: ignore[arg-type]
    with pytest.raises(TaskError):
        save_task(task, tmp_path / "out" / "x")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


NAMES = st.lists(st.text(string.ascii_lowercase + "._é", min_size=1, max_size=5), min_size=1, max_size=3).map("/".join)
PATHS = NAMES.filter(lambda name: not any(part in (".", "..") for part in name.split("/")))
FILES = st.builds(File, st.binary(max_size=20), st.sampled_from([0o644, 0o755]))
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30).filter(
    lambda text: "canary" not in text.lower()
)


def fits(tree: dict[str, File]) -> bool:
    folders = {path[:i] for path in tree for i, c in enumerate(path) if c == "/"}
    return not folders & tree.keys()


TREES = st.dictionaries(PATHS, FILES, max_size=4).filter(fits)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    tests = draw(TREES) | {"frozen_test.py": File(b"x"), "cases.jsonl": File(b"")}
    runner: Runner = draw(st.sampled_from(get_args(Runner)))
    ids = draw(st.lists(TEXTS, min_size=2, max_size=4, unique=True))
    check = Verification(
        runner=runner,
        tests=tests,
        files=("frozen_test.py",),
        fail_to_pass=tuple(ids[:1]),
        pass_to_pass=tuple(ids[1:]),
        build=draw(st.none() | TEXTS),
        plain=PlainCheck("m.n:f", "cases.jsonl") if runner == "plain" else None,
        timeout_s=draw(st.floats(0.1, 1000)),
        unguarded=draw(st.sampled_from([(), ("frozen_test.py::*",)])) if runner in ("pytest", "unittest") else (),
        reward=draw(st.sampled_from([RewardRule(), RewardRule("strict", 0.1, ("turns", "judge"))])),
    )
    if runner == "harbor":
        check = replace(
            check, tests=tests | {"test.sh": File(b"")}, files=(), fail_to_pass=("reward",), pass_to_pass=()
        )
    files = draw(TREES)
    visible = {name for name in draw(st.sets(st.sampled_from(sorted(tests)))) if runner != "harbor"}
    check = replace(check, visible=tuple(sorted(visible)))
    files = files | {name: tests[name] for name in visible}
    limits = Limits(
        cpus=draw(st.sampled_from([1, 1.0, 0.5, 2])),
        memory_bytes=draw(st.integers(LEAST_MEMORY, 2**32)),
        pids=draw(st.integers(1, 1000)),
        disk_bytes=draw(st.integers(1, 2**32)),
        output_bytes=draw(st.integers(1, 2**20)),
        command_s=draw(st.floats(0.1, 100)),
        episode_s=draw(st.sampled_from([1, 60.5])),
    )
    return Task(
        id=draw(st.sampled_from(["a", "a-b_c.d", "org/name"])),
        instruction=draw(TEXTS.filter(str.strip)),
        files=files if fits(files) else {name: tests[name] for name in visible},
        verification=check,
        workspace=draw(st.sampled_from(["/app", "/w/x"])),
        editable=tuple(draw(st.lists(TEXTS, max_size=3))),
        limits=limits,
        solution=draw(TREES),
        split=draw(st.sampled_from(["train", "test", "held_out-2"])),
        difficulty=draw(st.none() | st.just("hard")),
        provenance=draw(st.dictionaries(TEXTS.filter(lambda key: key != "difficulty"), TEXTS | st.integers(0, 9))),
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(tasks())
def test_a_saved_task_is_the_same_task(task: Task) -> None:
    """Saving and loading any task gives back the digest and every field."""
    with tempfile.TemporaryDirectory() as folder:
        save_task(task, Path(folder) / "t")
        again = load_task(Path(folder) / "t")
    assert again.digest == task.digest
    assert again == task
