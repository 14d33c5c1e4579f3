"""The forms of a task: how its work is shown, taken and judged.

Owns: `Made`, `plain`, `folder`, `needed`; `results` has the third form.
Invariant: hidden inputs and results are in no file that the agent's box holds, but for one example that is meant to be
seen. Fresh inputs are drawn after the submission is fixed: by its digest, so that a verdict can be had again.
Pure. Must not know: families, boxes.

plain: the judge calls a function of texts and compares elsewhere (runner `plain`), on frozen and on fresh cases.
folder: a frozen script (runner `command`) lays out a folder, calls the function on it, and reads the folder as data;
the last script draws its folders from the submission's own digest. The function runs in another process, which cannot
read the script. file: nothing of the submission runs at all; frozen scripts read the file of results as data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from practicum.curation.synthesis.generators.programs import Programs, Row
from practicum.curation.synthesis.generators.scripts import (
    CHECK_FOLDER,
    CHECK_PLAIN,
    FOLDER,
    FOLDER_CASE,
    FOLDER_FRESH,
    GENERATE,
)
from practicum.records.task import PlainCheck, Verification
from practicum.records.tree import File, Tree

CASES, FOLDERS = 14, 6  # hidden ones
FRESH = 6
TIMEOUT_S = 40.0  # a tenth of it is what one case may take


@dataclass(frozen=True, slots=True)
class Made:
    """What a form makes of programs and rows. `closings` are ways to say where the work goes."""

    files: Tree
    verification: Verification
    solution: Tree
    editable: tuple[str, ...]
    closings: tuple[str, ...]


def needed(form: str) -> int:
    """How many rows a form takes; the first is the example."""
    return 1 + (CASES if form == "plain" else FOLDERS if form == "folder" else 0)


def plain(programs: Programs, rows: Sequence[Row], parameters: Sequence[str], files: Mapping[str, str]) -> Made:
    """A function that returns data."""
    example, hidden = rows[0], rows[1:]
    ids = [f"case_{number:02d}" for number in range(1, len(hidden) + 1)]
    lines = [
        json.dumps({"id": name, "args": row.args, "expected": row.expected}, ensure_ascii=False)
        for name, row in zip(ids, hidden, strict=True)
    ]
    loads, shown = [], dict[str, File]()
    for name, value in zip(parameters, example.args, strict=True):
        if isinstance(value, dict):
            shown |= {f"example/{name}/{path}": text_file(text) for path, text in value.items()}
            loads.append(f'folder("example/{name}")')
        else:
            place = f"example/{files.get(name, f'{name}.csv')}"
            shown[place] = text_file(value)
            loads.append(f'text("{place}")')
    shown["example/expected.json"] = text_file(json.dumps(example.expected, indent=1, ensure_ascii=False) + "\n")
    module = programs.path.removesuffix(".py")
    check = text_file(CHECK_PLAIN.format(module=module, function=programs.function, loads=", ".join(loads)))
    tests = {
        "cases.jsonl": text_file("\n".join(lines) + "\n"),
        "generate.py": text_file(programs.reference + GENERATE.format(fresh=FRESH)),
        "check.py": check,
    }
    how = PlainCheck(f"{module}:{programs.function}", "cases.jsonl", "generate.py")
    verification = Verification(
        "plain", tests, visible=("check.py",), fail_to_pass=tuple(ids), plain=how, timeout_s=TIMEOUT_S
    )
    stub = f"def {programs.function}({', '.join(parameters)}):\n    raise NotImplementedError\n"
    return _program(programs, stub, "", shown | {"check.py": check}, verification)


def folder(programs: Programs, rows: Sequence[Row]) -> Made:
    """A function that changes the files of a folder."""
    example, hidden = rows[0], rows[1:]
    shown = {f"example/before/{path}": text_file(text) for path, text in example.args[0].items()}
    shown |= {f"example/after/{path}": text_file(text) for path, text in example.expected.items()}
    module = programs.path.removesuffix(".py")
    entry = f"{module}:{programs.function}"
    check = text_file(CHECK_FOLDER.format(module=module, function=programs.function))
    tests = {"check.py": check}
    names = [f"folder_{number}.py" for number in range(1, len(hidden) + 1)]
    for name, row in zip(names, hidden, strict=True):
        tests[name] = text_file(FOLDER_CASE.format(entry=entry, before=row.args[0], after=row.expected))
    tests["fresh.py"] = text_file(
        programs.reference + FOLDER_FRESH.format(entry=entry, path=programs.path, fresh=FRESH)
    )
    files = (*names, "fresh.py")
    verification = Verification(
        "command", tests, files=files, visible=("check.py",), fail_to_pass=files, timeout_s=TIMEOUT_S
    )
    stub = f"def {programs.function}(folder):\n    raise NotImplementedError\n"
    wrapper = FOLDER.format(function=programs.function)
    return _program(programs, stub, wrapper, shown | {"check.py": check}, verification)


def _program(programs: Programs, stub: str, wrapper: str, shown: Tree, verification: Verification) -> Made:
    path, name = programs.path, programs.function
    head = "import os\n" + "\n\n" * (not programs.gold.startswith(("import", "from"))) if wrapper else ""
    return Made(
        files={path: text_file(stub), **shown},
        verification=verification,
        solution={
            f"gold/{path}": text_file(head + programs.gold + wrapper),
            f"second/{path}": text_file(head + programs.second + wrapper),
            "solve.sh": File(f"cp /solution/gold/{path} {path}\n".encode(), 0o755),
        },
        editable=("**/*.py",),
        closings=(
            f"Write it in `{path}`, where there is a stub. `example/` holds one worked case; "
            "`python3 check.py` tries your program on it.",
            f"The function `{name}` goes into `{path}`. For one input with its right result see `example/`, and run "
            "`python3 check.py` to compare.",
            f"Replace the stub in `{path}`. `python3 check.py` compares what you do with the worked case in "
            "`example/`; your work will be tried on others.",
        ),
    )


def text_file(text: str) -> File:
    return File(text.encode())
