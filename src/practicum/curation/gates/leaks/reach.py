"""What is within the reach of an agent: its box, looked at from inside.

Owns: `Reach`, `look`, `packaged`.
Invariant: a box like an agent's is listed and read, its workspace, all else that is not the base's, and what the
layer's recipe added to its base; what could not be read is named, never passed over. Listings of layers are kept.
Must not know: what is looked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from practicum.curation.gates.contract import Case, NotAssessed
from practicum.curation.gates.environment import agent_box
from practicum.errors import BoxPathError
from practicum.records.recipe import Recipe
from practicum.records.tree import Tree
from practicum.sandboxes.contract import BoxSpec, Sandbox

_SYSTEM = (
    *("usr", "lib", "lib32", "lib64", "libx32", "bin", "sbin", "etc", "proc", "sys", "dev", "opt", "boot"),
    ".practicum",
)
_LISTED = r"\( -name '*.py' -o -name '*.pyc' -o -name '*.patch' -o -name '*.orig' -o -name '*.whl' \)"
_FIND = "command -v find >/dev/null || exit 97; find {where} -type f {only} {say} 2>/dev/null; exit 0"
_STAT = r"-exec stat -c '%s %Y %n' {} +"
_NEVER = "-path /proc -prune -o -path /sys -prune -o -path /dev -prune -o -path /.practicum -prune -o"
_PACKAGES = ("/site-packages/", "/dist-packages/")
_MAX_BYTES = 32 << 20  # of one file
_MAX_FILES = 2000
_MAX_ADDED = 32 << 20  # of what a recipe added, all together
_MAX_OUTPUT = 64 << 20
_FIND_S = 120.0
_NO_FIND = 97


@dataclass(frozen=True, slots=True)
class Reach:
    """What an agent's box holds: the workspace as listed, other files by path, what the recipe added to its base,
    all paths of the layer by file name. `unread` are files that could not be read for their size or number."""

    workspace: Tree
    elsewhere: Mapping[str, bytes]
    added: Mapping[str, bytes]
    layer: Mapping[str, Sequence[str]]
    unread: Sequence[str]


async def look(case: Case, wanted: Sequence[str]) -> Reach:
    """What there is in a box like an agent's; `wanted` are the paths under repair. Raises `SandboxError`."""
    task, bench = case.task, case.bench
    digest = bench.layer_of(task.layer)
    base = await _base_listing(case)
    unread: list[str] = []
    async with bench.workshop.provider.create(_talkative(agent_box(task))) as box:
        listing = await box.list_tree(task.workspace, max_bytes=2 * task.limits.disk_bytes)
        outside = [f"-path {path} -prune -o" for path in (*(f"'/{name}'" for name in _SYSTEM), f"'{task.workspace}'")]
        paths = await _find(box, f"/ {' '.join(outside)}")
        elsewhere = await _read_all(box, paths, unread)
        if digest not in bench.listings:
            by_name: defaultdict[str, list[str]] = defaultdict(list)
            for path in await _find(box, "/usr /opt /lib", _LISTED):
                by_name[path.rpartition("/")[2]].append(path)
            bench.listings[digest] = dict(by_name)
        layer = bench.listings[digest]
        elsewhere |= await _read_all(box, list(_copies(wanted, layer)), unread)
        if base is None:
            return Reach(listing.files, elsewhere, {}, layer, unread)
        key = f"added:{task.workspace}:{digest}"
        if key not in bench.listings:
            missed: list[str] = []
            new = sorted(await _stamps(box, task.workspace) - base)
            new_paths = sorted({line.split(" ", 2)[-1] for line in new}, key=lambda path: (packaged(path), path))
            read = await _read_all(box, new_paths, missed, total=_MAX_ADDED)
            bench.listings[key] = ({path: data for path, data in read.items() if path not in elsewhere}, missed)
        added, missed = bench.listings[key]
        return Reach(listing.files, elsewhere, added, layer, [*unread, *missed])


async def _base_listing(case: Case) -> frozenset[str] | None:
    """Every file of the base of the layer with its size and time; None where the layer is no recipe's."""
    task, bench = case.task, case.bench
    if not isinstance(task.layer, Recipe):
        return None
    key = f"base:{task.workspace}:{bench.layer_of(task.layer.base)}"
    if key not in bench.listings:
        spec = replace(agent_box(task), layer=task.layer.base, files={})
        async with bench.workshop.provider.create(_talkative(spec)) as box:
            bench.listings[key] = await _stamps(box, task.workspace)
    found: frozenset[str] = bench.listings[key]
    return found


async def _stamps(box: Sandbox, workspace: str) -> frozenset[str]:
    where = f"/ {_NEVER} -path '{workspace}' -prune -o"
    lines = await _find(box, where, say=_STAT, sign=b"\n")
    if not lines:
        raise NotAssessed("the layer has no `stat`, so what its recipe added cannot be told")
    return frozenset(lines)


def packaged(path: str) -> bool:
    """Whether the file lies where packages are installed."""
    return any(part in path for part in _PACKAGES)


def _talkative(spec: BoxSpec) -> BoxSpec:
    """The same box, which may say more."""
    return replace(spec, limits=replace(spec.limits, output_bytes=_MAX_OUTPUT))


async def _find(box: Sandbox, where: str, only: str = "", say: str = "-print0", sign: bytes = b"\0") -> list[str]:
    found = await box.run(["/bin/sh", "-c", _FIND.format(where=where, only=only, say=say)], timeout_s=_FIND_S)
    if found.exit_code == _NO_FIND:
        raise NotAssessed("the layer has no `find`, so the box cannot be searched")
    if found.timed_out or found.truncated:
        raise NotAssessed("there is more in the box than can be searched")
    return [path.decode("utf-8", "surrogateescape") for path in found.stdout.split(sign) if path]


async def _read_all(
    box: Sandbox, paths: Sequence[str], unread: list[str], *, total: int = _MAX_OUTPUT
) -> dict[str, bytes]:
    """Files by path; what is too large or too many goes to `unread`. What an agent cannot read either is left out."""
    read: dict[str, bytes] = {}
    unread += paths[_MAX_FILES:]
    for path in paths[:_MAX_FILES]:
        most = min(_MAX_BYTES, total)
        try:
            read[path] = await box.read(path, max_bytes=most)
        except BoxPathError:
            if (await box.run(["test", "-r", path], timeout_s=_FIND_S)).exit_code == 0:
                unread.append(path)  # an agent could read it
            continue
        total -= len(read[path])
    return read


def _copies(wanted: Sequence[str], layer: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Files of the layer that stand where a file under repair would be installed."""
    for path in wanted:
        inner = path.removeprefix("src/").removeprefix("lib/")
        for place in layer.get(inner.rpartition("/")[2], ()):
            if place.endswith(f"/{inner}"):
                yield place
