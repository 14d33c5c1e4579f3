"""Seeds of attempts."""

from __future__ import annotations

from practicum.pipeline.run import seed_of, specs_of
from practicum.records.task import Task, Verification


def _tasks(count: int) -> list[Task]:
    return [Task(f"t{i}", "do", {}, Verification("plain", {})) for i in range(count)]


def test_every_attempt_has_its_own_seed() -> None:
    """Seeds differ between attempts of a group and between groups, and are the same in every run of a seed."""
    specs = specs_of(3, [("g0", _tasks(1)[0]), ("g1", _tasks(1)[0])], size=4, temperature=1.0)
    assert len({spec.seed for spec in specs}) == 8
    assert specs[0].seed == seed_of(3, "g0/0")
    assert all(0 <= spec.seed < 2**63 for spec in specs)
