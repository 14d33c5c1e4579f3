"""`practicum tasks release`: make a release, read one again, compare two.

Owns: this command.
Invariant: exit code 1 where no release was made, a task that is admitted could not be released, or a release is not
what it was, or cannot be proven to be; 0 where tasks were left out only because they are not admitted.
Must not know: what a release holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.failure import NEGATIVE
from practicum.cli.output import JsonOption, emit
from practicum.errors import ConfigError, TaskError

if TYPE_CHECKING:
    from practicum.curation.release import Released

_DIGEST = re.compile(r"[0-9a-f]{12,64}")
_SHOWN = 20  # reasons told one by one, for people


def release(
    taskset: Annotated[Path | None, typer.Argument(metavar="TASKSET", help="What is released.")] = None,
    out: Annotated[Path | None, typer.Argument(metavar="OUT", help="The folder of releases.")] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="By default that of TASKSET.")] = None,
    parent: Annotated[Path | None, typer.Option(metavar="DIR", help="The release that this one follows.")] = None,
    allow_unlicensed: Annotated[
        bool, typer.Option("--allow-unlicensed", help="Also release tasks whose licence is not stated.")
    ] = False,
    require_review: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, metavar="BOUND", help="Only if reviews bound the share of defects by this, at 95 %."
        ),
    ] = None,
    verify: Annotated[Path | None, typer.Option(metavar="DIR", help="Read a release again; name what differs.")] = None,
    digest: Annotated[
        str | None,
        typer.Option(
            metavar="HEX", help="With --verify: the release's digest as it was told to you, 12 digits or more."
        ),
    ] = None,
    diff: Annotated[tuple[Path, Path] | None, typer.Option(metavar="A B", help="What B changes of release A.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Release the admitted tasks of TASKSET as OUT/NAME-DIGEST, a folder named by what is in it.

    Tasks that are not admitted are left out and named, and the release is a success (exit 0). Exit 1 says that none was
    made, or that a task which is admitted had to be refused, such as one without a licence.
    """
    if sum((verify is not None, diff is not None, taskset is not None)) != 1 or (taskset is None) != (out is None):
        raise ConfigError(
            "give one of: TASKSET and OUT, --verify DIR, --diff A B", fix="practicum tasks release TASKSET OUT"
        )
    if digest is not None and (verify is None or not _DIGEST.fullmatch(digest.lower())):
        raise ConfigError(
            f"--digest {digest} does not name a release to verify", fix="--verify DIR --digest HEX, 12 to 64 digits"
        )
    if verify is not None:
        _verify(verify, digest.lower() if digest else None, as_json=as_json)
    elif diff is not None:
        _diff(*diff, as_json=as_json)
    elif taskset is not None and out is not None:
        from practicum.curation.release import make_release, release_of

        earlier = release_of(parent) if parent is not None else None
        if parent is not None and earlier is None:
            raise TaskError(f"{parent} is no release", fix="name the folder that holds release.json")
        made = make_release(
            taskset,
            out,
            name=name,
            allow_unlicensed=allow_unlicensed,
            parent=earlier,
            review_bound=require_review,
        )
        _made(made, as_json=as_json)


def _made(made: Released, *, as_json: bool) -> None:
    ref = made.ref
    document = {
        "release": {"name": ref.name, "digest": ref.digest, "path": str(ref.path)} if ref else None,
        "tasks": made.tasks if ref else 0,
        "left_out": made.left_out,
        "refused": made.refused,
        "problem": made.problem,
    }
    first = f"released {made.tasks} tasks as {ref.path}" if ref else f"nothing was released: {made.problem}"
    lines = [first, *_reasons("not admitted", made.left_out), *_reasons("refused", made.refused)]
    emit(document, _plain(lines), as_json=as_json)
    if ref is None or made.refused:
        raise typer.Exit(NEGATIVE)


def _verify(folder: Path, digest: str | None, *, as_json: bool) -> None:
    from practicum.curation.release_check import proven_by, read_manifest, verify_release

    found, proof = verify_release(folder, digest), proven_by(folder, digest)
    manifest = read_manifest(folder)
    document = {
        "release": str(folder),
        "name": manifest["name"],
        "tasks": len(manifest["tasks"]),
        "intact": not found,
        "proven_by": proof,
        "differs": [{"kind": e.kind, "path": e.path, "task": e.task, "said": e.said} for e in found],
    }
    if found:
        text = [f"{folder} differs from what was released:", *(f"  ✗ {each.said}" for each in found)]
    else:
        splits = ", ".join(f"{count} {split}" for split, count in _splits(manifest).items())
        text = [f"{folder} is intact: {manifest['name']}, {len(manifest['tasks'])} tasks ({splits})"]
        if proof is None:
            text = [
                f"not proven: {folder} agrees with its own manifest, but its name bears no digest, and if all of it had"
                " been written anew, that could not be told",
                "  fix: give the digest that the release was made with: --digest HEX",
            ]
    emit(document, _plain(text), as_json=as_json)
    if found or proof is None:
        raise typer.Exit(NEGATIVE)


def _splits(manifest: Mapping[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in manifest["tasks"]:
        counts[row["split"]] = counts.get(row["split"], 0) + 1
    return dict(sorted(counts.items()))


def _diff(before: Path, after: Path, *, as_json: bool) -> None:
    from practicum.curation.release_check import diff_releases

    found = diff_releases(before, after)
    lines = [", ".join(f"{len(rows)} {kind}" for kind, rows in found.items())]
    for kind, rows in found.items():
        for each in rows:
            what = f" ({', '.join(each['what'])})" if "what" in each else ""
            lines.append(f"  {kind:<10}{each['task']}{what}: {each['reason']}")
    emit({"before": str(before), "after": str(after), **found}, _plain(lines), as_json=as_json)


def _reasons(what: str, reasons: Mapping[str, str]) -> list[str]:
    if not reasons:
        return []
    lines = [f"{len(reasons)} {what}:", *(f"  ✗ {task}: {why}" for task, why in list(reasons.items())[:_SHOWN])]
    return [*lines, f"  … and {len(reasons) - _SHOWN} more (--json lists them all)"] if len(reasons) > _SHOWN else lines


def _plain(lines: list[str]) -> str:
    from practicum.pipeline.wording import visible

    return "\n".join(visible(line).replace("\n", " ") for line in lines)
