"""The part of a layer that is this host's: /usr, read-only, and a few files of /etc.

Owns: the bare layer named `host`, what it shares with `python`.
Invariant: nothing comes from a folder that the box's user could not read; of /etc, only what is written here and the
links that Debian's /usr/bin leads through. /usr/local is hidden: what a host's people put there is theirs.
Must not know: interpreters, the cache's place.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from practicum.records.tree import digest_of
from practicum.sandboxes.layering.stack import Parts

SCHEMA = 3
SCRATCH = digest_of({"schema": SCHEMA, "scratch": True})  # the layer that holds nothing
PATH = "/usr/local/bin:/usr/bin:/bin"
ETC = {
    "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:/tmp:/bin/sh\n",
    "group": "root:x:0:\nagent:x:1000:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_NAMES_OF_USR = ("/var/lib/dpkg/status", "/lib/apk/db/installed", "/var/lib/rpm/rpmdb.sqlite", "/etc/os-release")


def lay_etc(folder: Path) -> None:
    """Fill `folder`, which will be /etc."""
    folder.mkdir()
    for name, text in ETC.items():
        (folder / name).write_text(text)
    alternatives = Path("/etc/alternatives")
    (folder / "alternatives").mkdir()
    if alternatives.is_dir():
        for link in sorted(alternatives.iterdir()):
            if link.is_symlink() and str(link.readlink()).startswith("/usr/"):
                (folder / "alternatives" / link.name).symlink_to(link.readlink())


def system_folders() -> tuple[tuple[tuple[str, str], ...], dict[str, tuple[str, ...]]]:
    """/usr, and /bin, /lib and the like as this host has them: (target, place) of links, and parts."""
    links: list[tuple[str, str]] = []
    parts: dict[str, tuple[str, ...]] = {"/usr": ("/usr",)}
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            links.append((str(path.readlink()).lstrip("/"), str(path)))
        elif path.is_dir():
            parts[str(path)] = (str(path),)
    return tuple(links), parts


_PLACES = ("/usr/lib", "/usr/libexec", "/usr/share")
_PACKAGE_DEPTH = 6  # folders below one of them within which a package of Python shows


def foreign_packages(places: tuple[str, ...] = _PLACES) -> list[str]:
    """Folders of the system's other programs that hold packages of Python, sorted: an SDK's copy of a library, say.

    Not the interpreters' own folders, nor those of shared libraries. Nothing in a box needs them, and what is worked on
    there could be among them.
    """
    found: list[str] = []
    for place in places:
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            own = entry.name.startswith("python3") or "-linux-" in entry.name
            if not own and entry.is_dir(follow_symlinks=False) and _holds_package(entry.path, _PACKAGE_DEPTH):
                found.append(entry.path)
    return found


def _holds_package(folder: str, depth: int) -> bool:
    try:
        with os.scandir(folder) as entries:
            below = list(entries)
    except OSError:
        return False
    if any(entry.name == "__init__.py" for entry in below):
        return True
    deeper = (entry.path for entry in below if entry.is_dir(follow_symlinks=False))
    return depth > 1 and any(_holds_package(path, depth - 1) for path in deeper)


@dataclass(frozen=True, slots=True)
class HostPlan:
    """How to make the layer `host`. Its digest stands for /usr by what the package manager says is in it."""

    digest: str
    info: dict[str, str]

    def build(self, folder: Path) -> None:
        lay_etc(folder / "etc")
        (folder / "empty").mkdir()

    def parts(self, folder: Path) -> Parts:
        _, system = system_folders()
        own = {"/etc": (str(folder / "etc"),)}
        return system | own | ({"/usr/local": (str(folder / "empty"),)} if Path("/usr/local").is_dir() else {})


def host_plan() -> HostPlan:
    """The layer for this host as it is now."""
    names = {
        name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in _NAMES_OF_USR if Path(name).is_file()
    }
    digest = digest_of({"schema": SCHEMA, "etc": ETC, "host": names, "links": sorted(system_folders()[0])})
    return HostPlan(digest, {"origin": "system"})
