"""Makes the built-in tasks by seed, and splits them by combination.

Owns: cases, wording, frozen tests, the split.
Invariant: same spec, same tasks; no combination of template, bug and names occurs in two splits, nor does any
renaming offered for training occur in a held-out one; every task's bug changes visible and frozen cases.
Must not know: disks, boxes, policies.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from practicum.errors import ConfigError
from practicum.records.task import MIB, Limits, PlainCheck, Task, Verification
from practicum.records.tree import File
from practicum.tasks.quickstart.projects import Project, bugs_of, draw
from practicum.tasks.quickstart.templates import TEMPLATES

_LIMITS = Limits(
    memory_bytes=256 * MIB, pids=32, disk_bytes=16 * MIB, output_bytes=16 * 1024, command_s=5.0, episode_s=60.0
)
_RENAMINGS = 12

_CHECK = """from {module} import {f}

CASES = [
{cases}]

for args, want in CASES:
    try:
        got = {f}(*args)
    except Exception as error:
        got = type(error).__name__
    if got != want:
        print(f"FAIL {f}: gave {{got!r}}, want {{want!r}}")
        raise SystemExit(1)
print("ok")
"""


@dataclass(frozen=True, slots=True)
class FamilySpec:
    """How many tasks of each split, from which seed. `pytest_share` of them are judged by pytest, the rest by
    plain-data comparison. `shown`: the instruction shows the file, and one action is to repair it."""

    seed: int = 0
    train: int = 240
    validation: int = 40
    test: int = 100
    pytest_share: float = 0.1
    shown: bool = False


@dataclass(frozen=True, slots=True)
class _Case:
    args: list[Any]
    expected: Any
    fails: bool


def generate_family(spec: FamilySpec) -> list[Task]:
    """All tasks of `spec`, ids `<split>-<number>`.

    Training tasks offer `provenance["renamings"]`: maps from words of the task to words under which it would be
    another training task. Raises `ConfigError` when more tasks are asked for than there are combinations.
    """
    rng = random.Random(f"quickstart-{spec.seed}")
    stream = _projects(rng)
    tasks: list[Task] = []
    held_out: set[str] = set()
    # Held-out splits are drawn first, so that more training tasks never change what they are measured on.
    for split, count in (("test", spec.test), ("validation", spec.validation), ("train", spec.train)):
        for number in range(count):
            made = next(stream, None)
            if made is None:
                raise ConfigError(
                    f"the quickstart family has no {count} tasks left for split {split!r}", fix="ask for fewer"
                )
            project, cases = made
            runner = "pytest" if rng.random() < spec.pytest_share else "plain"
            task = replace(_task(project, cases, runner, shown=spec.shown), id=f"{split}-{number:04d}", split=split)
            if split == "train":
                others = [project.renamed(rng) for _ in range(_RENAMINGS)]
                allowed = [project.renaming(other) for other in others if other.combination not in held_out]
                task = replace(task, provenance=task.provenance | {"renamings": allowed})
            else:
                held_out.add(project.combination)
            tasks.append(task)
    return tasks


def _projects(rng: random.Random) -> Iterator[tuple[Project, list[_Case]]]:
    """Each combination once; templates and bugs take turns so that none is rare. Ends when new ones are rare."""
    kinds = [(template, bug) for template in TEMPLATES for bug in bugs_of(template)]
    seen: set[str] = set()
    misses = 0
    while misses < 20 * len(kinds):
        rng.shuffle(kinds)
        for template, bug in kinds:
            project = draw(template, bug, rng)
            cases = [] if project.combination in seen else _cases(project, rng)
            misses = 0 if cases else misses + 1
            if cases:
                seen.add(project.combination)
                yield project, cases


def _cases(project: Project, rng: random.Random) -> list[_Case]:
    """Distinct cases, up to eight that fail with the bug and four that hold; none where the bug hardly shows."""
    right = _load(project.source(broken=False), project.function)
    wrong = _load(project.source(broken=True), project.function)
    seen: set[str] = set()
    failing: list[_Case] = []
    holding: list[_Case] = []
    for _ in range(120):
        if len(failing) == 8 and len(holding) == 4:
            break
        args = [_value(kind, rng) for kind in project.template.inputs]
        if (key := json.dumps(args)) in seen:
            continue
        seen.add(key)
        expected, got = _outcome(right, args), _outcome(wrong, args)
        fails = type(got) is not type(expected) or got != expected
        bucket, most = (failing, 8) if fails else (holding, 4)
        if len(bucket) < most:
            bucket.append(_Case(args, expected, fails))
    return failing + holding if len(failing) >= 3 else []


def _load(source: str, function: str) -> Callable[..., Any]:
    """A template's function, as code: trusted, written here, never a policy's."""
    space: dict[str, Any] = {}
    exec(compile(source, "<template>", "exec"), space)
    loaded: Callable[..., Any] = space[function]
    return loaded


def _outcome(function: Callable[..., Any], args: list[Any]) -> Any:
    try:
        return function(*json.loads(json.dumps(args)))
    except Exception as error:  # noqa: BLE001  a bug may raise anything, and that is its outcome
        return f"{type(error).__name__}: raised"


def _value(kind: str, rng: random.Random) -> Any:
    if kind == "ints":
        return [rng.randint(-4, 9) for _ in range(rng.randint(2, 5))]
    low, high = {"int": (-6, 9), "small": (0, 6), "low": (-3, 2), "high": (3, 6)}[kind]
    return rng.randint(low, high)


def _task(project: Project, cases: list[_Case], runner: str, *, shown: bool) -> Task:
    function, path = project.function, project.path
    visible = [case for case in cases if case.fails][:1] + [case for case in cases if not case.fails][:2]
    rows = "".join(f"    ({tuple(case.args)!r}, {case.expected!r}),\n" for case in visible)
    check = File(_CHECK.format(module=project.import_name, f=function, cases=rows).encode())
    files = {path: File(project.source(broken=True).encode()), "check.py": check}
    if project.package:
        files[f"{project.package}/__init__.py"] = File(b"")
    tests, how = _frozen(runner, project, [case for case in cases if case not in visible[:1]])
    gold = File(project.source(broken=False).encode())
    asked = f"Fix {function} in {path} so that python3 check.py passes."
    return Task(
        id="",
        instruction=f"Fix {function} in {path}:\n{project.source(broken=True)}" if shown else asked,
        files=files,
        verification=Verification(tests=tests | {"check.py": check}, visible=("check.py",), **how),
        editable=("**/*.py",),
        limits=_LIMITS,
        solution={"gold.py": gold, "solve.sh": File(f"cp /solution/gold.py {path}\n".encode(), 0o755)},
        provenance={
            "generator": "quickstart",
            "template": project.template.name,
            "layout": project.layout,
            "combination": project.combination,
            "edit": project.edit(),
            **({"shown": True} if shown else {}),
        },
    )


def _frozen(runner: str, project: Project, cases: list[_Case]) -> tuple[dict[str, File], dict[str, Any]]:
    """The frozen files, and what `Verification` needs to know about them."""
    how: dict[str, Any] = {"runner": runner, "timeout_s": 5.0}
    if runner == "plain":
        ids = [f"case_{number}" for number in range(len(cases))]
        rows = [{"id": i, "args": case.args, "expected": case.expected} for i, case in zip(ids, cases, strict=True)]
        tests = {"cases.jsonl": File("".join(json.dumps(row) + "\n" for row in rows).encode())}
        how["plain"] = PlainCheck(f"{project.import_name}:{project.function}", "cases.jsonl")
    else:
        text = f"from {project.import_name} import {project.function}\n"
        for number, case in enumerate(cases):
            call = f"{project.function}(*{case.args!r})"
            text += f"\n\ndef test_{number}():\n    assert {call} == {case.expected!r}\n"
        ids = [f"test_frozen.py::test_{number}" for number in range(len(cases))]
        tests = {"test_frozen.py": File(text.encode())}
        how["files"] = ("test_frozen.py",)
    named = list(zip(ids, cases, strict=True))
    how["fail_to_pass"] = tuple(i for i, case in named if case.fails)
    how["pass_to_pass"] = tuple(i for i, case in named if not case.fails)
    return tests, how
