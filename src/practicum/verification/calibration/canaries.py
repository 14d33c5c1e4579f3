"""Canaries: submissions whose verdict is known beforehand.

Owns: `Canary`, `KNOWN`, `deviation`.
Invariant: the set holds each kind of verdict (passed, failed, tampered, build failed, invalid); a judge that gives
another answer to one of them is not the judge that the run began with. Pure.
Must not know: boxes, runs, when canaries are judged.
"""

from __future__ import annotations

from dataclasses import dataclass

from practicum.records.task import MIB, Limits, PlainCheck, Task, Verification
from practicum.records.tree import Change, File
from practicum.records.verdict import Outcome, Status, Submission, Verdict
from practicum.verification.fusion import unshaped

_LIMITS = Limits(memory_bytes=256 * MIB, pids=32, disk_bytes=16 * MIB, command_s=10.0, episode_s=60.0)
_SOURCE = File(b"def add(a, b):\n    return a - b\n")
_RIGHT = b"def add(a, b):\n    return a + b\n"
_WRONG = b"def add(a, b):\n    return a * b\n"


@dataclass(frozen=True, slots=True)
class Canary:
    """One submission and what its verdict must be. `reward` is None exactly where the status is not `valid`.

    It is the reward by the table: signals may depend on an attempt's turns, or on a model's opinion of today.
    """

    name: str
    task: Task
    submission: Submission
    status: Status
    outcome: Outcome | None
    reward: float | None


def deviation(canary: Canary, verdict: Verdict) -> str | None:
    """How `verdict` differs from what is known, in words, or None."""
    if verdict.status != canary.status:
        said = f" ({verdict.reason})" if verdict.reason else ""
        return (
            f"expected {canary.outcome or canary.status}, but the verdict is {verdict.outcome or verdict.status}{said}"
        )
    if verdict.outcome != canary.outcome:
        return f"expected {canary.outcome}, but the outcome is {verdict.outcome}"
    if (reward := unshaped(canary.task, verdict)) != canary.reward:
        return f"expected reward {canary.reward}, but it is {reward}"
    return None


def _task(name: str, verification: Verification) -> Task:
    return Task(
        f"canary-{name}",
        "Repair `add` in calc.py.",
        {"calc.py": _SOURCE},
        verification,
        editable=("**/*.py",),
        limits=_LIMITS,
    )


def _edit(data: bytes, path: str = "calc.py") -> Submission:
    return Submission((Change(path, "edit" if path == "calc.py" else "add", File(data)),))


_CASES = File(b'{"id": "sum", "args": [2, 3], "expected": 5}\n{"id": "nothing", "args": [0, 0], "expected": 0}\n')
_PLAIN = _task(
    "plain",
    Verification(
        "plain",
        {"cases.jsonl": _CASES},
        fail_to_pass=("sum",),
        pass_to_pass=("nothing",),
        build="python3 -m compileall -q calc.py",
        plain=PlainCheck("calc:add", "cases.jsonl"),
        timeout_s=10.0,
    ),
)
_FROZEN = File(
    b"from calc import add\n\n\ndef test_sum():\n    assert add(2, 3) == 5\n\n\n"
    b"def test_nothing():\n    assert add(0, 0) == 0\n"
)
_PYTEST = _task(
    "pytest",
    Verification(
        "pytest",
        {"test_frozen.py": _FROZEN},
        files=("test_frozen.py",),
        fail_to_pass=("test_frozen.py::test_sum",),
        pass_to_pass=("test_frozen.py::test_nothing",),
        timeout_s=20.0,
    ),
)
# Its script decides nothing, with any submission and with none: whoever gives that a number is broken.
_SILENT = _task(
    "silent",
    Verification("harbor", {"test.sh": File(b"exit 0\n", 0o755)}, fail_to_pass=("reward",), timeout_s=10.0),
)

KNOWN: tuple[Canary, ...] = (
    Canary("plain-right", _PLAIN, _edit(_RIGHT), "valid", "passed", 1.0),
    Canary("plain-wrong", _PLAIN, _edit(_WRONG), "valid", "failed", -0.2),
    Canary("pytest-right", _PYTEST, _edit(_RIGHT), "valid", "passed", 1.0),
    Canary("pytest-wrong", _PYTEST, _edit(_WRONG), "valid", "failed", -0.2),
    Canary("tampered", _PYTEST, _edit(b"", "test_frozen.py"), "valid", "tampered", -1.0),
    Canary("build-failed", _PLAIN, _edit(b"def add(a, b:\n"), "valid", "build_failed", -0.5),
    Canary("invalid", _SILENT, _edit(_RIGHT), "invalid", None, None),
)
"""One of each kind of verdict, for both ways in which most tasks are judged."""
