"""A run's model as a folder that other programs read, with its model card.

Owns: `export_run`, the card.
Invariant: a folder appears whole or not at all; the card says only what the run folder records, and what it does not
record is said to be unknown.
Must not know: training, boxes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from practicum.errors import ConfigError, StoreError
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.trained import chosen_version
from practicum.pipeline.wording import interval, percent, points
from practicum.policies.local.chat import ChatRenderer
from practicum.policies.local.folder import save_adapters, save_folder
from practicum.policies.local.known import KNOWN
from practicum.policies.local.lora import Adapters
from practicum.policies.local.saved import Saved
from practicum.weights.store import VersionStore


def export_run(run: Path, target: Path, *, adapters: bool = False) -> dict[str, Any]:
    """Write the chosen version of `run` into `target`, which is not there or empty; what was written, as data.

    Merged weights, or with `adapters` those alone. Raises `ConfigError`, `StoreError` or `PolicyRefused`.
    """
    with RunFolder.open(run) as folder:
        config, summary, release = folder.config, folder.summary() or {}, _release(folder)
        name = folder.id
    if config.policy.model is None:
        raise ConfigError(
            f"{run} trained a decoder of its own, whose tokenizer other programs do not read",
            fix="export a run with policy.model",
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} is there already", fix="name a new folder")
    version, digest = chosen_version(run)
    versions = VersionStore(run / "checkpoints")
    described = json.loads(versions.read(version, "model.json"))
    decoder, renderer = Saved(versions.read, versions.fetch).build(version)
    assert isinstance(renderer, ChatRenderer)  # adapters stand upon nothing else
    license_ = KNOWN[config.policy.model].license if config.policy.model in KNOWN else None
    facts = {
        "run": name,
        "version": version,
        "weights": digest,
        "base": config.policy.model,
        "base_digest": described["base_digest"],
        "license": license_,
        "tasks": config.tasks.path or f"the built-in family {config.tasks.family}, seed {config.tasks.seed}",
        "release": release,
        "verifier": (summary.get("provenance") or {}).get("verifier"),
        "held_out": summary.get("held_out"),
    }
    draft = target.with_name(f".tmp-{target.name}")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        if adapters:
            low_rank = Adapters(described["rank"], described["alpha"], tuple(described["targets"]))
            save_adapters(versions.fetch(version), low_rank, decoder.shape, draft, base=described["base"])
        else:
            save_folder(decoder, renderer.tokenizer, draft, decoder.state_dict())
        (draft / "README.md").write_text(card(facts, adapters=adapters), "utf-8")
        if target.exists():
            target.rmdir()
        draft.rename(target)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise StoreError(f"cannot write {target}: {error.strerror or error}", fix="free some disk") from error
    return {**facts, "folder": str(target), "kind": "adapters" if adapters else "merged"}


def card(facts: Mapping[str, Any], *, adapters: bool) -> str:
    """The model card of `facts`, as Markdown with the header that model hubs read."""
    header = ["---", f"license: {str(facts['license']).lower() if facts['license'] else 'other'}"]
    header += [f"library_name: {'peft' if adapters else 'transformers'}", "---", ""]
    rows = {
        "base": f"{facts['base']} (SHA-256 of its weights {facts['base_digest']})",
        "licence of the base": facts["license"] or "unknown; see the base",
        "weights": f"{'adapters' if adapters else 'base and adapters, merged'}; those of version {facts['version']} "
        f"have SHA-256 {facts['weights']}",
        "tasks": facts["tasks"],
        "data release": facts["release"] or "none",
        "verifier": facts["verifier"] or "unknown: the run has not finished",
    }
    table = ["| | |", "|--|--|", *(f"| {name} | {value} |" for name, value in rows.items())]
    return "\n".join([*header, f"# {facts['run']}", "", *table, "", "## Evaluation", "", _evaluation(facts), ""])


def _evaluation(facts: Mapping[str, Any]) -> str:
    held_out = facts["held_out"]
    if held_out is None:
        return "The run has not finished, so that its held-out tasks were not looked at again."
    before, after, gap = held_out["before"], held_out["after"], held_out["difference"]
    return (
        f"Success on held-out tasks, {held_out['n']} attempts each, 95 % intervals: before "
        f"{percent(before['rate'])} ({interval(before['low'], before['high'])}), after {percent(after['rate'])} "
        f"({interval(after['low'], after['high'])}); the difference, paired by task, is {points(gap['mean'])} points "
        f"({points(gap['low'])} to {points(gap['high'])})."
    )


def _release(folder: RunFolder) -> str | None:
    """Digest of the data release that the run's tasks came from, as its audit log has it."""
    found: str | None = None
    for line in folder.audit_path.read_text("utf-8").splitlines():
        entry = json.loads(line)
        if entry.get("event") == "tasks_laid":
            found = entry["data"].get("release")
    return found
