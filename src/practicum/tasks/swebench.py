"""SWE-bench and SWE-smith instances as tasks.

Owns: `read_instances`, `row_trees`.
Invariant: a task starts from the tree of the row's commit (with SWE-smith's bug put in), its gold is what the row says
it is, and its frozen tests are the repository's with `test_patch` applied. All of the row is kept. Nothing is run here:
whether the row is right is seen by running.
Must not know: boxes, verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from practicum.errors import SubmissionError, TaskError
from practicum.records.patches import apply_patch
from practicum.records.recipe import Recipe
from practicum.records.task import MIB, Limits, Task, Verification
from practicum.records.tree import File, Tree, diff_trees, tree_digest
from practicum.tasks.checkouts import Base, Checkouts
from practicum.tasks.dockerfile import read_dockerfile
from practicum.tasks.folders import read_tree
from practicum.tasks.frozen import freeze
from practicum.tasks.importing import Imported, Item, collect, row_items
from practicum.tasks.solutions import solution_of
from practicum.tasks.swebench_rows import (
    FOLDER_FILES,
    Instance,
    Kind,
    instance_of,
    read_task_folder,
    task_folders,
)

_OURS = ("task.yaml", "tests.json", "Dockerfile", *FOLDER_FILES.values())
_LIMITS = Limits(memory_bytes=1024 * MIB, pids=128, command_s=60.0, episode_s=900.0)
_TIMEOUT_S = 120.0


def read_instances(
    source: Path | str, checkouts: Checkouts, *, kind: Kind | None = None, layer: str = "python"
) -> Imported:
    """The tasks of a file of rows, or of a task repository's folders, and by item why others are none.

    `checkouts` hold the clones of their repositories. Without `kind` each row tells its own. Raises `TaskError` where
    `source` is neither.
    """
    root = Path(source)
    if root.is_dir():
        folders = task_folders(root)
        if not folders:
            raise TaskError(
                f"{root} holds no task folder of SWE-bench",
                fix="name a file of rows (.jsonl), or a folder that holds task.yaml, tests.json and the other files",
            )
        return collect(_folder_items(folders, checkouts, kind, layer))
    make = partial(_of_row, checkouts=checkouts, kind=kind, layer=layer)
    return collect(row_items(root, "instance_id", make))


def _of_row(row: dict[str, Any], where: str, *, checkouts: Checkouts, kind: Kind | None, layer: str) -> Task:
    return _task(instance_of(row, where, kind), checkouts, layer, None)


def _folder_items(folders: list[Path], checkouts: Checkouts, kind: Kind | None, layer: str) -> Iterator[Item]:
    for folder in folders:
        yield folder.name, partial(_of_folder, folder, checkouts, kind, layer)


def _of_folder(folder: Path, checkouts: Checkouts, kind: Kind | None, layer: str) -> Task:
    row = read_task_folder(folder)
    dockerfile = folder / "Dockerfile"
    if not dockerfile.is_file():
        raise TaskError("Dockerfile is missing")
    context = {name: file for name, file in read_tree(folder).items() if name not in _OURS}
    image = read_dockerfile(dockerfile.read_text("utf-8", "replace"), "Dockerfile", context)
    task = _task(instance_of(row, "task.yaml", kind), checkouts, image.layer, image.workdir)
    return replace(task, split=str(row["split"]))


def _task(instance: Instance, checkouts: Checkouts, layer: str | Recipe, workspace: str | None) -> Task:
    base = checkouts.base(checkouts.find(instance.repo), instance.commit)
    patched = _patched(base, instance.patch, "patch")
    start, gold = (patched, dict(base.files)) if instance.kind == "swesmith" else (dict(base.files), patched)
    after = _patched(base, instance.test_patch, "test_patch") if instance.test_patch.strip() else dict(base.files)
    touched = [change.path for change in diff_trees(base.files, after) if change.file is not None]
    frozen = freeze(after, (*instance.fail_to_pass, *instance.pass_to_pass), also=touched)
    if instance.kind == "swesmith":  # its failing tests were in the repository all along, and would be in view
        failing_files = {name.partition("::")[0] for name in instance.fail_to_pass}
        start, gold = ({n: f for n, f in tree.items() if n not in failing_files} for tree in (start, gold))
    count = len(instance.fail_to_pass)
    place = workspace or "/app"
    changes = diff_trees(start, gold)
    if not changes:
        raise TaskError("`patch` changes nothing that a task can hold")
    task = Task(
        id=instance.id,
        instruction=instance.statement,
        files=start,
        verification=Verification(
            runner="pytest",
            tests=frozen.tests,
            files=frozen.files,
            fail_to_pass=frozen.ids[:count],
            pass_to_pass=frozen.ids[count:],
            timeout_s=_TIMEOUT_S,
        ),
        layer=layer,
        workspace=place,
        limits=replace(_LIMITS, disk_bytes=disk_for(start)),
        solution=solution_of(changes, place),
        split="test",
    )
    return replace(task, provenance=_provenance(instance, base, task))


def disk_for(files: Tree) -> int:
    """A workspace's disk in bytes: three times what it starts with, and no less than the default."""
    return max(Limits().disk_bytes, -(-3 * sum(len(file.data) for file in files.values()) // MIB) * MIB)


def _patched(base: Base, patch: str, name: str) -> dict[str, File]:
    try:
        return apply_patch(base.files, patch)
    except SubmissionError as error:
        raise TaskError(f"`{name}` does not apply to {base.commit[:12]}: {error.message}") from None


def _provenance(instance: Instance, base: Base, task: Task) -> dict[str, Any]:
    created = instance.row.get("created_at")
    return {
        "source": "SWE-bench" if instance.kind == "swebench" else "SWE-smith",
        "format": instance.kind,
        "repository": instance.repo,
        "commit": base.commit,
        "license": base.licence,
        **({"created_at": created} if isinstance(created, str) and created else {}),
        **({"left_out": dict(base.left_out)} if base.left_out else {}),
        "row": json.dumps(instance.row),
        "row_trees": row_trees(task),
    }


def row_trees(task: Task) -> list[str]:
    """Digests of what a row says by naming a commit and two patches."""
    return [tree_digest(tree) for tree in (task.files, task.verification.tests, task.solution)]
