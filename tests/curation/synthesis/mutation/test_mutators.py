"""Each mutator by an example, and all of them on real code."""

# ruff: noqa: E501  an example is easier to read on one line

from __future__ import annotations

import ast
import heapq
import textwrap
from pathlib import Path

import pytest

from practicum.curation.synthesis.mutation.quarry import mutate
from practicum.curation.synthesis.mutation.scan import scan
from practicum.curation.synthesis.mutation.scene import Edit, apply_edits
from practicum.curation.synthesis.mutation.table import KINDS, MUTATORS

# by mutator: code, and what some way of changing it gives
EXAMPLES: dict[str, tuple[str, str]] = {
    "operator": ("def f(a, b):\n    return a * b  # áé\n", "def f(a, b):\n    return a // b  # áé\n"),
    "operands-swapped": ("def f(a, b):\n    return (a - b)\n", "def f(a, b):\n    return (b - a)\n"),
    "operand-dropped": ("def f(a):\n    return g(a) + 2\n", "def f(a):\n    return g(a)\n"),
    "sign-dropped": ("def f(a):\n    return -a\n", "def f(a):\n    return a\n"),
    "elements-swapped": ("def f(a, b):\n    return [a, b]\n", "def f(a, b):\n    return [b, a]\n"),
    "comparison": ("def f(a):\n    return a == 1\n", "def f(a):\n    return a != 1\n"),
    "none-as-false": ("def f(a):\n    return a is None\n", "def f(a):\n    return not a\n"),
    "boundary": ("def f(a):\n    return a <  1\n", "def f(a):\n    return a <=  1\n"),
    "bound-dropped": ("def f(a):\n    return 0 < a < 9\n", "def f(a):\n    return 0 < a\n"),
    "index": ("def f(a):\n    return a[-1]\n", "def f(a):\n    return a[0]\n"),
    "slice": ("def f(a, n):\n    return a[:n]\n", "def f(a, n):\n    return a[:n + 1]\n"),
    "offset-dropped": ("def f(a):\n    return a + 1\n", "def f(a):\n    return a\n"),
    "length": ("def f(a):\n    return len(a) * 2\n", "def f(a):\n    return (len(a) - 1) * 2\n"),
    "condition-negated": ("def f(a):\n    if a: g()\n", "def f(a):\n    if not a: g()\n"),
    "filter": ("def f(a):\n    return [x for x in a if x]\n", "def f(a):\n    return [x for x in a if not x]\n"),
    "and-or": ("def f(a, b):\n    return a and b\n", "def f(a, b):\n    return a or b\n"),
    "operand-forgotten": ("def f(a, b):\n    return (a or b)\n", "def f(a, b):\n    return (b)\n"),
    "choice": ("def f(a, b):\n    return a if b else 0\n", "def f(a, b):\n    return 0 if b else a\n"),
    "return-value": ("def f(a):\n    return a  # it\n", "def f(a):\n    return None  # it\n"),
    "return-dropped": ("def f(a):\n    if a:\n        return 1\n    return 2\n", "def f(a):\n    if a:\n        pass\n    return 2\n"),
    "yield-dropped": ("def f(a):\n    for x in a:\n        g()\n        yield x\n", "def f(a):\n    for x in a:\n        g()\n"),
    "break-continue": ("for x in y:\n    break\n", "for x in y:\n    continue\n"),
    "break-dropped": ("for x in y:\n    g()\n    break\n", "for x in y:\n    g()\n"),
    "early-exit": ("for x in y:\n    g(x)  # all\n", "for x in y:\n    g(x)  # all\n    break\n"),
    "range": ("def f(n):\n    return range(n)\n", "def f(n):\n    return range(n - 1)\n"),
    "enumerate": ("def f(n):\n    return enumerate(n)\n", "def f(n):\n    return enumerate(n, 1)\n"),
    "assignment-dropped": ("def f(a):\n    a = g(a)\n    return a\n", "def f(a):\n    return a\n"),
    "augmented": ("def f(a):\n    a += 1\n", "def f(a):\n    a -= 1\n"),
    "targets-swapped": ("def f(a):\n    b, c = a\n", "def f(a):\n    c, b = a\n"),
    "raise-dropped": ("def f(a):\n    if a:\n        raise A\n", "def f(a):\n    if a:\n        pass\n"),
    "error-type": ("def f():\n    raise KeyError('a')\n", "def f():\n    raise IndexError('a')\n"),
    "handler-type": (
        "try:\n    g()\nexcept (A, B):\n    h()\n",
        "try:\n    g()\nexcept B:\n    h()\n",
    ),
    "handler-dropped": (
        "try:\n    g()\nexcept A:\n    h()\nexcept B:\n    i()\n",
        "try:\n    g()\nexcept B:\n    i()\n",
    ),
    "if-dropped": (
        "if a:\n    g()\nelif b:\n    h()\nelse:\n    i()\n",
        "if a:\n    g()\nelse:\n    i()\n",
    ),
    "else-dropped": ("if a:\n    g()\nelse:\n    h()\nx = 1\n", "if a:\n    g()\nx = 1\n"),
    "branches-swapped": ("if a:\n    g()\nelse:\n    h()\n", "if a:\n    h()\nelse:\n    g()\n"),
    "call-dropped": ("def f(a):\n    a.sort()\n    return a\n", "def f(a):\n    return a\n"),
    "call-swapped": ("def f(a):\n    return a.startswith(min(a))\n", "def f(a):\n    return a.endswith(min(a))\n"),
    "wrapper-dropped": ("def f(a):\n    return sorted(a)\n", "def f(a):\n    return a\n"),
    "arguments-swapped": ("def f(a, b):\n    g(a, b)\n", "def f(a, b):\n    g(b, a)\n"),
    "argument-dropped": ("def f(a, b):\n    g(a, key=b)\n", "def f(a, b):\n    g(a)\n"),
    "default": ("def f(a=True):\n    pass\n", "def f(a=False):\n    pass\n"),
    "parameter-misnamed": ("def f(a, b):\n    return [a]\n", "def f(a, b):\n    return [b]\n"),
    "number": ("def f():\n    return g(3)\n", "def f():\n    return g(2)\n"),
    "truth": ("def f():\n    return g(True)\n", "def f():\n    return g(False)\n"),
    "string": ("def f(a):\n    return a == 'abc'\n", "def f(a):\n    return a == 'ab'\n"),
    "attribute-misnamed": (
        "class A:\n    def __init__(self):\n        self.a = 1\n        self.b = 2\n\n    def f(self):\n        return self.a\n",
        "class A:\n    def __init__(self):\n        self.a = 1\n        self.b = 2\n\n    def f(self):\n        return self.b\n",
    ),
    "base-dropped": ("class A(B, C):\n    x = 1\n", "class A(B):\n    x = 1\n"),
    "method-dropped": (
        "class A:\n    def f(self):\n        pass\n\n    @d\n    def __eq__(self, o):\n        pass\n",
        "class A:\n    def f(self):\n        pass\n\n",
    ),
    "decorator-dropped": (
        "class A:\n    @property\n    def f(self):\n        pass\n",
        "class A:\n    def f(self):\n        pass\n",
    ),
    "methods-swapped": (
        "class A:\n    def f(self):\n        g()\n\n    def h(self):\n        i()\n",
        "class A:\n    def h(self):\n        g()\n\n    def f(self):\n        i()\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(MUTATORS))
def test_each_mutator_changes_what_it_says(name: str) -> None:
    """Each mutator of the table makes exactly the change of its example, and leaves all other text alone."""
    before, after = EXAMPLES[name]
    data = before.encode()
    found = {apply_edits(data, edits).decode() for site in scan(data) if site.mutator == name for edits in site.ways}
    assert after in found


@pytest.mark.parametrize("module", [heapq, textwrap])
def test_mutants_of_real_code_are_programs(module: object) -> None:
    """Every way to change real code gives Python that means something else, but for text that stood alone."""
    data = Path(str(module.__file__)).read_bytes()  # type: ignore[attr-defined]
    original = ast.dump(ast.parse(data))
    sites = scan(data)
    assert len({site.kind for site in sites}) > 8
    for site in sites[::5]:
        for edits in site.ways:
            changed = apply_edits(data, edits)
            assert ast.dump(ast.parse(changed)) != original, (site, edits)


def test_scan_repeats() -> None:
    """The same file gives the same sites in the same order."""
    data = Path(heapq.__file__).read_bytes()
    assert scan(data) == scan(bytes(data))


def test_nothing_cosmetic_is_proposed() -> None:
    """Docstrings, annotations, exports, versions, type checking, main blocks, logging and messages stay as they are."""
    quiet = (
        '"""A text of 3."""\n'
        "import logging\nfrom typing import TYPE_CHECKING\n"
        "__all__ = ['f', 'g']\n__version__ = '1.2'\nVERSION = (1, 2)\n"
        "logger = logging\n"
        "if TYPE_CHECKING:\n    X = 1 + 1\n"
        "def f(a: int | 'str') -> tuple[int, 2]:\n"
        '    """Not 1 < 2."""\n'
        "    logger.debug('a', 1 + 2)\n"
        "    print(3 > 2)\n"
        "    assert a < 1\n"
        "if __name__ == '__main__':\n    f(1 + 1)\n"
    )
    assert scan(quiet.encode()) == ()
    told = scan(b"def f(a):\n    raise ValueError('a text')\n")
    assert {site.mutator for site in told} == {"error-type"}


def test_windows_line_ends_stay() -> None:
    """A file with other line ends keeps them, in what is added too."""
    data = b"for x in y:\r\n    g(x)\r\n"
    (site,) = [site for site in scan(data) if site.mutator == "early-exit"]
    assert apply_edits(data, site.ways[0]) == b"for x in y:\r\n    g(x)\r\n    break\r\n"


def test_edits_are_made_from_the_end() -> None:
    """Edits of one file do not move each other."""
    assert apply_edits(b"abcdef", (Edit(0, 1, "xyz"), Edit(3, 5, ""), Edit(6, 6, "!"))) == b"xyzbcf!"


@pytest.mark.parametrize(
    ("edit", "why"),
    [(Edit(0, 1, "("), "no Python"), (Edit(4, 5, "(1)"), "the same program"), (Edit(5, 5, "  # one"), "a comment")],
)
def test_what_changes_nothing_is_no_mutant(edit: Edit, why: str) -> None:
    """A change that is no Python, or the same program, is not taken."""
    assert mutate(b"x = 1\ny = 2\n", (edit,)) is None, why


def test_reach_of_definitions() -> None:
    """A change in a body matters where its statement runs; one of a default or a base, wherever its owner runs."""
    data = b"class A(B, C):\n    def f(self, a=1):\n        x = a + 1\n        return x\n\n    def g(self):\n        return 2\n"
    reach = {site.mutator: (site.reach, site.around) for site in scan(data)}
    assert reach["offset-dropped"] == (range(3, 4), range(2, 5))
    assert reach["default"][0] == range(2, 5)
    assert reach["base-dropped"][0] == range(1, 8)


def test_kinds() -> None:
    """There is a mutator of every kind that the project promises."""
    promised = {
        *("operators", "comparisons", "boundaries", "conditions", "returns", "arguments", "loops", "assignments"),
        *("exceptions", "branches", "calls", "constants", "members"),
    }
    assert set(KINDS) == promised
