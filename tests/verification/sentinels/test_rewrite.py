"""A rewritten file asks what its author asked, and other things; the way back is known here only."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from practicum.records.task import Verification
from practicum.records.tree import File
from practicum.verification.sentinels.guard import Guarded, guard

HEAD = "import math\nimport numpy as np\nimport pytest\nfrom calc import f, Broken\nfrom unittest import TestCase\n\n"


def pytest_guard(body: str, *tails: str, nonce: str = "n", turn: int = 0, head: str = HEAD) -> Guarded:
    ids = tuple(f"test_x.py::test_it{tail}" for tail in tails or ("",))
    check = Verification("pytest", {"test_x.py": File((head + body).encode())}, ("test_x.py",), fail_to_pass=ids)
    return guard(check, nonce, turn)


def in_test(assertion: str) -> str:
    return "def test_it():\n" + "".join(f"    {line}\n" for line in assertion.split("\n"))


def in_method(assertion: str) -> str:
    return "class T(TestCase):\n    def test_it(self):\n" + "".join(
        f"        {line}\n" for line in assertion.split("\n")
    )


def texts(guarded: Guarded) -> list[set[str]]:
    (probe,) = guarded.probes.values()
    return [set(asked.texts) for asked in probe.asked]


@pytest.mark.parametrize(
    ("assertion", "strong"),
    [
        ("assert f(1) == 2", True),
        ("assert 2 == f(1)", True),
        ("assert f(1) == [1, {'a': -2.5}]", True),
        ("assert f(1) is True", True),
        ("assert f(1) == pytest.approx(2.5, abs=0.1)", True),
        ("assert math.isclose(f(1), 2.5)", True),
        ("assert abs(f(1) - 2.5) < 1e-3", True),
        ("assert f(1) in (1, 2)", True),
        ("assert f(1) == 2 and f(2)", True),
        ("want = [1, 2]\nassert f(1) == want", True),
        ("for a, want in ((1, 2), (3, 4)):\n    assert f(a) == want", True),
        ("with pytest.raises(ValueError):\n    f(1)", True),
        ("with pytest.raises((ValueError, KeyError), match='x'):\n    f(1)", True),
        ("np.testing.assert_allclose(f(1), [1.0, 2.0])", True),
        ("with pytest.raises(Broken):\n    f(1)", False),
        ("with pytest.raises(Exception):\n    f(1)", False),
        ("assert f(1)", False),
        ("assert not f(1)", False),
        ("assert f(1) != 2", False),
        ("assert f(1) < 2", False),
        ("assert 'x' in f(1)", False),
        ("assert f(1) is None", False),
        ("assert f(1) == f(2)", False),
        ("a = 1\nassert f(a) == a + 1", False),
        ("assert 0 < f(1) < 5", False),
    ],
)
def test_questions(assertion: str, strong: bool) -> None:
    """Each kind of assertion is asked with another answer; a changed constant is strong, the rest is weak."""
    guarded = pytest_guard(in_test(assertion))
    (probe,) = guarded.probes.values()
    assert {asked.strong for asked in probe.asked} == {strong}
    assert all(len(found) >= 2 for found in texts(guarded))
    ast.parse(guarded.tests["test_x.py"].data)


@pytest.mark.parametrize(
    ("assertion", "strong"),
    [
        ("self.assertEqual(f(1), 2)", True),
        ("self.assertAlmostEqual(f(1), 2.5, 3)", True),
        ("self.assertCountEqual(f(1), [1, 2])", True),
        ("self.assertTrue(f(1) == 2)", True),
        ("with self.assertRaises(KeyError):\n    f(1)", True),
        ("self.assertRaises(KeyError, f, 1)", True),
        ("with self.subTest(a=1):\n    self.assertEqual(f(1), 2)", True),
        ("self.assertTrue(f(1))", False),
        ("self.assertIsNone(f(1))", False),
        ("self.assertIn(1, f(1))", False),
        ("self.assertGreater(f(1), 2)", False),
        ("self.assertNotEqual(f(1), 2)", False),
        ("self.assertAlmostEqual(f(1), 2.5, places=self.places)", False),
    ],
)
def test_questions_of_unittest(assertion: str, strong: bool) -> None:
    """The same for assertion methods."""
    source = HEAD + in_method(assertion)
    check = Verification(
        "unittest", {"a/test_x.py": File(source.encode())}, ("a/test_x.py",), fail_to_pass=("a.test_x.T.test_it",)
    )
    guarded = guard(check, "n")
    assert [asked.strong for asked in guarded.probes["a.test_x.T.test_it"].asked] == [strong]
    assert all(one.startswith("a.test_x.T.test_it_") for one in guarded.probes["a.test_x.T.test_it"].ids)


@pytest.mark.parametrize(
    "body",
    [
        in_test("f(1)"),
        in_test("try:\n    assert f(1) == 2\nexcept AssertionError:\n    pass"),
        in_test("with pytest.raises(f(1)):\n    assert f(1) == 2"),
        in_test("with pytest.raises(ValueError) as caught:\n    f(1)\nprint(caught.value)"),
        in_test("def inner():\n    assert f(1) == 2\nf(inner)"),
        "@f\n" + in_test("assert f(1) == 2"),
        in_test("assert f(1) == 2") + "\ndef test_other():\n    test_it()\n",
        "def test_it(:\n",
    ],
)
def test_what_cannot_be_asked_is_left_alone(body: str) -> None:
    """Where an assertion's failure is caught or expected, or a test is wrapped or called, the file stays as it is."""
    guarded = pytest_guard(body)
    assert guarded.tests["test_x.py"].data == (HEAD + body).encode()
    assert (guarded.run, guarded.probes) == (("test_x.py::test_it",), {})
    assert set(guarded.without) == {"test_x.py::test_it"}


def test_what_nobody_looks_at_can_be_asked() -> None:
    """An exception that is only named is still waited for, by its author's class and by another."""
    body = in_test("with pytest.raises(ValueError) as caught:\n    f(1)")
    assert set(pytest_guard(body).probes) == {"test_x.py::test_it"}


ROWS = "@pytest.mark.parametrize('a, want', {rows})\ndef test_it(a, want):\n    assert f(a) == want\n"


@pytest.mark.parametrize(
    ("rows", "tails"),
    [
        ("[(1, 2), (3, 4)]", ("[1-2]", "[3-4]")),
        ("[([1], 'x'), (None, 'y z')]", ("[a0-x]", "[None-y z]")),
        ("[pytest.param(1, 2, id='one'), (3, 4)]", ("[one]", "[3-4]")),
        ("[(1, 2), (3, 4)], ids=['p', 'q']", ("[p]", "[q]")),
    ],
)
def test_rows(rows: str, tails: tuple[str, ...]) -> None:
    """Rows are asked by their constants, under ids that do not hold them."""
    guarded = pytest_guard(ROWS.replace("{rows}", rows), *tails)
    for tail in tails:
        probe = guarded.probes[f"test_x.py::test_it{tail}"]
        assert probe.strong
        assert all(re.fullmatch(r"test_x\.py::test_it_\w+\[(row\d|one|p|q)\]", one) for one in probe.ids)


@pytest.mark.parametrize("rows", ["[(1, 2), (1, 2)]", "make()", "[(f, 2)]", "[(1, 'é')]"])
def test_rows_whose_ids_are_not_sure(rows: str) -> None:
    """They keep their own ids, and are asked in the weaker way."""
    guarded = pytest_guard(ROWS.replace("{rows}", rows), "[1-2]")
    probe = guarded.probes["test_x.py::test_it[1-2]"]
    assert not probe.strong
    assert all(one.endswith("[1-2]") for one in probe.ids)


@pytest.mark.parametrize(
    ("assertion", "told"),
    [
        ("assert f(1) == 'The basket is empty'", True),
        ("assert f(1) == b'no'", True),
        ("assert f(1) == [1, {2: ('x', 'Bob')}]", True),
        ("assert f(1) == 'x-1'", False),
        ("assert f(1) == {'name': 2, 'basket': 3}", False),
        ("assert f(1) == 'The basket is empty'\nassert f(2) == 2", False),
        ("for a, want in ((1, 'one'), (2, 'two')):\n    assert f(a) == want", True),
    ],
)
def test_a_text_with_words_is_weak(assertion: str, told: bool) -> None:
    """Its language tells it from what is no language; one question that nobody can tell makes a test strong."""
    (probe,) = pytest_guard(in_test(assertion)).probes.values()
    assert probe.strong is not told


LOOP = "for a, want in ((1, 1000), (2, 2000), (3, 3000)):\n    assert f(a) == want\n"
MARKED = ROWS.replace("{rows}", "[(1, 1000), (2, 2000), (3, 3000)]")


@pytest.mark.parametrize(
    ("body", "tails"), [(in_test(LOOP), ("",)), (MARKED, ("[1-1000]", "[2-2000]", "[3-3000]"))], ids=["loop", "rows"]
)
def test_each_row_has_a_lot_of_its_own(body: str, tails: tuple[str, ...]) -> None:
    """Where one row holds its author's constant, another one does as often as anywhere else."""
    together, rounds = [0, 0], 300
    for nonce in range(rounds):
        guarded = pytest_guard(body, *tails, nonce=str(nonce))
        asked = [one for tail in tails for one in guarded.probes[f"test_x.py::test_it{tail}"].asked]
        assert [one.texts[one.options.index(0)] for one in asked] == ["1000", "2000", "3000"]
        own = [one.options.index(0) for one in asked]
        together[0] += own[0] == own[1]
        together[1] += own[1] == own[2]
    expected = rounds / len(guarded.probes[f"test_x.py::test_it{tails[0]}"].ids)
    assert all(abs(times - expected) < 5 * expected**0.5 for times in together), together


def test_items_report_by_their_own_tags() -> None:
    """In each variant, an item's assertion has the tag of that item, in inner loops too, and each value its row."""
    body = in_test("for a, want in ((1, 1000), (2, 2000)):\n    for b in (1, 2):\n        assert f(a, b) == want")
    guarded = pytest_guard(body)
    (probe,) = guarded.probes.values()
    assert [one.sure for one in probe.asked] == [True, True]
    wanted = {tag: text for one in probe.asked for tag, text in zip(one.tags, one.texts, strict=True)}
    assert ran(guarded) == {tag: [int(text)] * 2 for tag, text in wanted.items()}


def ran(guarded: Guarded) -> dict[str, list[int]]:
    """By tag, what each assertion was about to compare with: the tests run with stand-ins for what they import."""
    seen: dict[str, list[int]] = {}
    now: list[str] = []

    class Check:
        def __init__(self, tag: str) -> None:
            now[:] = [tag]

        def __enter__(self) -> None:
            return None

        def __exit__(self, *ended: object) -> None:
            return None

    class Value:
        def __eq__(self, other: object) -> bool:
            assert isinstance(other, int)
            seen.setdefault(now[0], []).append(other)
            return True

        __hash__ = None  # type: ignore[assignment]

    module = ast.parse(guarded.tests["test_x.py"].data)
    (check,) = (
        alias.asname
        for node in module.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == "check"
    )
    names: dict[str, Any] = {str(check): Check, "f": lambda *given: Value()}
    functions: list[ast.stmt] = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    exec(compile(ast.Module(functions, []), "test_x.py", "exec"), names)
    for node in functions:
        assert isinstance(node, ast.FunctionDef)
        names[node.name]()
    return seen


@pytest.mark.parametrize(
    ("lines", "sure"),
    [
        ("for a, want in ((1, 10), (2, 20)):\n    assert f(a) == want\n    if f(0):\n        break", [True, False]),
        ("for a, want in ((1, 10), (2, 20)):\n    if f(0):\n        continue\n    assert f(a) == want", [False, False]),
        ("for a, want in ((1, 10), (2, 20)):\n    pass\nassert f(a) == want", [True]),
    ],
)
def test_what_a_loop_may_leave_out(lines: str, sure: list[bool]) -> None:
    """Items after one that may end the loop need not come; behind the loop nobody says which item is meant."""
    (probe,) = pytest_guard(in_test(lines)).probes.values()
    assert [one.sure for one in probe.asked] == sure
    assert all(one.strong for one in probe.asked) is (len(sure) > 1)


def test_a_constant_that_stands_twice_has_the_same_alternatives() -> None:
    """What two questions have in common must not be their author's constant alone."""
    first, second, _ = texts(pytest_guard(in_test("assert f(1) == 7\nassert f(2) == 7\nassert f(3) == 8")))
    assert first == second


def test_constants_of_the_module_go_into_the_tests() -> None:
    """A list that only tests read does not stay behind with the author's answers."""
    body = "CASES = [(1, 2222), (3, 4444)]\nWANT = 7777\n\n" + in_test(
        "for a, want in CASES:\n    assert f(a) == want\nassert f(9) == WANT"
    )
    for nonce in "abc":
        text = pytest_guard(body, nonce=nonce).tests["test_x.py"].data.decode()
        assert "CASES" not in text
        assert "WANT" not in text
        assert text.count("2222") == text.count("7777") == 1


def test_a_file_keeps_its_head() -> None:
    """Docstring and future imports stay first."""
    head = '"""What it is."""\nfrom __future__ import annotations\nfrom calc import f\n\n'
    text = pytest_guard(in_test("assert f(1) == 2"), head=head).tests["test_x.py"].data.decode()
    assert ast.get_docstring(ast.parse(text)) == "What it is."
    compile(text, "test_x.py", "exec")


def test_inherited_tests() -> None:
    """A test of a base class in the file is asked under each class that inherits it."""
    body = "class Base:\n    def test_it(self):\n        assert f(1) == 2\n\n"
    body += "class TestA(Base):\n    pass\n\nclass TestB(Base):\n    pass\n"
    ids = ("test_x.py::TestA::test_it", "test_x.py::TestB::test_it")
    check = Verification("pytest", {"test_x.py": File((HEAD + body).encode())}, ("test_x.py",), fail_to_pass=ids)
    guarded = guard(check, "n")
    assert set(guarded.probes) == set(ids)
    assert {one.partition("::")[2].partition("::")[0] for one in guarded.run} == {"TestA", "TestB"}


def test_a_later_turn_reverses_the_order_and_changes_the_constants() -> None:
    """The lots stay: what ran first with the author's answer runs last with it."""
    first, second = (pytest_guard(in_test("assert f(1) == 1000\nassert f(2)"), turn=turn) for turn in (0, 1))

    def own(guarded: Guarded) -> list[list[bool]]:
        (probe,) = guarded.probes.values()
        order = sorted(range(2), key=lambda variant: probe.ids[variant])
        return [[asked.options[variant] == 0 for variant in order] for asked in probe.asked]

    assert own(first) == [row[::-1] for row in own(second)]
    assert texts(first)[0] != texts(second)[0]
    assert not set(first.run) & set(second.run)


def test_the_same_lot_gives_the_same_file() -> None:
    """What a verdict says was drawn can be drawn again."""
    body = in_test("assert f(1) == 2")
    assert pytest_guard(body) == pytest_guard(body)
    assert pytest_guard(body) != pytest_guard(body, nonce="m")
