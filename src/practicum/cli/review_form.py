"""The form, question by question, on a terminal or from a pipe.

Owns: `fill_in`, `Left`.
Invariant: nothing is recorded here; a form that is returned is whole, and leaving at any question returns none.
Must not know: where forms go.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from practicum.cli.review_page import file_text, gold_text, instruction_text, page, tests_text, wrapped
from practicum.curation.review import QUESTIONS, Form, form_problem
from practicum.pipeline.wording import visible

if TYPE_CHECKING:
    from practicum.curation.reviewqueue import Item
    from practicum.records.assessment import Assessment
    from practicum.records.task import Task

_YES_NO = {"y": True, "yes": True, "n": False, "no": False}
_LEVELS = {"1": 1, "2": 2, "3": 3}
_DECISIONS = {"a": "accept", "accept": "accept", "d": "defect", "defect": "defect", "s": "skip", "skip": "skip"}


class Left(Exception):
    """The reviewer wants to leave, or there is no more input."""


def fill_in(task: Task, item: Item, found: Assessment | None, place: str, help_text: str) -> Form:
    """Show `task` and ask until the form is whole. Raises `Left`."""
    shown = page(task, item, found, place)
    print(f"\n{shown}")
    print(wrapped("Read it through, then answer: i shows the instruction again, t the tests, g the gold, ? all keys."))
    steps: list[tuple[str, str, dict[str, Any]]] = [
        *((name, f"{text} [y/n]", _YES_NO) for name, text in QUESTIONS.items()),
        ("difficulty", "How difficult is it: 1 easy, 2 medium, 3 hard? [1/2/3]", _LEVELS),
        ("decision", "accept, defect or skip? [a/d/s]", _DECISIONS),
    ]
    answers: dict[str, Any] = {}
    at = 0
    while at < len(steps):
        name, text, allowed = steps[at]
        said = _line(f"{name}: {text} ")
        word = said.lower()
        if word in allowed:
            answers[name] = allowed[word]
            at += 1
        elif word in ("s", "skip"):
            return Form("skip")
        elif word == "b":
            at = max(0, at - 1)
        else:
            _aside(said, task, shown, help_text)
        if at == len(steps):
            problem = form_problem(Form(**answers, reason="to be asked"))
            if problem is None:
                return Form("skip") if answers["decision"] == "skip" else Form(**answers, reason=_reason(answers))
            print(wrapped(f"  {problem}"))
            at = len(steps) - 1
    raise AssertionError("the last step returns")


def _reason(answers: dict[str, Any]) -> str:
    needed = answers["decision"] == "defect"
    while True:
        said = _line(f"reason: why{'' if needed else ' (may be empty)'}? ", text=True)
        if said or not needed:
            return said


def _line(prompt: str, *, text: bool = False) -> str:
    """One line of input; leaves at its end, and at `q` where the answer is not free `text`."""
    try:
        said = input(wrapped(prompt)).strip()
    except EOFError:
        raise Left from None
    if not sys.stdin.isatty():  # nothing has shown it yet
        print(visible(said))
    if not text and said.lower() in ("q", "quit"):
        raise Left
    return said


def _aside(said: str, task: Task, shown: str, help_text: str) -> None:
    """What is neither an answer nor a way out: show something, or say what can be said."""
    command, _, rest = said.partition(" ")
    if command == "t":
        print(tests_text(task))
    elif command == "g":
        print(gold_text(task))
    elif command == "i":
        print(instruction_text(task))
    elif command == "p":
        print(shown)
    elif command == "w" and rest:
        print(file_text(task, rest.strip()))
    else:
        print(wrapped(help_text))
