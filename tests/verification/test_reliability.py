"""Trust falls with what candidate and judge share, and with what looked odd."""

from __future__ import annotations

from typing import Any

import pytest

from practicum.records.task import PlainCheck, Runner, Task, Verification
from practicum.records.verdict import Finding
from practicum.verification.reliability import reliability


def of(runner: Runner, *findings: Finding, sentinels: dict[str, Any] | None = None, **check: Any) -> float:
    task = Task("t", "Do it.", {}, Verification(runner, {}, **check))
    return reliability(task, findings, {"sentinels": sentinels} if sentinels else {})


def covered(strong: int, weak: int, of_all: int) -> dict[str, Any]:
    return {"covered": strong + weak, "of": of_all, "weak": ["t"] * weak, "without": {}}


def test_the_order_of_runners() -> None:
    """Fresh data before frozen data, a process of its own before a shared one, sentinels before none."""
    values = [
        of("plain", plain=PlainCheck("m:f", "c", "g")),
        of("plain", plain=PlainCheck("m:f", "c")),
        of("pytest", sentinels=covered(4, 0, 4)),
        of("pytest", sentinels=covered(2, 2, 4)),
        of("pytest", sentinels=covered(0, 4, 4)),
        of("pytest", sentinels=covered(0, 0, 4)),
    ]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == len(values)
    assert all(0 < value <= 1 for value in values)


def test_what_looks_odd_takes_off() -> None:
    """Once for each kind; what honest repairs do does not count."""
    odd, flaky = Finding("startup_hook_changed", "a", ""), Finding("flaky_contradiction", "t", "")
    assert of("pytest", odd) == of("pytest", odd, odd) == pytest.approx(0.8 * of("pytest"))
    assert of("pytest", flaky) < of("pytest", odd)
    assert of("pytest", Finding("outside_editable", "x", "")) == of("pytest")
