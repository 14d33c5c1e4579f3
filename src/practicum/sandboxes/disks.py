"""The writable places of boxes, as mounts that the hub makes: fresh, stacked, forked.

Owns: `Disks` (those of one owner), `Disk` (that of one box), `Place`, `Frozen`.
Invariant: all places of a box share one bounded file system in memory; what is frozen is never written again, and
its memory is given back when neither a box nor a snapshot uses it. No operation looks at files, so none costs more
where there are many.
Must not know: how boxes are started, what is in them.

A *slot* is an empty folder that is bound, following, at a place of the box: what is mounted on it shows in the box.
The slots of a box are in a shared mount of their own, so that no other box hears of it. Each generation of a disk is a
file system of its own, `d/<box>.<n>`; in it each place has an upper folder and, where there is something below it, an
overlay.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from practicum.errors import SandboxError, UnsupportedControl
from practicum.sandboxes.hub import Hub, Slots, Step
from practicum.sandboxes.launch import Mount
from practicum.sandboxes.roots import Roots, plain_path

MOST_PLACES = 60
MOST_STACKED = 200  # the kernel takes 500 layers, and a page of options
_FEWEST_INODES, _BYTES_PER_INODE = 1 << 15, 2048


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a box. `lowers` are folders below it, topmost first; `keep` a folder of the host for its changes.

    Where it is not `frozen` with the box, snapshots leave it out. With `fixed`, it shows that folder, read-only.
    """

    path: str
    lowers: tuple[str, ...] = ()
    mode: int = 0o755
    keep: str = ""
    frozen: bool = True
    fixed: str = ""


@dataclass(frozen=True, slots=True)
class Frozen:
    """Stacks of folders by place, topmost first, as they were at one moment."""

    stacks: dict[str, tuple[str, ...]]

    @property
    def systems(self) -> set[str]:
        """The file systems in memory that hold them."""
        return {
            "/".join(folder.split("/")[:2]) for stack in self.stacks.values() for folder in stack if folder[0] != "/"
        }


class Disks:
    """The disks of one owner's boxes, by one hub."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._numbers = itertools.count()
        self._holders: Counter[str] = Counter()
        self.roots = Roots(hub)
        hub.do([("D", name, "") for name in ("d", "p", "s", *(f"p/{i}" for i in range(MOST_PLACES)))])

    def new(self, places: Sequence[Place], size: int) -> Disk:
        """The disk of a box that is about to start, of `size` bytes."""
        return Disk(self, next(self._numbers), places, size)

    def hold(self, systems: set[str]) -> None:
        self._holders.update(systems)

    def let_go(self, systems: set[str]) -> None:
        if unused := self.unhold(systems):
            self.hub.clear(unused)

    def unhold(self, systems: set[str]) -> list[str]:
        """As `let_go`; those that nobody holds any more are for the caller to clear."""
        self._holders.subtract(systems)
        unused = [name for name in systems if self._holders[name] <= 0]
        for name in unused:
            del self._holders[name]
        return unused


class Disk:
    """The disk of one box. Made by `Disks.new`."""

    def __init__(self, disks: Disks, number: int, places: Sequence[Place], size: int) -> None:
        self._disks = disks
        self._number = number
        self._places = tuple(places)
        inodes = max(_FEWEST_INODES, size // _BYTES_PER_INODE)
        self._options = f"mode=755,size={size},nr_inodes={inodes}"
        self._shared = f"s/{number}"
        self._slots = {place.path: f"{self._shared}/{i}" for i, place in enumerate(self._places)}
        self.bare = Frozen({place.path: place.lowers for place in self._places})  # nothing but the layer
        self._start = self.bare
        self._below = self._start  # what the present uppers lie on
        self._generations = itertools.count()
        self._uppers = itertools.count()
        self._system = ""
        self._held: set[str] = set()
        self._open: dict[str, str] = {}
        self.broken = False  # whether its places are not what they should be
        self._top: dict[str, str] = {}
        if len(places) > MOST_PLACES:
            raise UnsupportedControl(f"a box can have {MOST_PLACES} writable and read-only places, not {len(places)}")

    @property
    def forked(self) -> bool:
        """Whether it began from what another box had written."""
        return bool(self._start.systems)

    def show(self, root: str) -> tuple[Slots, list[Mount]]:
        """What the hub must give to the program that makes the box, and what that must mount itself.

        `root` is the folder of the hub that is to be the box's root, and has its places; empty where there is none.
        """
        targets, mounts = [], []
        for i, path in enumerate(self._slots):
            covered = not root or path.startswith(("/dev/", "/proc/"))  # the runtime mounts these anew
            targets.append(f"p/{i}" if covered else root + path)
            if covered:
                mounts.append(Mount(path, f"{self._disks.hub.folder}/p/{i}", follows=True))
        return Slots(self._shared, tuple(targets)), mounts

    def start(self, frozen: Frozen | None) -> None:
        """Give a box that has just started its places: empty above what they lie on, which `frozen` says if given."""
        self._start = frozen or self._start
        self.attach(self._start)

    def attach(self, below: Frozen) -> None:
        """Give the box new places above `below`. What was written before is given back in the background."""
        if set(below.stacks) != set(self._slots):
            raise SandboxError(
                f"a snapshot of {', '.join(sorted(below.stacks))} cannot be had in a box with {', '.join(self._slots)}"
            )
        system = f"d/{self._number}.{next(self._generations)}"
        before = self._held
        self._hold({system} | below.systems | before)
        self._lay(system, below, [("D", system, ""), ("T", system, self._options)])
        self._system = system
        self._hold({system} | below.systems | self._start.systems)

    def stack(self) -> Frozen:
        """Freeze what the places hold now, and go on above it. The caller holds the result, and lets go of it."""
        stacks = {}
        for place in self._places:
            above = (self._top[place.path],) if place.frozen and not place.fixed else ()
            stacks[place.path] = above + self._below.stacks[place.path]
            if len(stacks[place.path]) > MOST_STACKED:
                raise SandboxError(
                    f"{place.path} has been frozen {MOST_STACKED} times", fix="save it, and start from that"
                )
        frozen = Frozen(stacks)
        self._lay(self._system, frozen, [], kept=True)
        self._hold({self._system} | frozen.systems | self._start.systems)
        return frozen

    def reset(self) -> None:
        """As at the start."""
        self.attach(self._start)

    def open_place(self, path: str) -> None:
        """Put an empty, writable folder at a fixed place, to be filled and sealed. It lasts until the next reset."""
        folder = f"{self._system}/r{next(self._uppers)}"
        slot = self._slots[path]
        self._disks.hub.do([("D", folder, ""), ("U", slot, ""), ("B", folder, slot)])
        self._open[path] = folder

    def seal_place(self, path: str) -> None:
        """What was put there can from now on only be read."""
        slot = self._slots[path]
        self._disks.hub.do([("U", slot, ""), ("F", self._open.pop(path), slot)])

    def remove(self) -> None:
        """Nothing is left of it; the box has ended."""
        unused = self._disks.unhold(self._held)
        self._disks.hub.clear([*unused, self._shared, *self._slots.values(), self._shared])

    def _hold(self, systems: set[str]) -> None:
        """Hold these file systems, and no others any more."""
        new, old = systems - self._held, self._held - systems
        self._held = systems
        self._disks.hold(new)
        self._disks.let_go(old)

    def _lay(self, system: str, below: Frozen, steps: list[Step], *, kept: bool = False) -> None:
        """Mount new uppers on `system` above `below`; with `kept`, those that snapshots leave out stay as they are."""
        tops = dict(self._top) if kept else {}
        turn = next(self._uppers)
        exchange: list[Step] = []  # after all that could fail for want of room
        for i, place in enumerate(self._places):
            if kept and (place.fixed or not place.frozen):
                continue
            if self._top:
                exchange.append(("U", self._slots[place.path], ""))
            if place.fixed:
                exchange.append(("F", place.fixed, self._slots[place.path]))
                continue
            top = f"{place.keep}/upper" if place.keep else f"{system}/u{i}.{turn}"
            work = f"{place.keep}/work" if place.keep else f"{system}/w{i}.{turn}"
            steps += [("D", top, ""), ("M", top, str(place.mode))]
            source = top
            if below.stacks[place.path]:
                source = f"{system}/m{i}.{turn}"
                options = _options(below.stacks[place.path], top, work)
                steps += [("D", work, ""), ("D", source, ""), ("O", source, options)]
            exchange.append(("B", source, self._slots[place.path]))
            tops[place.path] = top
        self._disks.hub.do(steps)
        self.broken = True  # until all of them are exchanged
        self._disks.hub.do(exchange)
        self.broken = False
        self._top, self._below = tops, below


def _options(lowers: Sequence[str], upper: str, work: str) -> str:
    stack = ":".join(plain_path(folder) for folder in lowers)
    return f"userxattr,volatile,lowerdir={stack},upperdir={plain_path(upper)},workdir={plain_path(work)}"
