"""Examples of an instruction, held against the gold.

Owns: `Example`, `examples_of`, `contradicted`.
Invariant: only a call of a function of the workspace with constants, said to give a constant, is an example; what the
untouched workspace gives as well shows what is wrong there, and is no promise. Code runs in a box of its own.
Must not know: what becomes of the task.
"""

from __future__ import annotations

import ast
import json
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from practicum.curation.gates.testcode import parsed
from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.sandboxes.contract import BoxSpec, SandboxProvider

_DOCTEST = re.compile(r"^[ \t]*>>>[ \t]*(?P<call>\w[^\n]*)\n[ \t]*(?P<value>(?!>>>)\S[^\n]*)$", re.MULTILINE)
_SAID = re.compile(
    r"`?(?P<call>\b[A-Za-z_]\w*\([^`\n]*?\))`?\s*(?:must\s+|should\s+|shall\s+)?(?:be|returns?|gives?|is|==|→|->|=>)\s*"
    r"(?:`(?P<quoted>[^`\n]+)`|(?P<plain>-?\d+(?:\.\d+)?|True|False|None|'[^'\n]*'|\"[^\"\n]*\"|\[[^\]\n]*\]))"
)
_MOST = 20
_SECONDS = 10.0
_PROGRAM = """
import importlib, json, signal, sys
sys.path[:0] = [".", "src"]
signal.alarm(8)
import ast
said = []
for example in json.loads(sys.stdin.read()):
    try:
        call = ast.parse(example["call"], mode="eval").body
        function = getattr(importlib.import_module(example["module"]), call.func.id)
        given = [ast.literal_eval(item) for item in call.args]
        named = {item.arg: ast.literal_eval(item.value) for item in call.keywords}
        got = function(*given, **named)
        said.append("same" if got == ast.literal_eval(example["value"]) else repr(got)[:200])
    except Exception:
        said.append(None)
sys.stdout.write(chr(10) + json.dumps(said) + chr(10))
"""


@dataclass(frozen=True, slots=True)
class Example:
    """`call`, of a function that `module` defines, is said to give `value`."""

    module: str
    call: str
    value: str


def examples_of(instruction: str, files: Tree) -> list[Example]:
    """The examples of `instruction` that speak of functions of `files`, each function known by one module only."""
    said = {(call, value): name for call, value in _pairs(instruction) if (name := _constant_call(call)) is not None}
    homes = {name: _homes(name, files) for name in said.values()}
    found = [
        Example(next(iter(homes[name])), call, value)
        for (call, value), name in said.items()
        if len(homes[name]) == 1 and _is_constant(value)
    ]
    return found[:_MOST]


def _homes(name: str, files: Tree) -> set[str]:
    """The modules that define a function `name`."""
    found = set[str]()
    for path, file in files.items():
        if path.endswith(".py") and name.encode() in file.data:  # reading all of a workspace takes long
            tree = parsed(file.data)
            body = tree.body if tree is not None else []
            if any(isinstance(node, ast.FunctionDef) and node.name == name for node in body):
                found.add(path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    return found


async def contradicted(provider: SandboxProvider, task: Task, gold: Tree, examples: Sequence[Example]) -> list[str]:
    """What the gold gives otherwise than is said, in words; raises what a box raises."""
    after = await _told(provider, task, gold, examples)
    if all(told in (None, "same") for told in after):
        return []
    before = await _told(provider, task, task.files, examples)
    return [
        f"{example.call} is said to be {example.value}, and the gold gives {now}"
        for example, was, now in zip(examples, before, after, strict=True)
        if now not in (None, "same") and was != "same"
    ]


async def _told(provider: SandboxProvider, task: Task, files: Tree, examples: Sequence[Example]) -> list[str | None]:
    """For each example `same`, or what came instead; None where nothing came."""
    spec = BoxSpec(f"gate-{uuid.uuid4().hex[:12]}", task.layer, workdir=task.workspace, files=files, limits=task.limits)
    asked = json.dumps([asdict(example) for example in examples]).encode()
    async with provider.create(spec) as box:
        done = await box.run(["python3", "-c", _PROGRAM], timeout_s=_SECONDS, stdin=asked)
    try:
        told = json.loads(done.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2])
    except ValueError:
        told = None
    fits = isinstance(told, list) and len(told) == len(examples)
    return [each if isinstance(each, str) else None for each in told] if fits else [None] * len(examples)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for found in _DOCTEST.finditer(text):
        yield found["call"].strip(), found["value"].strip()
    for found in _SAID.finditer(text):
        yield found["call"], (found["quoted"] or found["plain"]).strip()


def _constant_call(text: str) -> str | None:
    """The name of the function that is called with constants, or None."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    plain = all(keyword.arg for keyword in node.keywords) and all(_is_constant(ast.unparse(arg)) for arg in arguments)
    return node.func.id if plain else None


def _is_constant(text: str) -> bool:
    """Whether `text` is a value that is written down; `...` is none, it stands for one that is left out."""
    try:
        ast.literal_eval(text)
        node = ast.parse(text.strip(), mode="eval")
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return not any(isinstance(each, ast.Constant) and each.value is ... for each in ast.walk(node))
