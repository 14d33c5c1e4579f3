"""Releases read again: what differs from the manifest, and what differs between two of them.

Owns: `verify_release`, `proven_by`, `altered_files`, `Difference`, `diff_releases`.
Invariant: every file and every task is read; what is found is named by path or task. Nothing is written.
Must not know: how a release is made.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from practicum.curation.ledger import FILE as LEDGER
from practicum.curation.ledger import Ledger
from practicum.curation.release_manifest import (
    MADE,
    MANIFEST,
    RELEASE,
    SUMS,
    manifest_bytes,
    read_sums,
    sums_of,
)
from practicum.errors import StoreError, TaskError
from practicum.tasks.harbor import is_task, load_task
from practicum.trajectories.chain import verify

_NAMED = re.compile(r".+-([0-9a-f]{12})")
_STATED = ("split", "domain", "difficulty", "licence")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as the manifest says. `path` is below the release; `task` where it belongs to one."""

    kind: str
    path: str
    said: str
    task: str | None = None


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a release. Raises `TaskError` where there is none that can be read."""
    fix = "a release is made by: practicum tasks release TASKSET OUT"
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if manifest["schema"] != RELEASE:
            raise TaskError(f"{folder}: its schema is {manifest['schema']!r}, and {RELEASE} is read here", fix=fix)
    except OSError as error:
        raise TaskError(f"{folder} is no release: {MANIFEST}: {error.strerror}", fix=fix) from error
    except (ValueError, KeyError, TypeError) as error:
        raise TaskError(f"{folder}: {MANIFEST} was altered, it cannot be read: {error!r}", fix=fix) from error
    return dict(manifest)


def altered_files(folder: Path) -> list[Difference]:
    """What of the files differs, from sums alone. Raises `TaskError` where there is no manifest."""
    manifest = read_manifest(folder)
    found = _altered_manifest(folder, manifest)
    sums_path = folder / SUMS
    text = sums_path.read_bytes() if sums_path.is_file() else b""
    if hashlib.sha256(text).hexdigest() != manifest.get("sums"):
        return [*found, Difference("altered", SUMS, f"{SUMS} is not what the manifest names; no file can be trusted")]
    wanted, there = read_sums(text.decode()), sums_of(folder)
    tasks = {row["folder"]: row["id"] for row in manifest["tasks"]}
    for path in sorted(wanted.keys() | there.keys()):
        if wanted.get(path) == there.get(path):
            continue
        kind = "added" if path not in wanted else "missing" if path not in there else "altered"
        task = tasks.get("/".join(path.split("/")[:2]))
        belongs = f" (task {task})" if task else ""
        found.append(Difference(kind, path, f"{path}{belongs} {'is' if kind == 'missing' else 'was'} {kind}", task))
    return found


def verify_release(folder: Path, digest: str | None = None) -> list[Difference]:
    """All that differs from what the release was: files, tasks as they are read, the ledger it rests on.

    Who rewrites everything, manifest and all, is found out by the release's `digest` alone, or its first digits: that
    which is given, else that which the folder is named by. `proven_by` says whether there is one.
    """
    found = altered_files(folder)
    manifest = read_manifest(folder)
    own = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    if digest is not None and not own.startswith(digest):
        said = f"{MANIFEST} is that of another release: its digest is {own[: len(digest)]}, not {digest}"
        found.append(Difference("altered", MANIFEST, said))
    known = {row["folder"]: row for row in manifest["tasks"]}
    found += [_whole(each, known, folder) for each in _missing_tasks(folder, known)]
    for place, row in known.items():
        if is_task(folder / place):
            found += _read_task(folder, place, row)
    ledger = folder / ".practicum" / LEDGER
    try:
        if not ledger.is_file():
            raise StoreError("it is missing")
        verify(ledger, reaches=manifest["ledger"]["head"])
    except StoreError as error:
        found.append(Difference("altered", f".practicum/{LEDGER}", f"the ledger: {error.message}"))
    return found


def proven_by(folder: Path, digest: str | None = None) -> str | None:
    """What tells from elsewhere which release this is: `digest` where it is given, `name` where the folder bears its
    digest; None where all that speaks for it lies in the folder itself, which anybody could have written anew."""
    if digest is not None:
        return "digest"
    return "name" if _NAMED.fullmatch(folder.resolve().name) else None


def _altered_manifest(folder: Path, manifest: Mapping[str, Any]) -> list[Difference]:
    data = (folder / MANIFEST).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    found = []
    if manifest_bytes(manifest) != data:
        found.append(Difference("altered", MANIFEST, f"{MANIFEST} was altered: it is not canonical JSON"))
    try:
        made = json.loads((folder / MADE).read_bytes())["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        found.append(Difference("altered", MADE, f"{MADE} is missing or was altered"))
        made = digest
    named = _NAMED.fullmatch(folder.resolve().name)
    if made != digest or (named is not None and named[1] != digest[:12]):
        said = f"{MANIFEST} was altered: its digest is {digest[:12]}, not the {made[:12]} that names the release"
        found.append(Difference("altered", MANIFEST, said))
    return found


def _missing_tasks(folder: Path, known: Mapping[str, Any]) -> list[str]:
    """Task folders that are not there, or not known."""
    there = {f"tasks/{path.name}" for path in (folder / "tasks").glob("*") if path.is_dir() and path.name[0] != "."}
    return sorted(known.keys() ^ there)


def _whole(place: str, known: Mapping[str, Any], folder: Path) -> Difference:
    if place in known:
        return Difference("missing", place, f"task {known[place]['id']} is missing", known[place]["id"])
    return Difference("added", place, f"a task was added: {folder / place}")


def _read_task(folder: Path, place: str, row: Mapping[str, Any]) -> list[Difference]:
    try:
        task = load_task(folder / place)
    except TaskError as error:
        return [Difference("altered", place, f"task {row['id']} cannot be read: {error.message}", row["id"])]
    if (task.id, task.digest, task.content) == (row["id"], row["digest"], row["content"]):
        return []
    return [Difference("altered", place, f"task {row['id']} is no longer what was released", row["id"])]


def diff_releases(before: Path, after: Path) -> dict[str, Any]:
    """Tasks added, removed, regraded (other work or other judging) and changed (anything else), each with the reason.

    Raises `TaskError` where one is no release.
    """
    old, new = ({row["id"]: row for row in read_manifest(each)["tasks"]} for each in (before, after))
    ledgers = [Ledger(each / ".practicum" / LEDGER) for each in (after, before)]
    found: dict[str, Any] = {"added": [], "removed": [], "regraded": [], "changed": []}
    for name in sorted(old.keys() | new.keys()):
        first, second = old.get(name), new.get(name)
        if first is None or second is None:
            kind, row = ("added", second) if first is None else ("removed", first)
            assert row is not None
            found[kind].append({"task": name, "reason": _reason(ledgers, name, row["content"], kind)})
        elif first["content"] != second["content"]:
            stated = [key for key in _STATED if first[key] != second[key]]
            kind = "regraded" if first["digest"] != second["digest"] else "changed"
            what = [*(["work or judging"] if kind == "regraded" else []), *stated] or ["gold or provenance"]
            reason = _reason(ledgers, name, second["content"], kind)
            found[kind].append({"task": name, "what": what, "reason": reason})
    return found


def _reason(ledgers: list[Ledger], task: str, content: str, kind: str) -> str:
    """The latest decision on this content; for a removed task whose content is still admitted, that it is gone."""
    for ledger in ledgers:
        standing = ledger.standing(content)
        if standing is not None:
            entry = standing.entry
            if kind == "removed" and standing.stage == "admitted":
                return "still admitted by the ledger, but no longer released: it was taken out of the set, or changed"
            return f"{entry.stage} by {entry.actor}: {entry.reason}"
    return "the ledger says nothing of it"
