"""A task made from a project holds what its ids need and no more, and its solution is the gold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.projects.building import build_task, choose_passing, frozen_files, limits_of, timeout_of
from practicum.curation.projects.project import Project
from practicum.errors import TaskError
from practicum.records.task import MIB, Task
from practicum.records.tree import File
from practicum.tasks.harbor import load_task, save_task

PRICES = "src/shop/prices.py"


TOTAL, CAPPED = "tests/test_prices.py::test_total", "tests/test_prices.py::test_capped[given0-0]"


def _task(shop: Project, **changes: object) -> Task:
    options: dict[str, object] = {
        "id": "shop-1",
        "files": shop.state({PRICES: b"LIMIT = 1\n", "src/shop/old.py": b""}),
        "gold": {PRICES: shop.files[PRICES].data, "src/shop/old.py": None, "src/shop/new/part.py": b"x = 1\n"},
        "fail_to_pass": (TOTAL,),
        "pass_to_pass": (CAPPED,),
        "instruction": "Make it right.",
        "provenance": {"generator": "test"},
    } | changes
    return build_task(shop, **options)  # type: ignore[arg-type]


def test_a_task_is_written_and_read_back(shop: Project, tmp_path: Path) -> None:
    """Files, tests, limits and provenance survive, and nothing of the tests is in the workspace."""
    task = _task(shop)
    save_task(task, tmp_path / "t")
    again = load_task(tmp_path / "t")
    assert again.content == task.content
    assert not any(path.startswith("tests/") for path in task.files)
    assert set(task.verification.tests) == {
        "tests/__init__.py",
        "tests/conftest.py",
        "tests/helpers.py",
        "tests/data/list.txt",
        "tests/test_prices.py",
    }
    assert task.provenance["license"] == "MIT"
    assert task.provenance["parent"] == shop.digest
    solve = task.solution["solve.sh"].data.decode()
    assert "rm -- src/shop/old.py" in solve
    assert "mkdir -p -- src/shop/new" in solve


def test_the_same_in_gives_the_same_out(shop: Project) -> None:
    """Building is a function of what it is given."""
    assert _task(shop).content == _task(shop).content


def test_visible_tests_are_in_the_workspace_too(shop: Project) -> None:
    """A visible test file is both frozen and there for the agent."""
    task = _task(shop, visible=("tests/test_words.py",))
    assert task.files["tests/test_words.py"] == task.verification.tests["tests/test_words.py"]
    assert task.verification.files == ("tests/test_prices.py",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fail_to_pass": ()}, "no test fails"),
        ({"pass_to_pass": (TOTAL,)}, "both fail and pass"),
        ({"gold": {"README.md": b""}}, "not among the sources"),
        ({"gold": {"src/shop/none.py": None}}, "not there"),
        ({"fail_to_pass": ("tests/test_none.py::a",)}, "no test file"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], said: str, shop: Project) -> None:
    """Ids, gold and files that do not fit together make no task."""
    with pytest.raises(TaskError, match=said):
        _task(shop, **changes)


def test_test_files_that_others_import_come_along() -> None:
    """A test file that takes its cases from another needs that one as well, and what that one needs."""
    tests = {
        "t/test_a.py": File(b"from t.test_b import Base\n"),
        "t/test_b.py": File(b"from . import test_c\n"),
        "t/test_c.py": File(b""),
        "t/test_d.py": File(b""),
        "t/notes.txt": File(b""),
    }
    files = [path for path in tests if path.endswith(".py")]
    assert set(frozen_files(tests, files, ["t/test_a.py::x"])) == set(tests) - {"t/test_d.py"}


NAMES = st.sampled_from([f"t{n}.py::{c}" for n in range(3) for c in "abcde"])


@given(
    st.sets(NAMES),
    st.lists(NAMES, min_size=1, max_size=3, unique=True),
    st.dictionaries(NAMES, st.floats(0, 2)),
    st.sets(NAMES),
    st.floats(0, 4),
    st.integers(0, 6),
)
def test_choosing_keeps_within_its_budget(
    passing: set[str], failing: list[str], seconds: dict[str, float], near: set[str], budget_s: float, most: int
) -> None:
    """What is chosen passes, does not fail, fits time and number, and prefers what is near the change."""
    chosen = choose_passing(passing, failing, seconds=seconds, near=near, budget_s=budget_s, most=most)
    assert set(chosen) <= passing - set(failing)
    assert len(chosen) <= most
    assert sum(seconds.get(name, 0.05) for name in chosen) <= budget_s + 1e-9
    assert chosen == choose_passing(sorted(passing), failing, seconds=seconds, near=near, budget_s=budget_s, most=most)
    if len(chosen) < most:
        free = [name for name in passing & near - set(failing) if seconds.get(name, 0.05) == 0]
        assert set(free) <= set(chosen)


def test_many_small_files_need_room() -> None:
    """A file takes a page of the disk however small it is, and some for its name."""
    many = {f"data/{i}": File(b"x") for i in range(20_000)}
    assert limits_of(many).disk_bytes >= 2 * 20_000 * 4096
    assert limits_of({"one": File(b"x")}).disk_bytes == 64 * MIB


def test_limits_have_margin() -> None:
    """The time for tests is several times what they took, and never little."""
    assert timeout_of(["a"], {"a": 0.001}) == 10
    assert timeout_of(["a", "b"], {"a": 3.0, "b": 3.0}) == 53
