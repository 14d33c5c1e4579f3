"""Releases: a vetted state of a task set as a folder that is named by its own digest.

Owns: `make_release`, `Released`, `ReleaseRef`, `release_of`; the layout of a release folder.
Invariant: a release holds only tasks whose very content the ledger has admitted, on evidence that is the ledger's; the
same task set, ledger and options give the same digest on any day; a folder is written whole or not at all, and never
changed.
Must not know: how tasks are vetted, how a release is used.

    release.json     the manifest, as canonical JSON: its SHA-256 is the release's digest
    SHA256SUMS       of every other file, as `sha256sum -c` reads it; the manifest holds its digest
    tasks/           the task directories, each with a canary that is dropped when they are read
    evidence.jsonl   what all gates found on each task (`curation.assessments`)
    LICENCES.txt     which tasks stand under which licence
    licences/        the texts of licences that lay in the task set's folder
    made.json        when it was made, and by which version; not part of what is digested
    .practicum/      the ledger up to the release; what is decided later on its tasks is added there
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from practicum import __version__
from practicum.curation.assessments import FILE as ASSESSMENTS
from practicum.curation.assessments import RELEASED, Assessments, assessment_line
from practicum.curation.ledger import FILE as LEDGER
from practicum.curation.ledger import Ledger, ledger_path, taskset_folder
from practicum.curation.release_check import altered_files
from practicum.curation.release_choice import Chosen, choose, noise_of, unreviewed
from practicum.curation.release_manifest import (
    LICENCES,
    MADE,
    MANIFEST,
    RELEASE,
    SUMS,
    canary_of,
    licences_text,
    manifest_bytes,
    sums_of,
    sums_text,
)
from practicum.curation.review import Reviews, quarantine_defects, reviews_path
from practicum.curation.review_report import report_on
from practicum.curation.reviewqueue import batch_of
from practicum.errors import ConfigError, TaskError
from practicum.records.task import Task
from practicum.tasks.harbor import load_task, save_task
from practicum.trajectories.durable import failed

_SCRATCH = ".release."
_LICENCE_TEXT = re.compile(r"licen[cs]e|copying|notice", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class ReleaseRef:
    """Which release a folder is."""

    name: str
    digest: str
    path: Path


@dataclass(frozen=True, slots=True)
class Released:
    """What became of a release. `ref` is None where none was made, and `problem` says why.

    `left_out` are tasks that are not admitted, `refused` ones that are but cannot be released; task → why.
    """

    ref: ReleaseRef | None
    tasks: int
    left_out: dict[str, str]
    refused: dict[str, str]
    problem: str | None = None


def make_release(
    taskset: Path,
    out: Path,
    *,
    name: str | None = None,
    allow_unlicensed: bool = False,
    parent: ReleaseRef | None = None,
    review_bound: float | None = None,
) -> Released:
    """Release what the ledger of `taskset` admits, as `out/<name>-<first 12 digits of its digest>/`.

    Where `taskset` is a release itself, it is the parent, unless another is given, and lends its name. Where that very
    release is there already, it is left as it is. With `review_bound`, none is made unless people's reviews of this
    very state bound the share of defects by it. Raises `TaskError` for a task that cannot be read, or a folder that is
    there and was altered, `ConfigError` for a name or a place that cannot be used.
    """
    earlier = release_of(taskset)
    parent = parent or earlier
    name = name or (earlier.name if earlier else taskset.resolve().name)
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot name a release", fix="letters, digits, '.', '_', '-', at most 64")
    if out.resolve().is_relative_to(taskset_folder(taskset)):
        raise ConfigError(
            f"{out} lies in the task set itself, which would then hold every task twice", fix="go beside it"
        )
    ledger, reviews = Ledger(ledger_path(taskset)), Reviews(reviews_path(taskset))
    quarantine_defects(reviews, ledger)
    ledger.refresh()
    chosen = choose(taskset, ledger, allow_unlicensed=allow_unlicensed)
    report = report_on(reviews.all, list(reviews.queues.values()), batch_of(chosen.contents), chosen.contents)
    problem = "no task can be released" if not chosen.rows else None
    if problem is None and review_bound is not None:
        problem = unreviewed(report, [row["content"] for row in chosen.rows], review_bound)
    if problem is not None:
        return Released(None, len(chosen.rows), chosen.left_out, chosen.refused, problem)
    manifest = {
        "schema": RELEASE,
        "name": name,
        "canary": canary_of(name, chosen.rows),
        "tasks": chosen.rows,
        "verifiers": sorted({row["verifier"] for row in chosen.rows}),
        "protected": chosen.protected,
        "noise": noise_of(taskset, chosen.rows),
        "ledger": {"entries": len(ledger.entries), "head": ledger.head},
        "reviews": {"head": reviews.head, **report.summary()} if reviews.all else None,
        "parent": {"name": parent.name, "digest": parent.digest} if parent else None,
    }
    ref = _write(taskset, out, manifest, chosen)
    return Released(ref, len(chosen.rows), chosen.left_out, chosen.refused)


def release_of(path: Path) -> ReleaseRef | None:
    """The release that `path` is, or is the task folder or a task of; None where it belongs to none.

    Every file is read and compared, so that nothing altered goes under the release's name; raises `TaskError` then.
    """
    path = path.resolve()
    parts = (MANIFEST, SUMS, MADE)
    around = (path, *(each for each in path.parents[:2] if path.is_relative_to(each / "tasks")))
    folder = next((each for each in around if all((each / part).is_file() for part in parts)), None)
    if folder is None:
        return None
    problems = altered_files(folder)
    if problems:
        raise TaskError(
            f"{folder} is no longer the release that it was: {problems[0].said}",
            fix=f"practicum tasks release --verify {folder} names all that differs; take a fresh copy",
        )
    data = (folder / MANIFEST).read_bytes()
    return ReleaseRef(json.loads(data)["name"], hashlib.sha256(data).hexdigest(), folder)


def _write(taskset: Path, out: Path, manifest: dict[str, Any], chosen: Chosen) -> ReleaseRef:
    try:
        out.mkdir(parents=True, exist_ok=True)
        for left in out.glob(f"{_SCRATCH}*"):
            if not _alive(left.name.removeprefix(_SCRATCH).partition(".")[0]):
                shutil.rmtree(left)
        scratch = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}.", dir=out))
    except OSError as error:
        raise failed(out / MANIFEST, error) from error
    try:
        fresh = scratch / "new"
        kept = Assessments(ledger_path(taskset).with_name(ASSESSMENTS))
        _write_parts(taskset, fresh, manifest, chosen, kept)
        sums = sums_text(sums_of(fresh))
        (fresh / SUMS).write_text(sums, encoding="utf-8", newline="\n")
        manifest = manifest | {"sums": hashlib.sha256(sums.encode()).hexdigest()}
        data = manifest_bytes(manifest)
        digest = hashlib.sha256(data).hexdigest()
        (fresh / MANIFEST).write_bytes(data)
        for file in fresh.rglob("*"):
            if file.is_file():
                file.chmod(0o555 if file.stat().st_mode & 0o111 else 0o444)
        made = {"digest": digest, "time": datetime.now(UTC).isoformat(timespec="seconds"), "practicum": __version__}
        (fresh / MADE).write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        (fresh / ".practicum").mkdir()
        shutil.copyfile(ledger_path(taskset), fresh / ".practicum" / LEDGER)
        target = out / f"{manifest['name']}-{digest[:12]}"
        if not target.exists():
            fresh.rename(target)
        elif problems := altered_files(target):
            raise TaskError(f"{target} is there already, and was altered: {problems[0].said}", fix="remove it")
        return ReleaseRef(manifest["name"], digest, target)
    finally:
        shutil.rmtree(scratch)


def _alive(pid: str) -> bool:
    """Whether the process that was making a release still runs."""
    return not pid.isdecimal() or Path(f"/proc/{pid}").exists()


def _write_parts(taskset: Path, fresh: Path, manifest: dict[str, Any], chosen: Chosen, kept: Assessments) -> None:
    """Everything that SHA256SUMS lists. A task that changed since it was chosen is refused."""
    fresh.mkdir(mode=0o755)
    with open(fresh / RELEASED, "wb") as evidence:
        for row, source in zip(chosen.rows, chosen.folders, strict=True):
            task, found = load_task(source), kept.get(row["content"])
            if task.content != row["content"] or found is None:
                raise TaskError(f"{source} was changed while it was being released", fix="release again")
            _write_task(task, fresh / row["folder"], manifest["canary"])
            evidence.write(assessment_line(found, timed=False) + b"\n")
    (fresh / LICENCES).write_text(licences_text(chosen.rows), encoding="utf-8", newline="\n")
    texts = [file for file in sorted(taskset_folder(taskset).iterdir()) if _LICENCE_TEXT.match(file.name)]
    for file in texts:
        if file.is_file() and not file.is_symlink():
            (fresh / "licences").mkdir(exist_ok=True)
            shutil.copyfile(file, fresh / "licences" / file.name)


def _write_task(task: Task, folder: Path, canary: str) -> None:
    save_task(task, folder)
    for name, line in (("instruction.md", f"<!-- {canary} -->\n"), ("task.toml", f"# {canary}\n")):
        path = folder / name
        path.write_bytes(line.encode() + path.read_bytes())
