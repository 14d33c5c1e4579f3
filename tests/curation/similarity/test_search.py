"""Copies inside a set and against protected sets: found, named, and not seen where there are none."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from practicum.curation.similarity import Match, TaskFolders, contamination, near_duplicates, survey
from practicum.errors import TaskError
from practicum.records.task import Task, Verification
from practicum.records.tree import File
from practicum.tasks.harbor import save_task
from practicum.tasks.humanevalpack import read_rows
from practicum.tasks.quickstart import FamilySpec, generate_family

DATA = Path(__file__).parents[4] / "shared" / "data" / "humanevalfix" / "humanevalfix-python-a.jsonl"

STATEMENT = (
    "The invoice total ignores the discount for large orders. Customers who order more than ten crates are promised "
    "five per cent off the whole sum, yet the amount that is printed is the plain sum of all lines."
)
BROKEN = """\
def invoice_total(lines, crates):
    total = 0
    for price, amount in lines:
        total += price * amount
    if crates > 100:
        total = round(total * 0.95, 2)
    return total
"""
FIXED = BROKEN.replace("> 100", "> 10")


def make(name: str, statement: str, broken: str, fixed: str, tests: str = "", **changes: object) -> Task:
    rng = random.Random(name)
    cases = "".join(f"    assert work.run({rng.random()}, {rng.random()}) == {rng.random()}\n" for _ in range(8))
    frozen = tests or f"import work\n\n\ndef test_it():\n{cases}"
    task = Task(
        id=name,
        instruction=statement,
        files={"work.py": File(f"import math\n\n\n{broken}".encode())},
        verification=Verification(
            "pytest", {"test_it.py": File(frozen.encode())}, ("test_it.py",), fail_to_pass=("test_it.py::test_it",)
        ),
        solution={
            "solve.sh": File(b"cp /solution/work.py /app/work.py\n", 0o755),
            "work.py": File(f"import math\n\n\n{fixed}".encode()),
        },
    )
    return replace(task, **changes)  # type: ignore[arg-type]


ORIGINAL = make("original", STATEMENT, BROKEN, FIXED)


TESTS = ORIGINAL.verification.tests["test_it.py"].data.decode()
QUOTING = f"Quite another text comes first, of things that are not said there. {STATEMENT[:140]}"
URL = "https://github.com/Some/Thing.git"


def renamed(text: str) -> str:
    for old, new in (
        ("invoice_total", "sum_of"),
        ("lines", "rows"),
        ("crates", "boxes"),
        ("total", "result"),
        ("price", "p"),
    ):
        text = text.replace(old, new)
    return text


def kinds(matches: Sequence[Match]) -> set[tuple[str, str]]:
    return {(match.kind, match.facet) for match in matches}


def test_an_exact_copy_is_the_same_work() -> None:
    """A task under another id, with other layout and comments, is a copy, and both are named with what they share."""
    copy = make("copy", STATEMENT.upper(), BROKEN, FIXED.replace("total = 0", "total  =  0  # nothing yet"))
    found = near_duplicates([ORIGINAL, copy])
    assert found.keys() == {"original", "copy"}
    assert (found["copy"][0].kind, found["copy"][0].facet, found["copy"][0].other) == ("exact", "code", "original")
    assert "def invoice_total ( lines , crates )" in found["copy"][0].span


def test_a_renamed_copy_is_the_same_work() -> None:
    """Other names and another statement do not hide that code and change are the same."""
    copy = make("copy", "Something else is asked in quite different words here.", renamed(BROKEN), renamed(FIXED))
    assert kinds(near_duplicates([ORIGINAL, copy])["copy"]) == {("renamed", "change")}


def test_an_edited_copy_is_the_same_work() -> None:
    """A reworded statement about slightly edited code is a near copy, with its score."""
    statement = STATEMENT.replace("Customers who", "Buyers that").replace("promised", "granted")
    broken, fixed = (code.replace("    return total", "    total += 0\n    return total") for code in (BROKEN, FIXED))
    (match,) = near_duplicates([ORIGINAL, make("copy", statement, broken, fixed)])["copy"]
    assert match.kind == "near"
    assert 0.6 <= match.score < 1


def test_another_bug_in_the_same_function_is_other_work_but_related() -> None:
    """Two bugs of one function with statements of their own are no copies, and still belong into one split."""
    other = make("other", "Rounding of totals loses cents.", FIXED.replace("0.95, 2", "0.95"), FIXED)
    found = survey([ORIGINAL, other])
    assert found.duplicates == {}
    assert found.clusters == [["original", "other"]]


def test_unlike_tasks_are_not_matched() -> None:
    """Tasks that share neither words nor code are left alone."""
    other = make(
        "other",
        "Dates before the year 1970 are shown one day late in every export that the archive writes at night.",
        "def show(day):\n    return day.isoformat()[1:]\n",
        "def show(day):\n    return day.isoformat()\n",
    )
    found = survey([ORIGINAL, other], [replace(other, id="guarded", instruction="x", files={}, solution={})])
    assert (found.duplicates, found.clusters) == ({}, [])
    assert found.contaminated.keys() == {"other"}  # by its tests


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        (replace(ORIGINAL, id="a", solution={}, files={}), ("exact", "instruction")),
        (make("a", "Do it.", BROKEN, FIXED), ("exact", "code")),
        (make("a", "Do it.", renamed(BROKEN), renamed(FIXED)), ("renamed", "change")),
        (make("a", QUOTING, "x = 1\n", "x = 2\n"), ("overlap", "instruction")),
        (make("a", "Do it.", "x = 1\n", "x = 2\n", tests=TESTS), ("exact", "tests")),
        (make("a", "Do it.", "x = 1\n", "x = 2\n", provenance={"repo": URL}), ("repository", "provenance")),
    ],
    ids=["statement", "code", "renamed", "quoted", "tests", "repository"],
)
def test_each_way_of_giving_a_protected_task_away(task: Task, wanted: tuple[str, str]) -> None:
    """Statement, code, renamed code, a quoted passage, tests and repository each are enough, and each is named."""
    protected = replace(ORIGINAL, id="guarded", provenance={"repository": "some/thing"})
    found = contamination([task], [protected])
    assert (found["a"][0].kind, found["a"][0].facet, found["a"][0].other) == (*wanted, "guarded")


def test_the_overlapping_words_are_shown() -> None:
    """The span of an overlap is the passage itself, from its first word to its last."""
    quote = " ".join(STATEMENT.split()[3:22])
    task = make("a", f"Before it other words stand. {quote} And after it as well.", "x = 1\n", "x = 2\n")
    (match,) = contamination([task], [ORIGINAL])["a"]
    assert match.span == quote.lower().replace(".", "")


def test_a_common_template_is_no_likeness() -> None:
    """Sentences that tasks of a source share make no two of them alike; where there are too few to tell, they do."""
    template = "Repair the function so that all of its tests pass, and change nothing else in the file that holds it. "
    bodies = [f"def f{at}(a):\n    return a * {at} + {at * 7} - len(str(a)) // {at + 2}\n" for at in range(30)]
    tasks = [
        make(
            f"t{at}",
            f"{template}The value number {at} is off.",
            body,
            body.replace("+", "-"),
            provenance={"source": "x"},
        )
        for at, body in enumerate(bodies)
    ]
    assert survey(tasks).clusters == []
    assert contamination(tasks[:15], tasks[15:]) == {}
    strangers = [replace(task, provenance={"source": "y"}) for task in tasks[:1]]
    assert contamination(strangers, tasks[15:18]).keys() == {"t0"}


FOOTER = "For one input with its right result see the folder of examples and then run the program check to compare. "
SCAFFOLD = """\
def tidy(folder):
    before = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            before[os.path.relpath(path, folder)] = open(path).read()
"""


def little(name: str, generator: str, *lines: str) -> Task:
    """A task of a generator with its footer and scaffold, and some words and code of its own."""
    said = " ".join(f"{name}{at}" for at in range(60))
    rng = random.Random(name)
    calls = ("pop", "get", "keys", "items", "copy", "clear", "update", "values")
    rules = "".join(
        f"    {name}_{at} = before.{rng.choice(calls)}({rng.random()}) {rng.choice('+-*/%')} {at}\n" for at in range(16)
    )
    footer = " ".join([*lines, FOOTER])
    return make(name, f"{said}. {footer}", f"{SCAFFOLD}", f"{SCAFFOLD}{rules}", provenance={"generator": generator})


def test_a_footer_of_few_tasks_is_no_leak() -> None:
    """A sentence or scaffold that small groups of one family of generators share does not contaminate; what only the
    task and a protected one say does, also within the family."""
    mine = [little("ant", "scripts/tidy"), little("bee", "scripts/tidy")]
    guarded = [little("cat", "scripts/collect"), little("dog", "scripts/collect")]
    assert contamination(mine, guarded) == {}
    assert contamination(mine[:1], guarded[:1]) == {}
    passage = " ".join(f"said{at}" for at in range(30))
    found = contamination(
        [*mine, little("eel", "scripts/tidy", passage)], [*guarded, little("fox", "scripts/x", passage)]
    )
    assert found.keys() == {"eel"}
    assert (found["eel"][0].kind, found["eel"][0].facet) == ("overlap", "instruction")


def test_a_short_phrase_among_strangers_is_no_leak() -> None:
    """Thirteen equal words of a long statement are chance; a passage of twice that is not."""
    phrase = " ".join(f"said{at}" for at in range(14))
    longer = " ".join(f"said{at}" for at in range(26))
    for words, caught in ((phrase, False), (longer, True)):
        one, other = (f"{' '.join(f'{x}{at}' for at in range(240))} {words}" for x in "ab")
        task, guarded = make("a", one, "x = 1\n", "x = 2\n"), make("b", other, "y = 1\n", "y = 3\n")
        assert bool(contamination([task], [guarded])) == caught


def test_a_template_does_not_hide_copies() -> None:
    """In a source with a template, the one planted copy is found, and no other."""
    tasks = [
        task
        for task in generate_family(FamilySpec(train=60, validation=0, test=0))
        if task.provenance["layout"] == "pair"
    ]
    copy = replace(tasks[0], id="copy")
    found = near_duplicates([*tasks, copy])
    assert found["copy"][0].other == tasks[0].id
    clusters = survey(tasks).clusters
    assert max(map(len, clusters), default=0) < len(tasks) / 3


@pytest.mark.skipif(not DATA.exists(), reason="the shared task data is not here")
def test_an_imported_set_does_not_collapse() -> None:
    """82 tasks written from one template are 82 tasks; each is found in a protected copy of the set."""
    tasks = list(read_rows(DATA)[0])
    found = survey(tasks, [replace(task, id=f"guarded-{task.id}") for task in tasks])
    assert (found.duplicates, found.clusters) == ({}, [])
    assert {name: matches[0].other for name, matches in found.contaminated.items()} == {
        task.id: f"guarded-{task.id}" for task in tasks
    }
    assert contamination(tasks[:41], tasks[41:]) == {}


def test_what_cannot_be_read_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    """A broken task directory is named with its reason and does not keep copies among the others from being found."""
    for name in ("a", "b", "c"):
        save_task(replace(ORIGINAL, id=name), tmp_path / name)
    (tmp_path / "b" / "task.toml").write_text("no toml")
    (tmp_path / ".practicum").mkdir()
    folders = TaskFolders(tmp_path)
    found = survey(folders)
    assert [folders.folder(at).name for at in found.refused] == ["b"]
    assert found.duplicate_clusters == [["a", "c"]]
    with pytest.raises(TaskError, match="not valid TOML"):
        near_duplicates(folders)


def test_an_id_cannot_occur_twice() -> None:
    """Two tasks with one id could not be told apart in the result, so they are refused by name."""
    with pytest.raises(TaskError, match="'original' occurs twice"):
        near_duplicates([ORIGINAL, ORIGINAL])
