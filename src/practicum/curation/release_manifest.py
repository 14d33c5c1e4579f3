"""The parts of a release as text: rows of the manifest, sums, licences, canary.

Owns: names of the files, `task_row`, `manifest_bytes`, `sums_of`, `sums_text`, `read_sums`, `licences_text`,
`canary_of`, `folder_names`.
Invariant: the same tasks give the same bytes; nothing here knows a clock.
Must not know: how tasks were chosen.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from practicum.curation.assessments import gate_json
from practicum.curation.similarity.origin import bug_kind_of, date_of, licence_of, parent_of, repository_of, source_of
from practicum.errors import TaskError
from practicum.records.assessment import Assessment
from practicum.records.task import Task
from practicum.records.tree import digest_of

RELEASE = "release/1"
MANIFEST, SUMS, MADE, LICENCES = "release.json", "SHA256SUMS", "made.json", "LICENCES.txt"
UNLISTED = frozenset({MANIFEST, SUMS, MADE})
"""Files that SHA256SUMS does not list."""
STATE = (".practicum", "tasks/.practicum")
"""Folders with what is decided and measured later; no part of the release."""


def task_row(task: Task, content: str, found: Assessment, *, by: str, verifier: str) -> dict[str, Any]:
    """What the manifest says of one task; `by` is who admitted it, `verifier` whose verdicts the gates went by."""
    date = date_of(task)
    origin = {
        "source": source_of(task),
        "repository": repository_of(task),
        "parent": parent_of(task),
        "bug_kind": bug_kind_of(task),
        "date": date.isoformat() if date else "",
        "digest": digest_of(json.loads(json.dumps(task.provenance, default=str))),
    }
    return {
        "id": task.id,
        "digest": task.digest,
        "content": content,
        "split": task.split,
        "domain": task.domain,
        "difficulty": task.difficulty,
        "licence": licence_of(task) or None,
        "provenance": {key: value for key, value in origin.items() if value},
        "admitted_by": by,
        "verifier": verifier,
        "gates": {name: digest_of(gate_json(result)) for name, result in sorted(found.gates.items())},
    }


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """Canonical JSON; its SHA-256 names the release."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def folder_names(ids: Sequence[str]) -> list[str]:
    """A folder name for each id, all different; an id may hold a slash."""
    taken: set[str] = set()
    names = []
    for each in ids:
        name = each.replace("/", "__")
        if name in taken:
            name = f"{name}-{digest_of(each)[:8]}"
        taken.add(name)
        names.append(name)
    return names


def canary_of(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A line to be found again wherever the tasks end up; the same for the same tasks."""
    code = digest_of(["canary", name, [[row["id"], row["content"]] for row in rows]])
    uuid = f"{code[:8]}-{code[8:12]}-{code[12:16]}-{code[16:20]}-{code[20:32]}"
    return f"practicum canary {uuid}: tasks of the release {name}, which belong in no corpus for pretraining"


def sums_of(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below `folder` that a release lists, by path. A link or special file is `not a file`."""
    found: dict[str, str] = {}
    for root, folders, files in os.walk(folder):
        where = Path(root).relative_to(folder)
        folders[:] = sorted(name for name in folders if (where / name).as_posix() not in STATE)
        for name in [*files, *(name for name in folders if (Path(root) / name).is_symlink())]:
            path = Path(root) / name
            relative = (where / name).as_posix()
            if relative in UNLISTED and not path.is_symlink():
                continue
            regular = path.is_file() and not path.is_symlink()
            found[relative] = _sha256(path) if regular else "not a file"
    return found


def sums_text(sums: Mapping[str, str]) -> str:
    """As `sha256sum` writes it. Raises `TaskError` for a name that it would have to escape."""
    for path in sums:
        if "\n" in path or "\\" in path or "\r" in path:
            raise TaskError(f"the file name {path!r} cannot be listed", fix="name the file otherwise")
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(sums.items()))


def read_sums(text: str) -> dict[str, str]:
    """What `sums_text` wrote."""
    rows = (line.partition("  ") for line in text.split("\n") if line)
    return {path: digest for digest, _, path in rows}


def licences_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Licences with their numbers of tasks, where those come from, and their ids."""
    by_licence: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        origin = row["provenance"].get("repository") or row["provenance"].get("source") or "no source stated"
        by_licence[row["licence"] or "not stated"][origin].append(row["id"])
    parts = []
    for licence, origins in sorted(by_licence.items()):
        parts.append(f"{licence}: {sum(map(len, origins.values()))} tasks\n")
        for origin, ids in sorted(origins.items()):
            parts.append(f"  {origin}: {len(ids)}\n")
            parts += [f"    {each}\n" for each in sorted(ids)]
    return "".join(parts)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
