"""Gate `leaks`: the answer is not within reach of the agent.

Owns: `GATE`. Invariant: what is searched is a box built as an agent's is, from inside and by listing: its workspace,
all else that is not the system's, git objects reachable or not, copies of the files under repair in the layer,
bytecode, caches, what the layer's recipe says and adds, the instruction and the tests that are shown. A name alone
proves nothing, but where it promises an answer one line does. What could not be searched is told, and lets no task pass
unless packages were installed there.
Must not know: how boxes are built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from practicum.curation.gates.contract import Case, Found, Gate, NotAssessed
from practicum.curation.gates.gitobjects import Unreadable, git_objects, holds_objects
from practicum.curation.gates.leaks.kept import ANSWER, Kept, kept_of, nothing_hidden
from practicum.curation.gates.leaks.reach import Reach, look, packaged
from practicum.errors import SandboxError
from practicum.records.recipe import Env, Recipe, Run
from practicum.records.task import Task
from practicum.records.tree import File, Tree

_CACHE = re.compile(r"(?:^|/)\.cache/(?:pip|uv|pypoetry)/|/pip/(?:http|wheels|selfcheck)")
_CLOSED = ("/solution", "/tests", "/judge", "/logs")

Leak = dict[str, Any]


async def _assess(case: Case) -> Found:
    task = case.task
    gold = await case.gold()
    kept = kept_of(task, gold)
    wanted = [change.path for change in gold.changes]
    try:
        async with case.turn():
            reach = await look(case, wanted)
    except SandboxError as error:
        raise NotAssessed(f"no box could be searched: {error.message}", fault=True) from error
    leaks = _leaks(task, reach, kept, frozenset(wanted))  # in no thread: Python 3.11 cannot parse in two at once
    unread = sorted({*reach.unread, *kept.cut_short})
    evidence: dict[str, Any] = {
        "workspace_files": len(reach.workspace),
        "other_files": sorted(reach.elsewhere)[:50],
        "added_by_the_recipe": len(reach.added),
        "layer_files": sum(map(len, reach.layer.values())),
        "runs_of_the_gold": len(kept.answer.runs),
        "runs_of_the_tests": len(kept.questions.runs),
        "names_that_invite_a_look": sorted(p for p in reach.workspace if ANSWER.fullmatch(p.rpartition("/")[2]))[:20],
        "not_searched": len(unread),
        "leaks": leaks[:20],
    }
    if leaks:
        return Found(False, f"{leaks[0]['where']} gives away {leaks[0]['what']}: {leaks[0]['how']}", evidence)
    if why := nothing_hidden(task):
        return Found(False, f"nothing is hidden: {why}", evidence | {"doubtful": True})
    if missed := [path for path in unread if not packaged(path)]:
        raise NotAssessed(f"{missed[0]} is more than can be searched", evidence=evidence | {"unread": missed[:20]})
    return Found(True, "nothing within the agent's reach gives away the gold or the tests", evidence)


def _leaks(task: Task, reach: Reach, kept: Kept, changed: frozenset[str]) -> list[Leak]:
    found = [
        *_in_workspace(task, reach.workspace, kept, changed),
        *_elsewhere(reach, kept),
        *_in_objects(reach.workspace, kept),
        *_in_what_is_said(task, kept),
    ]
    together = kept.in_pieces() if not found else None
    return [*found, together] if together else found


def _in_workspace(task: Task, found: Tree, kept: Kept, changed: frozenset[str]) -> Iterator[Leak]:
    stems = {path.rpartition("/")[2].removesuffix(".py") for path in changed if path.endswith(".py")}
    for path, file in sorted(found.items()):
        if holds_objects(path):
            continue
        if path in changed:
            told = kept.told_by_own(path, file.data)
        else:
            shown = path in task.verification.visible
            told = kept.told(path, file.data, name=path.rpartition("/")[2], gold_only=shown)
        if told is None and path.endswith((".pyc", ".pyo")):
            own = path.rpartition("/")[2].partition(".")[0] in stems
            how = "bytecode of a file under repair" if own else kept.names.found_in(path, file.data, found)
            told = {"what": "the gold", "how": how} if how else None
        if told:
            yield {"where": path, **told}


def _elsewhere(reach: Reach, kept: Kept) -> Iterator[Leak]:
    for path, data in sorted({**reach.added, **reach.elsewhere}.items()):
        told = None
        if any(path.startswith(f"{place}/") for place in _CLOSED):
            told = {"what": "the gold or the tests", "how": "a place that only judges and oracles have"}
        elif _CACHE.search(path):
            told = {"what": "installed packages", "how": "a cache of a package installer"}
        elif not packaged(path) or path in reach.elsewhere or kept.touched(data):
            told = kept.told(path, data, name="" if packaged(path) else path.rpartition("/")[2])
        if told:
            yield {"where": path, **told}


def _in_objects(found: Tree, kept: Kept) -> Iterator[Leak]:
    held: dict[str, File] = {path: file for path, file in found.items() if holds_objects(path)}
    try:
        for path, (kind, data) in git_objects(held):
            if kind != "tree" and (told := kept.told(path, data)):
                yield {"where": f"an object of git in {path}", **told}
    except Unreadable as error:
        raise NotAssessed(f"git's objects in the workspace cannot be read: {error}") from error


def _in_what_is_said(task: Task, kept: Kept) -> Iterator[Leak]:
    """The instruction, and the recipe: its files, commands and variables."""
    check = task.verification
    said = [("instruction.md", task.instruction.encode(), True)]
    said += [(name, check.tests[name].data, True) for name in check.visible if name in check.tests]
    if isinstance(task.layer, Recipe):
        context = {path: file for path, file in task.layer.context.items() if path not in task.files}
        said += [(f"environment/{p}", f.data, False) for p, f in sorted(context.items()) if _copied(p)]
        said += [(s.where, " ".join(s.command).encode(), False) for s in task.layer.steps if isinstance(s, Run)]
        said.append(("the recipe of the layer", task.layer.source.encode(), False))
    for where, data, gold_only in said:
        if told := kept.told(where, data, name=where.rpartition("/")[2], gold_only=gold_only):
            yield {"where": where, **told}
    for step in task.layer.steps if isinstance(task.layer, Recipe) else ():
        for name, value in step.values if isinstance(step, Env) else ():
            if told := kept.said_in_passing(value):
                yield {"where": f"ENV {name}", **told}


def _copied(path: str) -> bool:
    return not path.startswith("workspace/")


GATE = Gate("leaks", "2", "one box", "rejected", _assess, needs=("gold",))
