"""Runner `variants`: the submission is a file of tests, tried on right and on wrong variants of what it tests.

Owns: `run_variants`, `tossed`, `variants_s`, `variants_problem`. Invariant: a variant is named by what it is
(`original`, `equivalent-…`, `mutant-…`) here only; each is tried in the box as it was at the start, with nothing of
another in it, by a process of its own, in an order drawn afterwards. Must not know: how variants are made, outcomes.

The frozen files are `ID/path`: what lies at `path` of the workspace in the variant ID. The submission is the one file
that may be edited. An id of a right variant is passed when pytest ran at least one test there and all were well; an id
of a mutant when that was not so. Nothing is passed while a right variant is refused, nor before a mutant is caught:
accepting all and refusing all are worth nothing.

What a submission can do to its process (leave it early, forge its report, hang, kill its parent) only chooses between
"well" and "not well", so all depends on knowing which variant it runs on. Closed: telling them by order, number of the
process, time, files of an earlier trial or its processes (the box is reset), mtime and place (all are written alike
at the same path), comparison with each other (never two in one box), the original's text, hash or number of lines (the
right ones are rewritten), tossing a coin (what earns something is tried again). Not closed: a coin that follows from
the variant's text, and so falls alike each time; a test that carries the original and proves, by the syntax tree
alone, that what it finds is a rewrite of it; makers of tasks therefore rewrite mutants as well. A test that calls a
copy of the original and compares results is a test, if a lazy one.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections import Counter
from typing import Any

from practicum.records.task import Task
from practicum.records.tree import Tree
from practicum.records.verdict import TestStatus
from practicum.sandboxes.contract import Sandbox
from practicum.verification.runners.report import (
    PYTEST_INI,
    PYTHON_WITH_SITE,
    Report,
    early,
    ended,
    roots,
    run_driver,
    text_tail,
)

ORIGINAL, EQUIVALENT, MUTANT = "original", "equivalent-", "mutant-"
_MAX_BYTES = 4 << 20  # of reports
_CHECKS = "_practicum_checks"  # a module that suites with sentinels import; nothing asks for it here
_TAIL = 1000
_ROUNDS = 10
ENOUGH = 1e-3  # so likely may luck be


def is_right(name: str) -> bool:
    """Whether the variant `name` does what the original does."""
    return name == ORIGINAL or name.startswith(EQUIVALENT)


def variants_s(task: Task) -> float:
    """How long all trials may take, in seconds: the task's limit is for one."""
    return task.verification.timeout_s * len(task.verification.fail_to_pass) * _ROUNDS


def variants_problem(task: Task) -> str | None:
    """Why nothing could be judged by these variants, or None."""
    check = task.verification
    names = (*check.fail_to_pass, *check.pass_to_pass)
    if check.pass_to_pass:
        return "the variants runner has no pass_to_pass: without a file of tests nothing is well"
    if odd := sorted(name for name in names if not is_right(name) and not name.startswith(MUTANT)):
        return f"the variant {odd[0]!r} is neither `original` nor named `equivalent-…` or `mutant-…`"
    if ORIGINAL not in names or all(map(is_right, names)):
        return "the variants runner needs `original` and a mutant"
    for name in names:
        changed = [path.removeprefix(f"{name}/") for path in check.files if path.startswith(f"{name}/")]
        if not changed:
            return f"the variant {name!r} has no file"
        if lost := sorted(path for path in changed if path not in task.files):
            return f"the variant {name!r} changes {lost[0]!r}, which is not in the workspace"
    if len(task.editable) != 1 or not task.editable[0].endswith(".py") or set("*?[") & set(task.editable[0]):
        return "with the variants runner one Python file may be edited, named by its path"
    return None


async def run_variants(box: Sandbox, task: Task, files: Tree, *, warm: bool = False, once: bool = False) -> Report:
    """Try the submitted tests on each variant, until one that is right is refused.

    What they have earned is tried again, as often as it takes to tell it from tossing coins: a right variant must be
    accepted each time, and only a mutant that is caught each time is caught. With `once`, for honest work of which only
    matters whether it passes, nothing is tried again, nor anything after a mutant that is not caught.
    """
    check = task.verification
    target = task.editable[0]
    if target not in files:
        return Report(details=dict.fromkeys(check.fail_to_pass, f"there is no {target}"), evidence={"trials": {}})
    orders: list[list[str]] = []
    well: dict[str, bool] = {}
    trials: dict[str, Any] = {}
    count = Counter[bool]()
    chance = 1.0
    while len(orders) < (1 if once else _ROUNDS) and chance > ENOUGH:
        order = [name for name in check.fail_to_pass if is_right(name) or not well.get(name, False)]
        random.SystemRandom().shuffle(order)  # not from the seed: what can be worked out can be relied on
        orders.append(order)
        for name in order:
            if trials:
                await box.reset()
            for path in sorted(check.files):
                if path.startswith(f"{name}/"):
                    await box.write(f"{task.workspace}/{path.removeprefix(f'{name}/')}", check.tests[path].data)
            trials[name], undecided = await _tried(box, task, files, warm)
            if undecided is not None:
                return Report(evidence={"trials": trials}, undecided=undecided)
            well[name] = trials[name]["well"]
            count[well[name]] += 1
            if well[name] != is_right(name) and (once or is_right(name)):
                break
        statuses, details = _judged(check.fail_to_pass, well)
        if "passed" not in statuses.values():
            chance = 0.0
            break
        chance = tossed(count[True], count[False], sum(not is_right(name) for name in well), _caught(well))
    evidence = {"order": orders[0], "rounds": len(orders), "luck": chance, "trials": trials}
    return Report(statuses, details, evidence=evidence)


def tossed(accepted: int, refused: int, mutants: int, caught: int) -> float:
    """The chance that a coin, as fit for it as a coin can be, so often accepts and refuses, and `caught` of `mutants`.

    A coin that accepts with the chance p does that with p^accepted (1 - p)^refused, which is highest at p = accepted /
    (accepted + refused); which mutants it refuses does not matter.
    """
    tries = accepted + refused
    # In logarithms: the ways to choose among a thousand mutants are more than a float can hold.
    chance = sum(count * math.log(count / tries) for count in (accepted, refused) if count)
    return math.exp(min(0.0, chance + math.log(math.comb(mutants, caught))))


def _caught(well: dict[str, bool]) -> int:
    return sum(not is_right(name) and not ok for name, ok in well.items())


async def _tried(box: Sandbox, task: Task, files: Tree, warm: bool) -> tuple[dict[str, Any], str | None]:
    """What came of the variant that now lies in the box, and why it could not be found out."""
    timeout_s = task.verification.timeout_s
    job = {
        "kind": "pytest",
        "tests": task.workspace,
        "files": [task.editable[0]],
        "run": None,
        "checks": _CHECKS,
        "roots": roots(task, files),
        "ini": PYTEST_INI,
        "conftest": False,
        "timeout_s": timeout_s,
        "max_bytes": _MAX_BYTES,
    }
    told = await run_driver(box, "suites", job, timeout_s=timeout_s, warm=warm, python=PYTHON_WITH_SITE)
    line = told.lines[-1] if told.lines and isinstance(told.lines[-1], dict) else None
    if line is None:
        return {"well": False, "driver": ended(told.result)}, early("suites", told.result)
    how, status = line.get("how"), line.get("status")
    code = os.waitstatus_to_exitcode(status) if type(status) is int else None
    passed = _passed(str(line.get("reports", "")))
    return {
        "well": how == "ended" and code == 0 and passed > 0,
        "passed": passed,
        "how": how,
        "exit_code": code,
        "s": line.get("s"),
        "output": text_tail(str(line.get("output", "")).encode("latin-1", "replace"), _TAIL),
    }, None


def _passed(reports: str) -> int:
    """How many tests were reported as passed. Any text is borne."""
    count = 0
    for text in reports.split("\n"):
        try:
            count += json.loads(text)[1:] == ["call", "passed"] if text else 0
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return count


def _judged(names: tuple[str, ...], well: dict[str, bool]) -> tuple[dict[str, TestStatus], dict[str, str]]:
    """Statuses, and why those that are not passed are not."""
    refused = [name for name in names if is_right(name) and not well.get(name, True)]
    caught = [name for name in names if not is_right(name) and not well.get(name, True)]
    all_tried = all(name in well for name in names)
    statuses: dict[str, TestStatus] = {}
    details: dict[str, str] = {}
    for name in names:
        if refused:
            details[name] = "the tests do not pass on the original, or on another that does the same"
        elif not caught and all_tried:
            details[name] = "the tests catch no mutant"
        elif name not in well:
            details[name] = "not tried: the tests pass on another mutant"
        elif not is_right(name) and well[name]:
            details[name] = "the tests pass on this mutant"
        elif not caught:
            details[name] = "the tests caught no mutant before one on which they pass"
        statuses[name] = "failed" if name in details else "passed"
    return statuses, details
