"""Root file systems that are put together once, for all boxes of one form.

Owns: `Roots`.
Invariant: a root can only be read, by whomever; a box adds its own places and nothing else. Putting a root together for
each box would cost more than all the rest of starting it.
Must not know: boxes, runtimes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from practicum.sandboxes.hub import Hub, Step
from practicum.sandboxes.layers import Layer

_ALWAYS = ("/proc", "/dev")  # for what the runtime mounts there


class Roots:
    """Those of one hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._made: dict[object, str] = {}
        hub.do([("D", "r", "")])

    def root(self, layer: Layer, folders: Sequence[str], files: Mapping[str, str]) -> str:
        """The folder of the hub that holds `layer`, empty `folders`, and files of the host by place. Made once.

        A file without a source is an empty one, to be mounted upon.
        """
        key = (layer.digest, tuple(folders), tuple(files.items()))
        if key not in self._made:
            place = f"r/{len(self._made)}"
            self._hub.do(_steps(place, layer, folders, files), plain=True)
            self._made[key] = place
        return self._made[key]


def _steps(root: str, layer: Layer, folders: Sequence[str], files: Mapping[str, str]) -> list[Step]:
    steps: list[Step] = [("D", root, ""), ("T", root, "mode=755,size=1m")]
    made: set[str] = set()

    def there(path: str) -> bool:
        return any(path == part or path.startswith(part + "/") for part in done)

    def folder(path: str) -> None:
        """Make a folder, and those above it."""
        if path in ("", "/") or path in made or there(path):
            return
        folder(path.rpartition("/")[0])
        made.add(path)
        steps.append(("D", root + path, ""))

    def file(path: str) -> None:
        if not there(path):
            folder(path.rpartition("/")[0])
            steps.append(("N", root + path, ""))

    done: list[str] = []
    for part, sources in layer.parts.items():
        if os.path.isdir(sources[0]):  # noqa: PTH112
            folder(part)
        else:
            file(part)
        if len(sources) == 1:
            steps.append(("F", sources[0], root + part))
        else:
            steps.append(("O", root + part, f"userxattr,lowerdir={':'.join(plain_path(f) for f in sources)}"))
        done.append(part)
    for target, place in layer.links:
        folder(place.rpartition("/")[0])
        steps.append(("K", root + place, target))
    for path in (*_ALWAYS, *folders):
        folder(path)
    for path, source in files.items():
        file(path)
        if source:
            steps.append(("F", source, root + path))
    return [*steps, ("W", root, "")]


def plain_path(path: str) -> str:
    """A path as the kernel wants it among the options of an overlay."""
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
