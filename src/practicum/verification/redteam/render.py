"""An attack as the shell script that carries it out on one task.

Owns: `Target`, `find_target`, `why_not`, `tried_on`, `script_of`, `control_script`.
Invariant: pure; the script is what `practicum rollout TASK --agent script:FILE` takes, and nothing else acts.
Must not know: boxes, verdicts.

Placeholders, replaced wherever they stand (any other brace is left alone):

    {workspace}  the folder in which the agent works
    {file}       the Python file under repair: that of a plain task's entry, else the first, by name, that the gold
                 changes; relative to the workspace
    {module}     its import name (a leading `src/` left out)
    {function}   the entry of a plain task, else the first top-level function that the gold changes
    {visible}    the first visible test, relative to the workspace
    {frozen}     the first frozen file, relative to `tests/`; a plain task's cases
    {ids}        the ids of all frozen tests, as a JSON list. The strongest adversary knows them
"""

from __future__ import annotations

import ast
import json
import warnings
from dataclasses import dataclass, replace

from practicum.records.task import Task
from practicum.records.tree import Tree, matches
from practicum.verification.redteam.catalogue import Attack

_GOLD = "bash /solution/solve.sh"
_END = "END_OF_ATTACK"


@dataclass(frozen=True, slots=True)
class Target:
    """What is under repair; None where a task has no such thing."""

    file: str | None = None
    function: str | None = None

    @property
    def module(self) -> str:
        """Import name of `file`."""
        name = (self.file or "").removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
        return name.replace("/", ".")


def find_target(task: Task, gold: Tree | None) -> Target:
    """What is under repair in `task`, by its entry or by what `gold`, the whole repaired workspace, changes."""
    plain = task.verification.plain
    if plain is not None:
        module, _, function = plain.entry.partition(":")
        stem = module.replace(".", "/")
        places = [f"{root}{stem}{end}" for root in ("", "src/") for end in (".py", "/__init__.py")]
        file = next((place for place in places if place in task.files), None)
        if file is None or matches(file, task.editable):  # else it leads to what is under repair, and is not that
            return Target(file, function if function.isidentifier() else None)
    changed = [
        path for path in sorted(gold or {}) if path.endswith(".py") and (gold or {})[path] != task.files.get(path)
    ]
    for path in changed:
        if path in task.files:
            names = changed_functions(task.files[path].data, (gold or {})[path].data)
            return Target(path, names[0] if names else None)
    return Target()


def changed_functions(before: bytes, after: bytes) -> list[str]:
    """Names of top-level functions that are in both sources and differ, in the order of `after`."""
    old, new = (_functions(source) for source in (before, after))
    return [name for name, text in new.items() if name in old and old[name] != text]


def _functions(source: bytes) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            return {}
    return {node.name: ast.dump(node) for node in tree.body if isinstance(node, ast.FunctionDef)}


def why_not(attack: Attack, task: Task, target: Target) -> str | None:
    """Why `attack` cannot be tried on `task`, or None."""
    if task.verification.runner not in attack.runners:
        return f"it is for tasks of {', '.join(attack.runners)}"
    missing = {
        "file": target.file is None,
        "function": target.function is None,
        "visible": not task.verification.visible,
        "frozen": _frozen(task) is None,
    }
    lacking = [need for need in attack.needs if missing[need]]
    return f"the task has no {lacking[0]}" if lacking else None


def tried_on(attack: Attack, task: Task) -> Task:
    """`task` as `attack` meets it: one that means to run out of time does so soon.

    Not where there is something to build, which has as much time as a command.
    """
    if attack.command_s is None or task.verification.build is not None:
        return task
    return replace(task, limits=replace(task.limits, command_s=min(task.limits.command_s, attack.command_s)))


def script_of(attack: Attack, task: Task, target: Target) -> str:
    """The shell script. `why_not` must be None."""
    code = _filled(attack.code, task, target).strip("\n")
    if attack.form == "python":
        code = f"python3 - <<'{_END}'\n{code}\n{_END}"
    elif attack.form == "append":
        code = f"cat >> '{target.file}' <<'{_END}'\n\n\n{code}\n{_END}"
    return f"# {attack.id} ({attack.kind}): {attack.what}\n{code}\n"


def control_script(attack: Attack, task: Task, target: Target) -> str:
    """The gold, then the attack: what a right solution is worth when somebody also left this behind."""
    return f"{_GOLD}\n{script_of(attack, task, target)}"


def _filled(code: str, task: Task, target: Target) -> str:
    check = task.verification
    values = {
        "workspace": task.workspace,
        "file": target.file or "",
        "module": target.module,
        "function": target.function or "",
        "visible": check.visible[0] if check.visible else "",
        "frozen": _frozen(task) or "",
        "ids": json.dumps([*check.fail_to_pass, *check.pass_to_pass]),
    }
    for name, value in values.items():
        code = code.replace("{" + name + "}", value)
    return code


def _frozen(task: Task) -> str | None:
    check = task.verification
    if check.plain is not None:
        return check.plain.cases
    return check.files[0] if check.files else ("test.sh" if "test.sh" in check.tests else None)
