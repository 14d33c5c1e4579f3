"""Makes tasks of the catalogue's functions by seed, and splits them by function.

Owns: inputs, cases, wording, the split.
Invariant: same spec, same tasks; no function occurs in two splits, in whatever form or under another name; a wrong body
fails some case.
Must not know: disks, boxes, policies.
"""

from __future__ import annotations

import ast
import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any, Literal

from practicum.errors import ConfigError
from practicum.records.task import MIB, Limits, PlainCheck, Task, Verification
from practicum.records.tree import File
from practicum.tasks.functions.catalogue import CATALOGUE, Function

FILE = "solution.py"
Kind = Literal["write", "repair"]
KINDS: tuple[Kind, ...] = ("write", "repair")
_LIMITS = Limits(
    memory_bytes=256 * MIB, pids=32, disk_bytes=16 * MIB, output_bytes=16 * 1024, command_s=5.0, episode_s=60.0
)
_CASES = 10
_APPROX = 1e-9
_DRAWS = 200
_WORDS = ("tea", "Apple", "river", "sun", "Moon", "stone", "level", "noon", "bird", "x", "green", "Otto", "lamp")
_SOLVE = 'cp "$(dirname "$0")/solution.py" solution.py\n'
_WRITE = """\
Write the Python function `{name}({parameters})`, which {does}. Answer with one Python code block that holds the whole \
function.
"""
_REPAIR = """\
The Python function `{name}({parameters})` {does}, but this one has a bug:

```python
{wrong}```

Answer with one Python code block that holds the repaired function.
"""


@dataclass(frozen=True, slots=True)
class FunctionsSpec:
    """How many functions are held out for `validation` and `test`; of the others, the `train` shortest tasks."""

    seed: int = 0
    train: int = 240
    validation: int = 16
    test: int = 48


def generate_functions(spec: FunctionsSpec) -> list[Task]:
    """Two tasks for each function, `write-NAME` and `repair-NAME`: the held-out functions', then those to train on.

    Raises `ConfigError` when more functions are asked for than there are.
    """
    rng = random.Random(f"functions-{spec.seed}")
    alike: dict[str, list[Function]] = {}
    for function in sorted(CATALOGUE, key=lambda function: function.name):
        alike.setdefault(work_of(function), []).append(function)
    order = list(alike.values())
    rng.shuffle(order)
    held_out = spec.validation + spec.test
    if held_out >= len(order) or min(spec.train, spec.validation, spec.test) < 1:
        raise ConfigError(
            f"{held_out} of {len(order)} functions cannot be held out", fix="ask for fewer in validation and test"
        )
    # A function of several names, such as the first of a list and of a word, is held out by one of them.
    splits = {
        "test": [names[0] for names in order[: spec.test]],
        "validation": [names[0] for names in order[spec.test : held_out]],
        "train": sorted((f for names in order[held_out:] for f in names), key=lambda function: len(function.right)),
    }
    chosen = [
        (split, list(islice(product(functions, KINDS), spec.train if split == "train" else None)))
        for split, functions in splits.items()
    ]
    return [
        replace(_task(function, kind, random.Random(f"{spec.seed}-{function.name}")), split=split)
        for split, tasks in chosen
        for function, kind in tasks
    ]


def work_of(function: Function) -> str:
    """The right body whatever it calls its parameters and variables: equal for functions that do the same. Pure."""
    names = [name.strip() for name in function.parameters.split(",")]
    tree = ast.parse(_source(function, function.right))
    names += [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    places = {name: f"v{place}" for place, name in enumerate(dict.fromkeys(names))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = places.get(node.id, node.id)
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    return "\n".join(ast.unparse(line) for line in definition.body)


def _task(function: Function, kind: Kind, rng: random.Random) -> Task:
    cases = _cases(function, rng)
    numbered = [{"id": f"case-{i}", **case} for i, case in enumerate(cases)]
    right, wrong = _source(function, function.right), _source(function, function.wrong)
    start = wrong if kind == "repair" else _source(function, "raise NotImplementedError")
    failing = _failing(function, cases) if kind == "repair" else set(range(len(cases)))
    ids = [case["id"] for case in numbered]
    text = (_REPAIR if kind == "repair" else _WRITE).format(
        name=function.name, parameters=function.parameters, does=function.does, wrong=wrong
    )
    lines = "".join(json.dumps(case) + "\n" for case in numbered)
    return Task(
        id=f"{kind}-{function.name.replace('_', '-')}",
        instruction=text,
        files={FILE: File(start.encode())},
        verification=Verification(
            runner="plain",
            tests={"cases.jsonl": File(lines.encode())},
            fail_to_pass=tuple(name for i, name in enumerate(ids) if i in failing),
            pass_to_pass=tuple(name for i, name in enumerate(ids) if i not in failing),
            plain=PlainCheck(f"solution:{function.name}", "cases.jsonl"),
            timeout_s=5.0,
        ),
        editable=(FILE,),
        limits=_LIMITS,
        solution={"solve.sh": File(_SOLVE.encode(), 0o755), FILE: File(right.encode())},
        domain="bug-fix" if kind == "repair" else "writing",
        provenance={"generator": "practicum functions", "license": "Apache-2.0", "topic": function.topic},
    )


def _source(function: Function, body: str) -> str:
    inner = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"def {function.name}({function.parameters}):\n{inner}"


def _cases(function: Function, rng: random.Random) -> list[dict[str, Any]]:
    """Distinct cases, as many as there are of up to ten, of which some fail with the wrong body."""
    right = _loaded(function, function.right)
    found: dict[str, dict[str, Any]] = {}
    telling: dict[str, dict[str, Any]] = {}
    wrong = _loaded(function, function.wrong)
    for _ in range(_DRAWS):
        args = _inputs(function.inputs, rng)
        case = {"args": args, "kwargs": {}, "expected": _outcome(right, args)}
        if isinstance(case["expected"], float):
            case["approx"] = _APPROX
        kind = found if _same(_outcome(wrong, args), case["expected"]) else telling
        if len(kind) < _CASES - 2:
            kind.setdefault(json.dumps(args), case)
        elif len(found) == len(telling):
            break
    cases = [*list(telling.values())[: _CASES - 2], *found.values()][:_CASES]
    if not telling:
        raise ValueError(f"{function.name}: no input shows that the wrong body is wrong")
    return cases


def _failing(function: Function, cases: list[dict[str, Any]]) -> set[int]:
    wrong = _loaded(function, function.wrong)
    return {i for i, case in enumerate(cases) if not _same(_outcome(wrong, case["args"]), case["expected"])}


def _loaded(function: Function, body: str) -> Callable[..., Any]:
    """A function of the catalogue, as code: trusted, written here, never a policy's."""
    space: dict[str, Any] = {}
    exec(compile(_source(function, body), "<catalogue>", "exec"), space)
    loaded: Callable[..., Any] = space[function.name]
    return loaded


def _same(one: Any, other: Any) -> bool:
    """As the judge compares: 3 and 3.0 are two answers, so are 1 and True; floats are worked out in several ways."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_APPROX, abs_tol=_APPROX)
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _outcome(function: Callable[..., Any], args: list[Any]) -> Any:
    try:
        return json.loads(json.dumps(function(*json.loads(json.dumps(args)))))
    except Exception as error:  # noqa: BLE001  a wrong body may raise anything, and that is its outcome
        return f"{type(error).__name__}: raised"


def outcomes(function: Function, body: str, *, draws: int) -> list[Any]:
    """What `body` returns at so many inputs of `function`, the same for every body."""
    rng, loaded = random.Random(function.inputs), _loaded(function, body)
    return [_outcome(loaded, _inputs(function.inputs, rng)) for _ in range(draws)]


def _inputs(kinds: str, rng: random.Random) -> list[Any]:
    args: list[Any] = []
    for kind in re.findall(r"[A-Za-z]\d?", kinds):
        args.append(_value(kind, args, rng))
    return args


def _value(kind: str, before: list[Any], rng: random.Random) -> Any:
    numbers = [rng.randint(-5, 9) for _ in range(rng.randint(1, 5))]
    words = [rng.choice(_WORDS) for _ in range(rng.randint(1, 4))]
    if kind == "s1":  # a part of the word before, or a letter that may not be there
        whole = before[-1]
        return rng.choice([whole[:2], whole[-2:], whole[0], whole[-1], rng.choice("aeo")])
    if kind == "c1":
        return rng.choice([*before[-1].lower(), rng.choice("aeo")])
    if kind == "k":
        return rng.choice([*before[-1], rng.choice(_WORDS)])
    makers: dict[str, Callable[[], Any]] = {
        "i": lambda: rng.randint(-12, 12),
        "i5": lambda: rng.choice(before[-1]) if before[-1] and rng.random() < 0.6 else rng.randint(-5, 9),
        "n": lambda: rng.randint(0, 40),
        "n6": lambda: rng.randint(0, 6),
        "p": lambda: rng.randint(1, 12),
        "s": lambda: rng.choice(_WORDS),
        "q": lambda: rng.choice(("level", "noon", "x", "abba", "river", "tea")),
        "x": lambda: rng.choice(("tea", "Tea", "TEA", "pot", "POT")),
        "t": lambda: " ".join(words),
        "h": lambda: "-".join(words),
        "z": lambda: rng.choice(("", " ", "  ")) + rng.choice(("", *_WORDS)) + rng.choice(("", " ", "  ")),
        "c": lambda: rng.choice("abeinouxt"),
        "y": lambda: "".join(rng.choice(rng.choice(("abkxyz", "0123456789"))) for _ in range(rng.randint(1, 4))),
        "j": lambda: str(rng.randint(0, 120)),
        "J": lambda: [str(number) for number in numbers],
        "a": lambda: [number > 0 for number in numbers],
        "g": lambda: [numbers[: rng.randint(0, 3)] for _ in range(rng.randint(1, 3))],
        "l": lambda: numbers if rng.random() < 0.9 else [],
        "L": lambda: numbers,
        "w": lambda: words,
        "b": lambda: rng.random() < 0.5,
        "d": lambda: {word: rng.randint(0, 9) for word in words},
    }
    return makers[kind]()
