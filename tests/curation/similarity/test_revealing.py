"""Tasks whose files show what another task asks for: found, directed, and bounded."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from practicum.curation.similarity import contamination, near_duplicates, survey
from practicum.curation.similarity.matches import Rules
from practicum.curation.similarity.revealing import revelations
from practicum.records.task import Task, Verification
from practicum.records.tree import File

JOIN = """\
def natural_list(items):
    if len(items) == 1:
        return str(items[0])
    if len(items) == 2:
        return f"{items[0]} and {items[1]}"
    return ", ".join(str(item) for item in items[:-1]) + f" and {items[-1]}"
"""
STUB = "def natural_list(items):\n    raise NotImplementedError\n"
OTHER = "def clamp(value, least, most):\n    return max(least, min(value, most))\n"


def task(name: str, before: dict[str, str], after: dict[str, str], **changes: object) -> Task:
    rng = random.Random(name)
    tests = f"def test_it():\n    assert {rng.random()} != {[rng.random() for _ in range(20)]}\n"
    made = Task(
        id=name,
        instruction=" ".join(f"w{rng.randrange(10**6)}" for _ in range(30)),
        files={path: File(text.encode()) for path, text in before.items()},
        verification=Verification(
            "pytest", {"test_it.py": File(tests.encode())}, ("test_it.py",), fail_to_pass=("test_it.py::test_it",)
        ),
        solution={path: File(text.encode()) for path, text in after.items()},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


IMPLEMENT = task("implement", {"text.py": STUB}, {"text.py": JOIN})
WRITE_TESTS = task(
    "write-tests", {"text.py": f"import os\n\n\n{OTHER}\n\n{JOIN}"}, {"test_text.py": "import text\n" * 9}
)


def shown(*tasks: Task) -> set[tuple[str, str]]:
    found = survey(tasks, spans=False).reveals
    return {(name, match.other) for name, matches in found.items() for match in matches}


def test_code_beside_a_task_without_it_gives_the_gold_away() -> None:
    """A task that shows the function which another asks for gives it away, not the other way, and both are one unit."""
    found = survey([IMPLEMENT, WRITE_TESTS])
    assert shown(IMPLEMENT, WRITE_TESTS) == {("write-tests", "implement")}
    (match,) = found.reveals["write-tests"]
    assert (match.kind, match.facet, match.score) == ("reveals", "gold", 1.0)
    assert found.clusters == [["implement", "write-tests"]]
    assert near_duplicates([IMPLEMENT, WRITE_TESTS]) == {}


def test_a_later_state_gives_earlier_changes_away() -> None:
    """Of commits in a row, each later task shows the changes of the earlier ones, however else the file has grown."""
    states = ["LIMIT = 1\n"]
    for at in range(4):
        states.append(f"{states[-1]}\n\ndef step_{at}(a, b):\n    return a * {at + 3} + b - {at * 7}\n")
    tasks = [task(f"c{at}", {"m.py": states[at]}, {"m.py": states[at + 1]}) for at in range(4)]
    assert shown(*tasks) == {(f"c{late}", f"c{early}") for late in range(4) for early in range(late)}


def test_layout_and_comments_do_not_hide_it() -> None:
    """Other blanks and comments are the same code."""
    laid_out = JOIN.replace("    ", "\t").replace("\n", "  # said otherwise\n")
    assert shown(IMPLEMENT, replace(WRITE_TESTS, files={"a.py": File(laid_out.encode())})) == {
        ("write-tests", "implement")
    }


def test_what_is_given_anyway_gives_nothing_away() -> None:
    """Code that stands in the task's own files, here under another path, is no secret; half of a gold is needed."""
    given_anyway = replace(IMPLEMENT, files={**IMPLEMENT.files, "copy.py": File(JOIN.encode())})
    assert shown(given_anyway, WRITE_TESTS) == set()
    first_lines = "\n".join(JOIN.splitlines()[:3])
    assert shown(IMPLEMENT, replace(WRITE_TESTS, files={"a.py": File(first_lines.encode())})) == set()


def test_deep_in_a_large_file_is_seen() -> None:
    """A file of far more tokens than are compared elsewhere is read to its end."""
    long = "".join(f"VALUE_{at} = [{at}, {at}]\n" for at in range(6000))
    assert shown(IMPLEMENT, replace(WRITE_TESTS, files={"a.py": File(f"{long}{JOIN}".encode())})) == {
        ("write-tests", "implement")
    }


def test_a_protected_gold_in_the_files_contaminates() -> None:
    """A task that shows a protected gold has to go; a protected task that shows the gold of another does no harm."""
    found = contamination([WRITE_TESTS], [IMPLEMENT])
    assert [(match.kind, match.other) for match in found["write-tests"]] == [("reveals", "implement")]
    assert contamination([IMPLEMENT], [WRITE_TESTS]) == {}


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 5))), min_size=1, max_size=8))
def test_it_is_what_comparing_each_pair_finds(plan: list[tuple[int, set[int]]]) -> None:
    """Through one table the same is found as by looking at each pair of tasks."""
    bodies = [f"def f{at}(a, b):\n    return [a + {at}, b * {at + 9}, a - b, {at} % (a or 1)]\n" for at in range(6)]
    tasks = [
        task(f"t{n}", {f"p{at}.py": bodies[at] for at in sorted(shows)}, {"new.py": bodies[asks]})
        for n, (asks, shows) in enumerate(plan)
    ]
    found = {(one.shows, one.gold) for one in revelations(tasks.__getitem__, len(tasks), len(tasks), Rules())}
    assert found == {
        (i, j)
        for i, (_, shows) in enumerate(plan)
        for j, (asks, own) in enumerate(plan)
        if i != j and asks in shows and asks not in own
    }
