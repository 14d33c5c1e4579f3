"""A small project with tests of many kinds, and boxes to run them in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from practicum.curation.projects.project import Project
from practicum.curation.projects.reading import read_project
from practicum.sandboxes.contract import SandboxProvider
from practicum.sandboxes.provider import open_provider

LICENCE = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\n"
FILES = {
    "pyproject.toml": '[project]\nname = "Shop"\nversion = "1.2"\nlicense = "MIT"\n',
    "LICENSE": LICENCE,
    "README.md": "# Shop\n",
    "src/shop/__init__.py": "from shop.prices import total\n",
    "src/shop/prices.py": (
        "LIMIT = 100\n\n\ndef total(prices):\n    result = 0\n    for price in prices:\n        result += price\n"
        "    return result\n\n\ndef capped(prices):\n    return min(total(prices), LIMIT)\n"
    ),
    "src/shop/words.py": "def shout(text):\n    return text.upper()\n",
    "tests/__init__.py": "",
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef prices():\n    return [1, 2, 3]\n",
    "tests/helpers.py": "SUM = 6\n",
    "tests/data/list.txt": "4\n5\n",
    "tests/test_prices.py": (
        "from pathlib import Path\nimport pytest\nfrom shop import prices as tested\nfrom tests.helpers import SUM\n\n"
        "def test_total(prices):\n    assert tested.total(prices) == SUM\n\n\n"
        "@pytest.mark.parametrize('given, wanted', [([], 0), ([99, 2], 100)])\n"
        "def test_capped(given, wanted):\n    assert tested.capped(given) == wanted\n\n\n"
        "def test_file():\n    lines = (Path(__file__).parent / 'data' / 'list.txt').read_text().split()\n"
        "    assert tested.total(map(int, lines)) == 9\n\n\n"
        "def test_wrong():\n    assert tested.total([1]) == 2\n\n\n"
        "@pytest.mark.xfail\ndef test_known():\n    assert tested.total([1]) == 2\n\n\n"
        "@pytest.mark.skip\ndef test_left_out():\n    pass\n"
    ),
    "tests/test_words.py": (
        "import unittest\n\nfrom shop.words import shout\n\n\nclass WordsTest(unittest.TestCase):\n"
        "    def test_shout(self):\n        self.assertEqual(shout('a'), 'A')\n\n"
        "    def test_empty(self):\n        self.assertEqual(shout(''), '')\n"
    ),
}
PASSING = (
    "tests/test_prices.py::test_capped[given0-0]",
    "tests/test_prices.py::test_capped[given1-100]",
    "tests/test_prices.py::test_file",
    "tests/test_prices.py::test_total",
    "tests/test_words.py::WordsTest::test_empty",
    "tests/test_words.py::WordsTest::test_shout",
)

WriteProject = Callable[..., Path]


@pytest.fixture
def write_project(tmp_path: Path) -> WriteProject:
    """Writes a project's files below a folder of its own: those of the shop, changed by `changes`."""

    def write(changes: Mapping[str, str | bytes | None] | None = None, *, base: Mapping[str, str] = FILES) -> Path:
        folder = tmp_path / "shop"
        for path, text in {**base, **(changes or {})}.items():
            if text is None:
                continue
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    return write


@pytest.fixture
def shop(write_project: WriteProject) -> Project:
    return read_project(write_project())


@pytest.fixture
def passing() -> tuple[str, ...]:
    """The ids that pass, sorted."""
    return PASSING


@pytest.fixture(scope="session")
def boxes() -> Iterator[tuple[asyncio.Runner, SandboxProvider]]:
    with asyncio.Runner() as runner:
        opening = open_provider(run_id="tests-projects", limits_by="cgroup-or-rlimit")
        provider = runner.run(opening.__aenter__())
        try:
            yield runner, provider
        finally:
            runner.run(opening.__aexit__(None, None, None))
