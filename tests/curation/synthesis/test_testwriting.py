"""Which targets are worth tests, and what tests may use."""

from __future__ import annotations

import pytest

from practicum.curation.projects.project import Project
from practicum.curation.synthesis.disguise import Wrong
from practicum.curation.synthesis.testwriting import _packages, _weak


@pytest.mark.parametrize(
    ("good", "plain", "reason"),
    [
        (4, 0, None),
        (2, 2, None),
        (4, 9, None),
        (3, 0, "survived"),
        (1, 3, "its mutants are too plain"),
        (0, 8, "its mutants are too plain"),
    ],
)
def test_weak_targets(good: int, plain: int, reason: str | None) -> None:
    """Fewer than four mutants, or mostly such as return nothing, make no task; plain ones are taken last."""
    caught = [Wrong(f"operator: {n}", f"g{n}") for n in range(good)]
    caught += [Wrong("return: nothing", f"p{n}") for n in range(plain)]
    weak = _weak(caught, 18)
    assert (weak.reason if weak else None) == reason


def test_the_same_mutant_counts_once() -> None:
    """Mutants of the same text are one."""
    weak = _weak([Wrong(f"operator: {n}", "same") for n in range(6)], 18)
    assert weak is not None
    assert weak.reason == "survived"


def test_packages_of_the_gold_are_told() -> None:
    """What the project's own tests import may be used and is named; the project itself goes without saying."""
    project = Project("p", "1", {}, "MIT", {}, {}, (), ("src",), ("src/pack/a.py",))
    gold = b"import datetime\nimport pytest\nfrom freezegun import freeze_time\n"
    gold += b"from pack.a import b\nimport numpy.linalg\n"
    assert _packages(project, gold) == "pytest, `freezegun`, `numpy` and the standard library"
    assert _packages(project, b"import pack\n") == "pytest and the standard library"
