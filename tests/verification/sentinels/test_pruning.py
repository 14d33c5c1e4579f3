"""Tests that are not run leave the rewritten file, and nothing else does."""

from __future__ import annotations

import ast

import pytest

from practicum.records.task import Verification
from practicum.records.tree import File
from practicum.verification.sentinels.guard import guard
from practicum.verification.sentinels.pruning import apart, nodes, prune, shortened, spoken

SOURCE = """\
import pytest
from m import f

LIMIT = f(1)


def helper():
    return test_shared


def test_asked():
    assert f(2) == 3


def test_idle():
    assert f(3) == 4


def test_shared():
    assert f(4) == 5


@pytest.mark.parametrize("n", [f(1)])
def test_decorated(n):
    assert n


class TestGroup:
    def setup_method(self):
        self.n = 1

    def test_idle(self):
        assert f(self.n) == 2


class TestOthers:
    def test_asked(self):
        assert f(5) == 6
"""


def pruned(source: str, names: set[str]) -> str:
    module = ast.parse(source)
    prune(module, names, spoken(module))
    return ast.unparse(module)


def lines_of(module: ast.Module) -> list[tuple[str, int]]:
    """What stands where, but for a `pass`, which no line had before."""
    return [(ast.dump(node), node.lineno) for node in ast.walk(module) if isinstance(node, ast.expr)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("names", [frozenset[str](), frozenset({"test_asked"}), frozenset({"test_idle"})])
def test_the_shortened_text_reads_as_the_pruned_file(names: frozenset[str], end: str) -> None:
    """It says the same, on the same lines, however lines end and whatever signs stand in them."""
    source = f"FEED = 'a\x0cb\x85c'\n\x0c\n{SOURCE}"
    text, named = shortened(source.replace("\n", end), names)
    module = ast.parse(source)
    assert named == spoken(module)
    prune(module, names, named)
    assert ast.unparse(ast.parse(text)) == ast.unparse(module)
    assert lines_of(ast.parse(text)) == lines_of(module)
    assert shortened(source, None) == (source, named)


def test_only_plain_tests_that_nobody_names_go() -> None:
    """What is asked for, spoken of, decorated or no test stays; a class that loses all of its tests stays."""
    left = pruned(SOURCE, {"test_asked"})
    assert "test_idle" not in left
    for kept in (
        "LIMIT = f(1)",
        "def helper",
        "def test_asked",
        "def test_shared",
        "def test_decorated",
        "setup_method",
    ):
        assert kept in left
    assert left.count("def test_asked") == 2
    assert pruned("class TestA:\n    def test_a(self):\n        pass\n", set()) == "class TestA:\n    pass"


LOOKS = (
    "len(globals()) > 3",
    "getattr(TestGroup(), 'test_' + 'idle')",
    "len(TestGroup.__dict__) > 2",
    "unittest.TestLoader().getTestCaseNames(TestGroup)",
    "named_otherwise(TestGroup)",
)


@pytest.mark.parametrize("look", LOOKS)
def test_a_file_that_looks_at_itself_stays_whole(look: str) -> None:
    """Where a test can count or call the others by made names, none of them goes."""
    source = f"from inspect import getmembers as named_otherwise\n{SOURCE}\n\ndef test_count():\n    assert {look}\n"
    assert "test_idle" in pruned(source, {"test_asked"})


def test_what_makes_an_abstract_test_real_stays() -> None:
    """Without it no test of its class could run."""
    source = """
class Base(ABC):
    @abstractmethod
    def test_idle(self): ...

    def test_asked(self):
        assert f(1) == 2


class TestReal(Base):
    def test_idle(self):
        assert f(2) == 3

    def test_other(self):
        assert f(3) == 4
"""
    left = pruned(source, {"test_asked"})
    assert left.count("def test_idle") == 2
    assert "test_other" not in left
    tests = {"test_a.py": File(b"from base import Base\n"), "base.py": File(source.encode())}
    assert not apart("test_a.py", tests)


def test_a_package_goes_by_the_name_of_its_folder() -> None:
    """Who imports from it says no `__init__`, nor, from within, its name."""
    inside, used = File(b"def test_idle(): ...\n"), File(b"from unit.parts import test_idle\n")
    assert not apart("unit/parts/__init__.py", {"unit/parts/__init__.py": inside, "test_b.py": used})
    within = File(b"from . import test_idle\n")
    assert not apart("unit/parts/__init__.py", {"unit/parts/__init__.py": inside, "unit/parts/test_b.py": within})
    assert apart("unit/parts/__init__.py", {"unit/parts/__init__.py": inside, "test_b.py": File(b"import m\n")})


def test_a_file_that_another_uses_stays_whole() -> None:
    """Where another frozen file speaks of a file, tests of it may be run from there."""
    tests = {"test_a.py": File(SOURCE.encode()), "test_b.py": File(b"from test_a import test_idle\n")}
    assert not apart("test_a.py", tests)
    assert apart("test_b.py", tests)
    for shown, files in ((False, {"test_a.py": tests["test_a.py"]}), (True, tests)):
        check = Verification("pytest", files, ("test_a.py",), fail_to_pass=("test_a.py::test_asked",))
        guarded = guard(check, "nonce")
        assert (b"def test_idle" in guarded.tests["test_a.py"].data) == shown
        assert guarded.probes


def test_what_was_asked_says_its_line_in_the_original() -> None:
    """What is left out does not move the lines by which assertions are told."""
    name, files = "test_a.py::TestOthers::test_asked", {"test_a.py": File(SOURCE.encode())}
    check = Verification("pytest", files, ("test_a.py",), fail_to_pass=(name,))
    (asked,) = guard(check, "nonce").probes[name].asked
    assert SOURCE.splitlines()[asked.line - 1].strip() == "assert f(5) == 6"


def test_nodes_are_those_of_a_walk() -> None:
    """The quick walk comes by each node once."""
    module = ast.parse(SOURCE)
    assert sorted(map(id, nodes(module))) == sorted(map(id, ast.walk(module)))
