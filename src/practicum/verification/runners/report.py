"""What a runner says about one submission, and how drivers are spoken to.

Owns: `Report`, `run_driver`, `judge_spec`. Invariant: a driver that never said `ready` ran nothing of the
candidate, so its failure is infrastructure; whatever happens afterwards is the candidate's.
Must not know: outcomes, rewards.
"""

from __future__ import annotations

import json
import marshal
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from practicum.errors import VerifierError
from practicum.records.task import MIB, Task
from practicum.records.tree import Tree
from practicum.records.verdict import Finding, TestStatus
from practicum.sandboxes.contract import BoxSpec, CommandResult, Sandbox
from practicum.verification.runners.drivers import JUDGE
from practicum.verification.sentinels.reading import Answers

TESTS = "/tests"
PYTEST_INI = f"{JUDGE}/pytest.ini"
PYTHON = ("python3", "-P", "-s", "-S", "-B")  # nothing from the working directory or a user's site; no bytecode
PYTHON_WITH_SITE = ("python3", "-P", "-s", "-B")  # and the layer's own packages
GRACE_S = 2.0  # how much longer than a driver's own deadline the box waits for the driver
OUTPUT_BYTES = 16 * MIB
_ENV = {
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


@dataclass(frozen=True, slots=True)
class Report:
    """What was seen. Ids that are not in `statuses` were not reported.

    `fresh` is (passed, total) of cases drawn at judging time. `score` is what a task's own script gave.
    `answers` are those of a suite with sentinels.
    `complete` is False where something speaks against the report as a whole. `undecided` names a failure that may
    be the task's or the candidate's.
    """

    statuses: Mapping[str, TestStatus] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    fresh: tuple[int, int] | None = None
    score: float | None = None
    complete: bool = True
    undecided: str | None = None
    answers: Answers | None = None


def judge_spec(task: Task, files: Tree, readonly: Mapping[str, Tree]) -> BoxSpec:
    """A fresh box of the task's own layer and limits; only its output cap is the judge's."""
    limits = replace(task.limits, output_bytes=OUTPUT_BYTES)
    name = f"judge-{uuid.uuid4().hex[:12]}"
    return BoxSpec(name, task.layer, task.workspace, files, readonly, limits, _ENV)


def roots(task: Task, files: Tree) -> list[str]:
    """Where the workspace's modules are importable from: itself, and `src` where it has one."""
    inner = [f"{task.workspace}/src"] if any(path.startswith("src/") for path in files) else []
    return [task.workspace, *inner]


@dataclass(frozen=True, slots=True)
class Told:
    """The lines a driver wrote after `ready`, each parsed; and how its process ended."""

    lines: list[Any]
    result: CommandResult


async def run_driver(
    box: Sandbox,
    name: str,
    job: Mapping[str, Any],
    *,
    timeout_s: float,
    warm: bool,
    python: Sequence[str] = PYTHON,
    arguments: Sequence[str] = (),
) -> Told:
    """Run driver `name` with `job` on its stdin, as a copy of the box's warm process where there is one.

    Raises `VerifierError` when it ended before it was ready: then nothing of the candidate has run.
    """
    data, deadline_s = marshal.dumps(dict(job), 4), timeout_s + GRACE_S
    if warm:
        result = await box.run_warm([name, *arguments], timeout_s=deadline_s, stdin=data)
    else:
        result = await box.run([*python, f"{JUDGE}/{name}.pyc", *arguments], timeout_s=deadline_s, stdin=data)
    ready, _, rest = result.stdout.partition(b"\n")
    if ready != b'"ready"':
        raise VerifierError(
            f"the {name} driver did not start (exit code {result.exit_code}): {text_tail(result.stderr, 500)}"
        )
    lines: list[Any] = []
    for line in rest.split(b"\n"):
        try:
            lines.append(json.loads(line))
        except ValueError:  # cut off where the driver was killed
            continue
    return Told(lines, result)


def text_tail(data: bytes, size: int = 4096) -> str:
    """The last `size` bytes as text that is safe to store."""
    return data[-size:].decode("utf-8", "replace")


def early(driver: str, result: CommandResult) -> str:
    """What to say of a driver that did not come to its end, be it by a fault of its own or by what ran beside it."""
    how = "was not done in time" if result.timed_out else f"ended before it was done (exit code {result.exit_code})"
    said = text_tail(result.stderr, 500).strip()
    return f"the {driver} driver {how}{': ' if said else ''}{said}"


def ended(result: CommandResult) -> dict[str, Any]:
    """How a command ended, as evidence."""
    return {
        "exit_code": result.exit_code,
        "timed_out": result.timed_out,
        "oom_killed": result.oom_killed,
        "wall_s": round(result.wall_s, 4),
        "cpu_s": round(result.cpu_s, 4),
        "stderr": text_tail(result.stderr),
    }
