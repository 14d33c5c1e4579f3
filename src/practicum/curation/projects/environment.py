"""What a project's tests need beside Python and pytest, as a layer that is the same on another day.

Owns: `layer_for`, `layer_of_lock`, `wanted`.
Invariant: what is needed is resolved once, to wheels by hash, and kept as a lock; with the same lock, the layer has the
same digest. No code of a package or of the project runs to find it out.
Must not know: boxes, how layers are made.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from practicum.curation.projects.metadata import read_metadata
from practicum.curation.projects.programs import WORKSPACE
from practicum.curation.projects.project import Project
from practicum.errors import TaskError
from practicum.records.recipe import Recipe, read_lock
from practicum.records.tree import File, Tree
from practicum.tasks.dockerfile import read_dockerfile

LOCK = "requirements.lock"
_DOCKERFILE = f"""FROM python
COPY {LOCK} /opt/{LOCK}
RUN pip install --no-deps --require-hashes -r /opt/{LOCK}
WORKDIR {WORKSPACE}
COPY workspace/ {WORKSPACE}/
"""
_HEAD = "# for: "
_OF_THE_LAYER = frozenset(["pytest", "pluggy", "iniconfig"])
# Where the name of a module says little about that of its distribution.
_KNOWN_AS = {
    "yaml": "pyyaml",
    "dateutil": "python-dateutil",
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "attr": "attrs",
    "sklearn": "scikit-learn",
    "OpenSSL": "pyopenssl",
    "git": "gitpython",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "magic": "python-magic",
    "jwt": "pyjwt",
    "Crypto": "pycryptodome",
    "pkg_resources": "setuptools",
}


def layer_of_lock(path: Path) -> Recipe:
    """The layer with what a lock names. Raises `TaskError` where it cannot be read or is none."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path} cannot be read as a lock: {error}") from None
    return _layer(text, str(path))


def layer_for(project: Project, store: Path | None = None, lock: Path | None = None) -> str | Recipe:
    """The layer for `project`: with what `lock` names, else with what the project declares and its tests import.

    What is resolved is kept in the folder `store` and used again while the project asks for the same. Raises
    `TaskError` for a lock that cannot be used and `LayerFailed` for a requirement that cannot be had, by name;
    `CreateFailed` where the package index cannot be reached.
    """
    if lock is not None:
        return layer_of_lock(lock)
    requirements = wanted(project)
    if not requirements:
        return "python"
    head = f"{_HEAD}{' | '.join(requirements)}\n"
    kept = store / LOCK if store is not None else None
    if kept is not None and kept.is_file() and kept.read_text("utf-8").startswith(head):
        return layer_of_lock(kept)
    text = head + _resolved(requirements, project.name)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text, encoding="utf-8", newline="\n")
    return _layer(text, project.name)


def _layer(text: str, where: str) -> Recipe:
    read_lock(text, where)
    image = read_dockerfile(_DOCKERFILE, f"the Dockerfile for {where}", {LOCK: File(text.encode())})
    assert isinstance(image.layer, Recipe)
    return image.layer


def _resolved(requirements: tuple[str, ...], where: str) -> str:
    from practicum.sandboxes.layering.wheels import Target, resolve
    from practicum.sandboxes.python_layer import plan

    python = plan()
    pins = resolve(requirements, Target(python.info["python"], python.python), where)
    lines = []
    for pin in sorted(pins, key=lambda each: each.name):
        hashes = " ".join(f"--hash={value}" for value in sorted(pin.hashes))
        lines.append(f"{pin.name}=={pin.version} {hashes}\n")
    return "".join(lines)


def wanted(project: Project) -> tuple[str, ...]:
    """Requirements, sorted: those of the project itself, and those that it declares anywhere and its tests import.

    A name that tests import and nobody declares is not guessed at: those tests will fail, and be left out.
    """
    metadata = read_metadata(project.files)
    run_time = [*metadata.requires] or list(_lines(project.files, "requirements.txt"))
    found = {name: text for text in run_time if (name := _name(text)) is not None}
    pool = {
        name: text
        for texts in [*(metadata.extras or {}).values(), list(_requirement_files(project.files))]
        for text in texts
        if (name := _name(text)) is not None
    }
    own = {path.partition("/")[0].removesuffix(".py") for root in project.roots for path in _below(project, root)}
    helpers = {part for path in project.tests for part in path.removesuffix(".py").split("/")}
    for module in sorted(_imported(project.tests) - own - helpers - set(sys.stdlib_module_names)):
        name = _normal(_KNOWN_AS.get(module, module))
        if name in pool:
            found.setdefault(name, pool[name])
    found.pop(_normal(project.name), None)
    return tuple(found[name] for name in sorted(found) if name not in _OF_THE_LAYER)


def _below(project: Project, root: str) -> Iterator[str]:
    start = f"{root}/" if root else ""
    return (path.removeprefix(start) for path in project.sources if path.startswith(start))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _name(text: str) -> str | None:
    """The distribution that a requirement names, where it counts here; None for addresses and what cannot be read."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    if requirement.url or (requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})):
        return None
    return _normal(requirement.name)


def _requirement_files(tree: Tree) -> Iterator[str]:
    for path in sorted(tree):
        if re.fullmatch(r"(?:requirements/[\w.-]+|[\w-]*requirements[\w.-]*)\.(?:txt|in)", path):
            yield from _lines(tree, path)


def _lines(tree: Mapping[str, File], path: str) -> Iterator[str]:
    if path in tree:
        for line in tree[path].data.decode("utf-8", "replace").splitlines():
            plain = re.sub(r"(?:^|\s)#.*", "", line).strip().removesuffix("\\").strip()
            if plain and not plain.startswith("-"):
                yield re.sub(r"\s+--hash.*", "", plain)


def _imported(tests: Tree) -> set[str]:
    """Top names of what test files and helpers import."""
    found = set[str]()
    for path, file in tests.items():
        if not path.endswith(".py"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tree = ast.parse(file.data)
            except (SyntaxError, ValueError, RecursionError):
                continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "importorskip" and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add(first.value.partition(".")[0])
    return found
