"""The instruction of a bug: what fails, in words, and nothing about where or why.

Owns: `bug_report`.
Invariant: made of what failing tests say; a line of the gold, or the name of the changed function unless the tests
themselves use it, never stands in it. The same candidate and failures give the same text.
Must not know: which mutators there are.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterable, Sequence

from practicum.curation.projects.project import Project
from practicum.curation.synthesis.examples import example_of
from practicum.curation.synthesis.leaks import gives_away, repaired_lines
from practicum.curation.synthesis.strategy import Candidate, Ground, Refusal, Settings, Trial
from practicum.curation.synthesis.wording import (
    error_of,
    function_of,
    purpose_of,
    symptom_of,
    wanted_errors,
)
from practicum.records.tree import Tree

_SHOWN = 3
_TRIVIAL = frozenset({"NameError", "UnboundLocalError", "SyntaxError", "IndentationError"})
_OPENINGS = (
    "Users of `{name}` report that some of its behaviour is wrong.",
    "Since a recent change, `{name}` no longer behaves as it should.",
    "`{name}` has a defect.",
    "Part of `{name}` does not do what its tests ask for.",
)
_SEEN = ("What was seen:", "Observed:", "This is what goes wrong:", "Symptoms:")
_ASKS = (
    "Find the cause and repair it.",
    "Track down what causes this, and fix it.",
    "Work out why, and put it right.",
)


def bug_report(
    ground: Ground, candidate: Candidate, trial: Trial, visible: Sequence[str], settings: Settings
) -> str | Refusal:
    """The instruction, or why there can be none that gives nothing away."""
    project = ground.project
    if trial.messages and all(error_of(message) in _TRIVIAL for message in trial.messages.values()):
        return Refusal("breaks by a missing name", killed=True)
    runs = repaired_lines(candidate.changes, project.files)
    rng = random.Random(f"instruction-{candidate.key}-{settings.seed}")
    plan = rng.random(), rng.random()  # drawn once, so that all attempts share them
    for example, values in ((plan[0] < 0.6, True), (False, True), (False, False)):
        text = _write(project, candidate, trial, visible, random.Random(plan[1]), example=example, values=values)
        if gives_away(text, runs) is None:
            return text
    return Refusal("its instruction would give the answer away", killed=True)


def _write(
    project: Project,
    candidate: Candidate,
    trial: Trial,
    visible: Sequence[str],
    rng: random.Random,
    *,
    example: bool,
    values: bool,
) -> str:
    failing = sorted(trial.messages)
    shown = _chosen(failing, trial, project.tests)
    secrets = _secrets(project, candidate, failing)
    lines = [rng.choice(_OPENINGS).format(name=project.name), "", rng.choice(_SEEN), ""]
    for name in shown:
        lines += _symptom(purpose_of(name, project.tests), trial.messages[name] if values else "", secrets)
    others = list(dict.fromkeys(purpose_of(name, project.tests) for name in failing if name not in shown))
    if others:
        listed = "; ".join(others[:8])
        more = f"; and {len(others) - 8} more" if len(others) > 8 else ""
        lines += ["", f"Also affected: {listed}{more}."]
    code = next((text for name in shown if (text := example_of(name, project.tests)) is not None), None)
    if example and code is not None:
        lines += ["", "For example, this should run without an error:", "", "```python", code, "```"]
    if errors := _errors(failing, project):
        lines += ["", "Expected errors:", "", *errors]
    lines += ["", rng.choice(_ASKS), "", *rules(project, visible, len(failing))]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def rules(project: Project, visible: Sequence[str], failing: int, *, anew: bool = False) -> list[str]:
    """What may be edited, what decides, and how to run the tests that can be seen: lines of text.

    `anew` where something is to be written and not repaired.
    """
    wanted = (
        "Write what is right in general, not only"
        if anew
        else "Make the smallest change that is right in general, not one"
    )
    places = ", ".join(f"`{pattern}`" for pattern in project.editable)
    lines = [
        f"You may change {places}; changes elsewhere are not taken over. Hidden tests decide: "
        f"{'the one that fails' if failing == 1 else f'all {failing} that fail'} now must pass, and what works must go "
        f"on working. {wanted} for these examples."
    ]
    if visible:
        paths = ":".join(root or "." for root in project.roots)
        command = f"PYTHONPATH={paths} python -m pytest {' '.join(visible)}"
        lines += ["", f"Some of the tests that fail are in the workspace; run them with `{command}`."]
    else:
        lines += ["", "The tests are not in the workspace; write and run checks of your own."]
    return lines


def _chosen(failing: Sequence[str], trial: Trial, tests: Tree) -> list[str]:
    """The failures to tell: of different tests, those that compare values first."""

    def rank(name: str) -> tuple[bool, str]:
        message = trial.messages[name]
        return error_of(message) != "AssertionError" or len(message) < 12, name

    by_purpose: dict[str, str] = {}
    for name in sorted(failing, key=rank):
        by_purpose.setdefault(purpose_of(name.partition("[")[0], tests), name)
    return list(by_purpose.values())[:_SHOWN]


def _symptom(purpose: str, message: str, secrets: Iterable[str]) -> list[str]:
    text = symptom_of(message)
    if any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in secrets):
        text = f"ends with {_article(error_of(message))}"
    head = f"- {purpose}"
    if not text:
        return [head]
    if "\n" in text:
        return [f"{head}:", "", *("  " + line for line in ("```", *text.splitlines(), "```")), ""]
    return [f"{head}: {text}" if text.startswith("ends with") else f"{head}: `{text.replace('`', chr(39))}`"]


def _article(error: str) -> str:
    return f"{'an' if error[:1] in 'AEIOU' else 'a'} `{error}`"


def _secrets(project: Project, candidate: Candidate, failing: Sequence[str]) -> set[str]:
    """Names that tell the place, and that the failing tests do not use themselves."""
    words: set[str] = set()
    for bug in candidate.provenance.get("bugs", ()):
        path = str(bug["path"])
        words |= {path, path.rpartition("/")[2], *str(bug["function"]).split(".")[-1:]}
    used: set[str] = set()
    for name in failing:
        function = function_of(name, project.tests)
        if function is not None:
            used |= _identifiers(function)
    return {word for word in words if word and word not in used}


def _identifiers(node: ast.AST) -> set[str]:
    found = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return found | {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}


def _errors(failing: Sequence[str], project: Project) -> list[str]:
    """Errors that the failing tests ask for with a message, which nobody could guess."""
    wanted = {pair: None for name in failing for pair in wanted_errors(name, project.tests) if pair[1]}
    return [f"- `{kind}` with a message that matches `{pattern}`" for kind, pattern in list(wanted)[:10]]
