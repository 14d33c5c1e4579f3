"""What a test is about, in words, and what its failure says.

Owns: `purpose_of`, `function_of`, `symptom_of`, `error_of`, `wanted_errors`.
Invariant: pure; nothing of the project is run or imported.
Must not know: what was changed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache

from practicum.curation.synthesis.cases import case_values
from practicum.records.tree import Tree
from practicum.verification.redteam.variants import parse

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b|(?<=\.\.\.)[0-9a-f]{4,}(?=>)")  # whole, or cut by pytest
_CLASS_WORDS = re.compile(r"^Tests?_?(?=\w)|_?Test(?:s|Case)?$")
_LEAD = re.compile(r"^tests? (?:that |for |if |whether )?(?=\w)", re.IGNORECASE)
_CASE_CHARS = 100
_MESSAGE_LINES, _MESSAGE_CHARS = 6, 400


@lru_cache(maxsize=256)
def _functions(data: bytes) -> Mapping[str, _Function]:
    """Functions and methods of a test file by their place, as in the id of a test."""
    try:
        tree = parse(data.decode())
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, _Function] = {}
    todo: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body]
    while todo:
        place, node = todo.pop()
        if isinstance(node, _Function):
            found[f"{place}{node.name}"] = node
        elif isinstance(node, ast.ClassDef):
            todo += [(f"{place}{node.name}::", inner) for inner in node.body]
    return found


def function_of(test: str, tests: Tree) -> _Function | None:
    """The source of the test with this id, where it stands in its own file."""
    path, _, rest = test.partition("::")
    file = tests.get(path)
    return _functions(file.data).get(rest.partition("[")[0]) if file is not None else None


def purpose_of(test: str, tests: Tree) -> str:
    """What the test is for, from its docstring, else from its name and that of its class."""
    _, _, place = test.partition("::")
    plain, _, case = place.partition("[")
    *classes, name = plain.split("::")
    words = _words(name)
    function = function_of(test, tests)
    documented = (ast.get_docstring(function) or "") if function is not None else ""
    first = " ".join(documented.partition("\n\n")[0].split())
    about = _LEAD.sub("", first).rstrip(".") if 0 < len(first) <= 140 else words
    context = _CLASS_WORDS.sub("", classes[-1]) if classes else ""
    text = f"{context}: {about}" if context and context.lower() not in about.lower() else about
    return f"{text} ({told})" if (told := _case(function, case.removesuffix("]"))) else text


def _case(function: _Function | None, case: str) -> str:
    """What sets this case of the test apart: its values where they are known, else its id where that says something."""
    values = case_values(function, case) if function is not None and case else None
    if values is not None:
        told = ", ".join(f"{name}={ast.unparse(value)}" for name, value in values.items())
        if len(told) <= _CASE_CHARS and "`" not in told and told.isprintable():
            return f"with `{told}`"
    if function is not None:  # pytest names what it cannot show by parameter and place
        parameters = "|".join(re.escape(arg.arg) for arg in function.args.args) or "(?!)"
        case = "-".join(part for part in case.split("-") if not re.fullmatch(rf"(?:{parameters})\d+", part))
    return f"case `{case}`" if case and len(case) <= 60 and "`" not in case and case.isprintable() else ""


def _words(name: str) -> str:
    return " ".join(part for part in name.removeprefix("test").split("_") if part) or "a basic check"


def symptom_of(message: str) -> str:
    """The message of a failure, short enough to be read."""
    lines = [line.rstrip() for line in message.strip().splitlines() if line.strip()]
    lines = [line for line in lines if "-vv" not in line and "Use -v" not in line]
    text = _ADDRESS.sub("…", "\n".join(lines[:_MESSAGE_LINES]))
    return text if len(text) <= _MESSAGE_CHARS else f"{text[:_MESSAGE_CHARS]}…"


def error_of(message: str) -> str:
    """The type of error that a message begins with; a bare `assert` is an AssertionError."""
    found = re.match(r"[A-Za-z_][\w.]*(?=$|:|\s*$)", message)
    word = found.group().rpartition(".")[2] if found else ""
    return word if word[:1].isupper() else "AssertionError"


def wanted_errors(test: str, tests: Tree) -> list[tuple[str, str]]:
    """Exceptions that the test asks for by type and message, as (type, pattern)."""
    function = function_of(test, tests)
    found: list[tuple[str, str]] = []
    for node in ast.walk(function) if function is not None else ():
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        if name not in ("raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "assertWarnsRegex"):
            continue
        patterns = [word.value for word in node.keywords if word.arg in ("match", "expected_regex")]
        patterns += node.args[1:2] if name.endswith("Regex") else []
        text = next((p.value for p in patterns if isinstance(p, ast.Constant) and isinstance(p.value, str)), "")
        found.append((ast.unparse(node.args[0]), text))
    return found
