"""Harbor task directories: reading one as a `Task`, writing a `Task` as one.

Owns: `load_task`, `save_task`.
Invariant: what `save_task` writes, `load_task` reads back with the same digest and id; a directory that cannot be
honoured in full is refused, and none is ever half written.
Must not know: how tasks are attempted or judged.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from practicum.errors import SubmissionError, TaskError
from practicum.records.recipe import Recipe
from practicum.records.task import Task, Verification
from practicum.records.tree import File, check_path
from practicum.tasks.dockerfile import Image, layer_of_image, read_dockerfile
from practicum.tasks.folders import read_tree, replace_folder, write_tree
from practicum.tasks.manifest import Manifest, manifest_text, read_manifest

_CANARY = re.compile(r"[^\S\n]*(?:<!--.*canary.*-->|#.*canary.*)\s*", re.IGNORECASE)
_ID = re.compile(r"(?=[A-Za-z0-9])[A-Za-z0-9._-]+(?:/[A-Za-z0-9][A-Za-z0-9._-]*)?")
_TAKEN = {  # places of a box that are not the candidate's
    "/tests": "frozen tests",
    "/logs": "what test.sh leaves",
    "/judge": "what runs them",
    "/solution": "the gold",
    "/opt/practicum": "the layer's interpreter",
    **dict.fromkeys(("/proc", "/sys", "/dev"), "the system's own files"),
}
_SYSTEM = ("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/sbin", "/usr")
_LAID_THERE = ("/usr/src", "/usr/local/src")  # below these, images do have workspaces
_PARTS = frozenset({"environment", "tests", "solution", "task.toml", "instruction.md"})


def is_task(folder: Path) -> bool:
    """Whether `folder` looks like a task directory, whole or not."""
    return (folder / "task.toml").exists() or sum((folder / part).exists() for part in _PARTS) > 1


def load_task(folder: Path | str) -> Task:
    """The task in a Harbor task directory.

    Raises `TaskError`, naming the directory or file, when something is missing, unknown or cannot be honoured.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise TaskError(f"{folder}: there is no such task directory")
    if folder.is_symlink():
        raise TaskError(f"{folder}: a task directory cannot be a symbolic link")
    file = str(folder / "task.toml")
    manifest = read_manifest(_text(folder, "task.toml"), file)
    image = _image(folder, manifest)
    layer, workspace = _place(manifest, image, file)
    tests = read_tree(_folder(folder, "tests"))
    verification = replace(manifest.verification, tests=tests)
    task = Task(
        id=manifest.id or folder.resolve().name,
        instruction=_without_canary(_text(folder, "instruction.md")),
        files=_workspace(folder, verification),
        verification=verification,
        layer=layer,
        workspace=workspace,
        editable=manifest.editable,
        limits=manifest.limits,
        solution=_optional_tree(folder, "solution"),
        split=manifest.split,
        domain=manifest.domain,
        difficulty=manifest.difficulty,
        provenance=manifest.provenance,
    )
    _check(task, str(folder))
    return task


def save_task(task: Task, folder: Path | str) -> None:
    """Write `task` as a Harbor task directory at `folder`, whole or not at all.

    A directory that already holds this very task is written anew; any other that is not empty is left alone and
    refused with `TaskError`, as is a task that would not read back the same.
    """
    folder = Path(folder)
    _check(task, f"task {task.id!r}")
    _check_writable(task)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise TaskError(f"{folder} is not a directory")
    if folder.exists() and any(folder.iterdir()) and not _holds(folder, task):
        raise TaskError(f"{folder} is not empty and holds something else", fix="choose another place, or remove it")
    visible = task.verification.visible
    with replace_folder(folder) as fresh:
        (fresh / "task.toml").write_text(manifest_text(task), encoding="utf-8", newline="\n")
        (fresh / "instruction.md").write_bytes(task.instruction.encode())
        (fresh / "environment" / "workspace").mkdir(parents=True)
        (fresh / "tests").mkdir()
        write_tree(fresh / "environment" / "workspace", {n: f for n, f in task.files.items() if n not in visible})
        if isinstance(task.layer, Recipe):
            _write_environment(fresh / "environment", task.layer)
        write_tree(fresh / "tests", task.verification.tests)
        write_tree(fresh / "solution", task.solution)
        again = load_task(fresh)
        if (again.digest, again.id) != (task.digest, task.id):
            raise TaskError(f"task {task.id!r} would not read back the same")


def _text(folder: Path, name: str) -> str:
    path = folder / name
    if path.is_symlink():
        raise TaskError(f"{path}: a task cannot hold a symbolic link", fix="put the file itself there")
    if not path.is_file():
        raise TaskError(f"{path} is not a regular file" if path.exists() else f"{folder}: {name} is missing")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise TaskError(f"{path} is not UTF-8 text") from None


def _folder(folder: Path, name: str) -> Path:
    path = folder / name
    if path.is_symlink():
        raise TaskError(f"{path}: a task cannot hold a symbolic link", fix="put the folder itself there")
    if not path.is_dir():
        raise TaskError(f"{folder}: the folder {name}/ is missing")
    return path


def _optional_tree(folder: Path, name: str) -> dict[str, File]:
    path = folder / name
    return read_tree(_folder(folder, name)) if path.exists() or path.is_symlink() else {}


def _image(folder: Path, manifest: Manifest) -> Image | None:
    """What environment/ says beside the workspace; anything there that nothing would use is refused."""
    environment = folder / "environment"
    context = _optional_tree(folder, "environment")
    dockerfile = environment / "Dockerfile"
    image = None
    if dockerfile.exists() or dockerfile.is_symlink():
        image = read_dockerfile(_text(environment, "Dockerfile"), str(dockerfile), context)
    elif manifest.image is not None:
        image = Image(layer_of_image(manifest.image, str(folder / "task.toml")), None, None)
    known = {"Dockerfile", *(image.used if image else ())}
    unused = sorted(name for name in context if name not in known and not name.startswith("workspace/"))
    if unused:
        raise TaskError(
            f"{environment / unused[0]} cannot be honoured here",
            fix="environment/ may hold workspace/, a Dockerfile and what that copies",
        )
    return image


def _place(manifest: Manifest, image: Image | None, file: str) -> tuple[str | Recipe, str]:
    """Layer and workspace; what the manifest and the image both say must agree."""
    from_image = image.layer if image else None
    place = (image.copied_to or image.workdir) if image else None
    if manifest.layer and from_image and manifest.layer != from_image:
        base = from_image.base if isinstance(from_image, Recipe) else from_image
        if manifest.layer != base:
            raise TaskError(f"{file}: `layer` is {manifest.layer!r}, but the environment starts from {base!r}")
    if image and image.copied_to and manifest.workspace not in (None, image.copied_to):
        raise TaskError(f"{file}: `workspace` is {manifest.workspace!r}, but it is copied to {image.copied_to!r}")
    return from_image or manifest.layer or "python", manifest.workspace or place or "/app"


def _workspace(folder: Path, check: Verification) -> dict[str, File]:
    """The agent's starting files, visible tests included."""
    files = _optional_tree(folder / "environment", "workspace")
    for name in check.visible:
        if name not in check.tests:
            raise TaskError(f"{folder}: tests/{name} is missing, though it is named as visible")
        if files.setdefault(name, check.tests[name]) != check.tests[name]:
            raise TaskError(f"{folder}: environment/workspace/{name} differs from the visible test tests/{name}")
    return files


def _without_canary(text: str) -> str:
    """`text` without the lines that hold a canary comment."""
    return "".join(line for line in re.findall(r"[^\n]*\n|[^\n]+", text) if not _CANARY.fullmatch(line))


def _check(task: Task, where: str) -> None:
    """What must hold of a task beyond the types. Raises `TaskError` that starts with `where`."""
    check = task.verification
    if not _ID.fullmatch(task.id):
        raise TaskError(
            f"{where}: the id {task.id!r} cannot be used",
            fix="letters, digits, '.', '_', '-', with at most one '/' inside",
        )
    if not re.fullmatch(r"(/[A-Za-z0-9._-]+)+", task.workspace) or ".." in task.workspace.split("/"):
        raise TaskError(f"{where}: workspace {task.workspace!r} is not a plain absolute path below /")
    if taken := _taken(task.workspace):
        raise TaskError(f"{where}: workspace {task.workspace!r} is where a box has {taken}", fix="use /app, for one")
    if isinstance(task.layer, str):
        layer_of_image(task.layer, f"{where}: `layer`")
    if not task.instruction.strip():
        raise TaskError(f"{where}: the instruction is empty, so nobody could know what to do")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", task.split):
        raise TaskError(
            f"{where}: the split {task.split!r} cannot be used",
            fix="letters, digits, '_' and '-'; train, validation and test are the usual ones",
        )
    named = [(name, "files") for name in check.files] + [(name, "visible") for name in check.visible]
    if check.plain is not None:
        named += [(check.plain.cases, "cases")] + [(n, "generator") for n in (check.plain.generator,) if n]
        if not re.fullmatch(r"\w+(\.\w+)*:\w+(\.\w+)*", check.plain.entry):
            raise TaskError(f"{where}: entry {check.plain.entry!r} is not of the form module:function")
    if check.runner == "harbor":
        named.append(("test.sh", "Harbor's test script; without it, say how to judge under [practicum.tests]"))
    elif check.runner != "plain" and not check.files:
        raise TaskError(f"{where}: runner {check.runner!r} needs `files` in [practicum.tests]")
    for name, role in named:
        if name not in check.tests:
            raise TaskError(f"{where}: tests/{name} is missing ({role})")
    ids = (*check.fail_to_pass, *check.pass_to_pass)
    if not check.fail_to_pass:
        raise TaskError(f"{where}: fail_to_pass names no test, so doing nothing would pass")
    if len(set(ids)) != len(ids):
        twice = sorted({name for name in ids if ids.count(name) > 1})
        raise TaskError(f"{where}: {twice[0]!r} is named twice in fail_to_pass and pass_to_pass")


def _taken(workspace: str) -> str | None:
    """What a box keeps at this place, above it or below it."""
    for place, what in _TAKEN.items():
        if f"{workspace}/".startswith(f"{place}/") or f"{place}/".startswith(f"{workspace}/"):
            return f"{place} for {what}"
    if any(workspace.startswith(f"{place}/") for place in _LAID_THERE):
        return None
    for place in _SYSTEM:
        if f"{workspace}/".startswith(f"{place}/"):
            return f"{place} of the system"
    return None


def _check_writable(task: Task) -> None:
    """Refuse what the directory form cannot say."""
    where = f"task {task.id!r}"
    if _without_canary(task.instruction) != task.instruction:
        raise TaskError(f"{where}: its instruction holds a canary comment, which is dropped when tasks are read")
    for part, tree in (("files", task.files), ("tests", task.verification.tests), ("solution", task.solution)):
        for name, file in tree.items():
            try:
                check_path(name)
            except SubmissionError as error:
                raise TaskError(f"{where}: {part}: {error.message}") from None
            if file.mode not in (0o644, 0o755):
                raise TaskError(f"{where}: {part}: {name!r} has mode {file.mode:o}, not 644 or 755")
    for name in task.verification.visible:
        if task.files.get(name) != task.verification.tests[name]:
            raise TaskError(f"{where}: the visible test {name!r} is not in the workspace as it is in tests")


def _write_environment(folder: Path, recipe: Recipe) -> None:
    """The Dockerfile and what it copies, as they were read. The workspace has been written already."""
    if not recipe.source:
        raise TaskError(f"the layer {recipe} was not read from a Dockerfile, so it cannot be written as one")
    (folder / "Dockerfile").write_text(recipe.source, encoding="utf-8", newline="\n")
    write_tree(folder, {name: file for name, file in recipe.context.items() if not _is_own(name)})


def _is_own(name: str) -> bool:
    return name == "Dockerfile" or name.startswith("workspace/")


def _holds(folder: Path, task: Task) -> bool:
    try:
        found = load_task(folder)
    except TaskError:
        return False
    return (found.id, found.digest) == (task.id, task.digest)
