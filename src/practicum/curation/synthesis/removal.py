"""Features taken out: a function reduced to its signature and docstring, to be written again.

Owns: `FeatureRemoval`.
Invariant: all that goes is one body, comments in it included; tests that ran it fail afterwards. The instruction is
made of signature, docstring and what the tests ask for, and holds no line of the body.
Must not know: how candidates are scheduled.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from practicum.curation.projects.project import Project
from practicum.curation.synthesis.examples import example_of
from practicum.curation.synthesis.instruction import rules
from practicum.curation.synthesis.leaks import gives_away, repaired_lines
from practicum.curation.synthesis.strategy import Bench, Candidate, Ground, Refusal, Trial
from practicum.curation.synthesis.wording import function_of, purpose_of
from practicum.records.task import Task
from practicum.verification.redteam.variants import named_functions, parse

NAME = "feature-removal"
_LEAST_LINES = 3  # of a body that is worth writing
_HOLLOW = frozenset({"overload", "abstractmethod"})
_SHOWN, _EXAMPLES = 8, 3
_OPENINGS = (
    "The body of {what} in `{path}` got lost; calling it raises `NotImplementedError`. Write it anew.",
    "{What} (`{path}`) is only a signature. Implement it.",
    "In `{path}`, {what} is still to be written: so far it raises `NotImplementedError`.",
)


@dataclass(frozen=True, slots=True)
class FeatureRemoval:
    """One function or method without its body."""

    name: str = NAME
    version: str = "3"

    def candidates(self, ground: Ground, rng: random.Random) -> Iterator[Candidate]:
        """Each covered function once; files take turns."""
        left = {path: list(_removable(ground, path)) for path in ground.project.sources}
        for found in left.values():
            rng.shuffle(found)
        while any(left.values()):
            for path in sorted(left):
                if left[path]:
                    yield left[path].pop()

    async def realise(self, bench: Bench, candidate: Candidate) -> Task | Refusal:
        """The task to write the function again."""
        project, name = bench.ground.project, str(candidate.provenance["function"])
        node = dict(named_functions(parse(project.text(str(candidate.provenance["path"])))))[name]
        if not _told(node, bench.ground.baseline.reaching(candidate.reach), project):  # nor will those that fail
            return Refusal("nothing says what it should do", name)
        return await bench.repair(
            candidate, lambda trial, visible: _instruction(bench, candidate, trial, visible), domain="feature"
        )


def _removable(ground: Ground, path: str) -> Iterator[Candidate]:
    data = ground.project.files[path].data
    covered = ground.baseline.reach.get(path, {})
    try:
        tree = parse(data.decode())
    except (SyntaxError, ValueError, RecursionError):
        return
    functions = list(named_functions(tree))
    for name, node in functions:
        body = _body(node)
        hollow = any(_last_name(decorator) in _HOLLOW for decorator in node.decorator_list)
        twice = sum(other == name for other, _ in functions) > 1
        if hollow or twice or body is None or len(body) < _LEAST_LINES:
            continue
        if not any(covered.get(line) for line in body):
            continue
        changed = _without(data, node, body)
        if changed is not None:
            provenance = {
                "strategy_version": FeatureRemoval().version,
                "path": path,
                "function": name,
                "line": node.lineno,
            }
            yield Candidate(NAME, NAME, {path: changed}, {path: frozenset(body)}, provenance)


def _body(node: ast.FunctionDef) -> range | None:
    """The lines of the body behind the docstring, comments above its first statement included."""
    head = node.body[0]
    start = head.lineno
    if ast.get_docstring(node, clean=False) is not None:
        if len(node.body) == 1:
            return None
        start = (head.end_lineno or head.lineno) + 1
        if node.body[1].lineno < start:
            return None
    elif start == node.lineno:
        return None
    return range(start, (node.end_lineno or node.lineno) + 1)


def _without(data: bytes, node: ast.FunctionDef, body: range) -> bytes | None:
    """The file with `raise NotImplementedError` in place of the lines `body`; None where that is no Python."""
    lines = data.splitlines(keepends=True)
    first = next(statement for statement in node.body if statement.lineno >= body.start)
    end = b"\r\n" if lines[body.start - 1].endswith(b"\r\n") else b"\n"
    lines[body.start - 1 : body.stop - 1] = [b" " * first.col_offset + b"raise NotImplementedError" + end]
    changed = b"".join(lines)
    try:
        parse(changed.decode())
    except (SyntaxError, ValueError):
        return None
    return changed


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _uses(test: str, name: str, project: Project) -> bool:
    """Whether a test names the function itself."""
    function = function_of(test, project.tests)
    return function is not None and any(
        name in (getattr(part, "id", None), getattr(part, "attr", None)) for part in ast.walk(function)
    )


def _told(node: ast.FunctionDef, tests: Sequence[str], project: Project) -> bool:
    """Whether its docstring says what it should do, or `tests` that name it and others that stand for themselves."""
    if ast.get_docstring(node):
        return True
    direct = any(_uses(each, node.name, project) for each in tests)
    return direct and any(example_of(each, project.tests) is not None for each in tests)


def _signature(node: ast.FunctionDef) -> str:
    """The line that it begins with, annotations included."""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"def {node.name}({ast.unparse(node.args)}){returns}:"


def _instruction(bench: Bench, candidate: Candidate, trial: Trial, visible: Sequence[str]) -> str | Refusal:
    project = bench.ground.project
    path, name = str(candidate.provenance["path"]), str(candidate.provenance["function"])
    node = dict(named_functions(parse(project.text(path))))[name]
    runs = repaired_lines(candidate.changes, project.files)
    direct = [each for each in sorted(trial.messages) if _uses(each, node.name, project)]
    failing = [*direct, *(each for each in sorted(trial.messages) if each not in direct)]
    examples = list(dict.fromkeys(text for each in failing if (text := example_of(each, project.tests)) is not None))
    if not _told(node, failing, project):
        return Refusal("nothing says what it should do", name, killed=True)
    rng = random.Random(f"removal-{candidate.key}-{bench.settings.seed}")
    what = f"`{name}`"
    head = rng.choice(_OPENINGS).format(what=what, What=what, path=path)
    purposes = list(dict.fromkeys(purpose_of(each, project.tests) for each in failing))
    for shown in range(_EXAMPLES, -1, -1):
        lines = [head, "", "```python", _signature(node), "```"]
        if documented := ast.get_docstring(node):
            lines += ["", "Its docstring:", "", *(f"> {line}".rstrip() for line in documented.splitlines())]
        lines += ["", "Tests that ask for it are about:", "", *(f"- {purpose}" for purpose in purposes[:_SHOWN])]
        if examples[:shown]:
            lines += ["", "Among other things, this is to run without an error:", ""]
            lines += [line for text in examples[:shown] for line in ("```python", text, "```", "")]
        lines += ["", *rules(project, visible, len(failing), anew=True)]
        text = "\n".join(lines) + "\n"
        if gives_away(text, runs) is None:
            return text
    return Refusal("its instruction would give the answer away", killed=True)
