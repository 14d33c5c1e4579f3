"""A repository whose history holds commits that are tasks, and others that are none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Commit = Callable[..., str]
WHO = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
START = {
    "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\nlicense = "MIT"\n',
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n",
    "tests/test_calc.py": "import calc\n\n\ndef test_double():\n    assert calc.double(3) == 6\n",
}
ADD = "import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "calc"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    return folder


@pytest.fixture
def commit(repository: Path) -> Commit:
    """Commits `files` (None removes) with a message at a day of 2024; the new commit's id."""

    def make(files: Mapping[str, str | None], message: str, day: int = 1) -> str:
        for path, text in files.items():
            target = repository / path
            if text is None:
                target.unlink()
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
        date = f"2024-01-{day:02d}T10:00:00Z"
        env = os.environ | WHO | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        subprocess.run(["git", "add", "-A"], cwd=repository, env=env, check=True)
        subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", message], cwd=repository, env=env, check=True)
        said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True)
        return said.stdout.strip()

    return make


@pytest.fixture
def history(commit: Commit) -> dict[str, str]:
    """Commits by what they are."""
    start = commit(START, "Start", 1)
    source = START["calc.py"]
    fixed = source.replace("a - b", "a + b")
    body = (
        "It subtracted its arguments instead.\n\nUse `return a + b` there.\n\nFixes #12\nSigned-off-by: Ann <a@b.org>"
    )
    return {
        "start": start,
        "task": commit({"calc.py": fixed, "tests/test_add.py": ADD}, f"Fix the sum of two numbers (#12)\n\n{body}", 2),
        "docs": commit({"README.md": "hello"}, "Describe", 3),
        "layout": commit(
            {"calc.py": f"# sums\n{fixed}", "tests/test_add.py": f"# sums\n{ADD}"}, "Comment on everything", 4
        ),
        "no effect": commit(
            {
                "calc.py": fixed.replace("2 * a", "a + a"),
                "tests/test_calc.py": START["tests/test_calc.py"]
                + "\n\ndef test_zero():\n    assert not calc.double(0)\n",
            },
            "Add instead of multiplying",
            5,
        ),
        "wrong": commit(
            {"calc.py": fixed.replace("2 * a", "3 * a"), "tests/test_calc.py": "def test_bad():\n    assert 0\n"},
            "Break all",
            6,
        ),
        "new name": commit(
            {
                "calc.py": f"{fixed}\n\ndef half_of(a):\n    return a // 2\n",
                "tests/test_calc.py": "from calc import half_of\n\n\ndef test_half():\n    assert half_of(5) == 2\n",
            },
            "Add halves",
            7,
        ),
    }
