"""What one step of a recipe changes, as folders laid over those of the layer before.

Owns: deltas on disk: `write_record`, `folder_for`, `over`; the digests of results by key.
Invariant: a delta says which step it comes from and names what it holds; a step that gives another result than it gave
before says so in the layer's info.
Must not know: how a step is carried out.

A delta is a folder with `record.json` and one folder (or file) for each place that changed, in the form that the kernel
stacks: see `stack`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from practicum.sandboxes.layering.content import result_digest
from practicum.sandboxes.layers import Layer

_RECORD = "record.json"


def folder_for(delta: Path, place: str) -> Path:
    """Where in a delta the changes of `place` are."""
    return delta / quote(place.lstrip("/"), safe="")


def write_record(
    delta: Path,
    state: Path,
    key: str,
    *,
    places: list[str],
    replaces: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
    notes: list[str] | None = None,
) -> None:
    """Say what a delta is, once its folders are as they will stay.

    `replaces` are places where nothing of the layer before shows any more; `env` is what the step adds to the
    environment. The digest of the result is compared with what the same key gave before, ever.
    """
    result = result_digest({place: str(folder_for(delta, place)) for place in places})
    said = [*(notes or []), *_other_result(state, key, result)]
    record = {"key": key, "result": result, "places": places, "replaces": replaces, "env": env or {}, "notes": said}
    (delta / _RECORD).write_text(json.dumps(record, indent=1))


def _other_result(state: Path, key: str, result: str) -> list[str]:
    """A note if this step gave another result before. The memory of it outlives what was built."""
    folder = state / "results"
    folder.mkdir(exist_ok=True, mode=0o755)
    path = folder / key[:32]
    before = path.read_text().split() if path.exists() else []
    if result not in before:
        with path.open("a") as file:
            file.write(f"{result}\n")
    if not before or before[-1] == result:
        return []
    return [f"built again with another result ({result[:12]}, before {before[-1][:12]}): this step is not reproducible"]


def over(layer: Layer, delta: Path, key: str) -> Layer:
    """The layer that shows `delta` above `layer`."""
    record: dict[str, Any] = json.loads((delta / _RECORD).read_text())
    parts = dict(layer.parts)
    for place in record["places"]:
        folder = folder_for(delta, place)
        below = () if place in record["replaces"] or not folder.is_dir() else parts.get(place, ())
        parts[place] = (str(folder), *below)
    info = layer.info | {"digest": key, "result": record["result"]}
    notes = [note for note in (layer.info.get("note"), *record["notes"]) if note]
    if notes:
        info["note"] = "; ".join(dict.fromkeys(notes))
    return Layer(layer.name, key, dict(sorted(parts.items())), layer.links, layer.env | record["env"], info)
