"""What the layer named `python` consists of.

Owns: the choice of an interpreter, the copy of pytest.
Invariant: the digest covers everything that is copied, and the interpreter; nothing comes from a folder that
the box's user could not read. The system's /usr is bound as it is and named by the interpreter's hash only.
Must not know: the cache's place, runtimes.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from practicum.errors import CreateFailed
from practicum.records.tree import digest_of
from practicum.sandboxes.layering.stack import Parts
from practicum.sandboxes.layering.system import ETC, SCHEMA, foreign_packages, lay_etc, system_folders

_OLDEST = (3, 11)
SYSTEM_PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")
_PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
_ASK = (
    "import json, site, sys; print(json.dumps({'version': list(sys.version_info[:3]), 'sites':"
    " site.getsitepackages(), 'prefix': sys.base_prefix}))"
)
_RUNNING = f"python{sys.version_info.major}.{sys.version_info.minor}"
_NOT_COPIED = ("site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "ensurepip")


@dataclass(frozen=True, slots=True)
class Plan:
    """How to make the layer. `covers` are (name below the layer's folder, place in the box), laid over the system's.

    `site` are the files of the packages that every box has, by path below the interpreter's own folder of packages.
    """

    digest: str
    python: str
    covers: tuple[tuple[str, str], ...]
    env: dict[str, str]
    info: dict[str, str]
    copy_from: str | None = None
    site: dict[str, Path] = field(default_factory=dict)

    def build(self, folder: Path) -> None:
        """Fill `folder`: `etc` and `opt` are the box's, the rest is laid over folders of the system."""
        own = folder / "opt" / "practicum"
        own.mkdir(parents=True)
        for made in (own / "bin", folder / "opt" / "packages", folder / "empty", folder / "site"):
            made.mkdir()
        for name in ("python3", "python"):
            (own / "bin" / name).symlink_to(self.python)
        lay_etc(folder / "etc")
        for relative, source in self.site.items():
            target = folder / "site" / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        runner = self.python
        if self.copy_from is not None:
            runner = str(_copy_interpreter(Path(self.copy_from), own / "python", Path(self.python).name))
        _run([runner, "-I", "-S", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s",
              str(folder / "site"), "-p", self.site_place, str(folder / "site")])  # fmt: skip

    @property
    def site_place(self) -> str:
        """Where the interpreter finds its packages, in the box."""
        return self.covers[0][1]

    def parts(self, folder: Path) -> Parts:
        _, system = system_folders()
        own = {"/etc": (str(folder / "etc"),), "/opt": (str(folder / "opt"),)}
        return system | own | {place: (str(folder / name),) for name, place in self.covers}


def _copy_interpreter(prefix: Path, target: Path, name: str) -> Path:
    """Executable, standard library (with its compiled files, whose times are kept) and shared libraries."""
    (target / "bin").mkdir(parents=True)
    shutil.copytree(prefix / "lib" / _RUNNING, target / "lib" / _RUNNING, symlinks=True, ignore=_ignore_in_copy)
    (target / "lib" / _RUNNING / "site-packages").mkdir()
    for library in (prefix / "lib").glob("*.so*"):
        shutil.copy2(library, target / "lib" / library.name, follow_symlinks=False)
    return Path(shutil.copy2(prefix / "bin" / name, target / "bin" / name))


def _ignore_in_copy(_: str, names: list[str]) -> set[str]:
    return {name for name in names if name in _NOT_COPIED or name.startswith("config-")}


def _run(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, env={}, cwd="/", capture_output=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        detail = error.stderr.decode(errors="replace") if isinstance(error, subprocess.CalledProcessError) else error
        raise CreateFailed(f"the python layer cannot be made: {argv[0]}: {detail}") from error
    return done.stdout.decode()


def plan(candidates: tuple[str, ...] = SYSTEM_PYTHONS) -> Plan:
    """The layer for this host: a system interpreter ≥ 3.11 if there is one, else a copy of the running one."""
    for candidate in candidates:
        real = os.path.realpath(candidate)
        if not os.access(candidate, os.X_OK) or not real.startswith("/usr/"):
            continue
        facts = json.loads(_run([real, "-I", "-c", _ASK]))
        local = real.startswith("/usr/local/")  # the rest of /usr/local is hidden unless the interpreter is in it
        sites = [s for s in facts["sites"] if Path(s).is_dir() and s.startswith("/usr/local/" if local else "/usr/lib")]
        if tuple(facts["version"][:2]) >= _OLDEST and sites:
            return _finish(real, facts["prefix"], ".".join(map(str, facts["version"])), sites, copied=False)
    running = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    return _finish(str(running), sys.base_prefix, ".".join(map(str, sys.version_info[:3])), [], copied=True)


def _finish(executable: str, prefix: str, version: str, sites: list[str], *, copied: bool) -> Plan:
    site, foreign = _site_files(), foreign_packages()
    place = f"/opt/practicum/python/bin/{Path(executable).name}" if copied else executable
    library = "/opt/practicum/python/lib" if copied else f"{prefix}/lib"
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    if prefix != "/usr" and list(Path(prefix, "lib").glob("libpython3*.so*")):
        env["LD_LIBRARY_PATH"] = library
    binary = hashlib.sha256(Path(executable).read_bytes()).hexdigest()
    digest = digest_of(
        {
            "schema": SCHEMA,
            "etc": ETC,
            "python": [place, version, binary, copied],
            "site": {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in site.items()},
            "hidden": foreign,
        }
    )
    if copied:
        sites = [f"/opt/practicum/python/lib/{_RUNNING}/site-packages"]
    covers = [("site", sites[0]), *(("empty", other) for other in (*sites[1:], *foreign))]
    if not place.startswith("/usr/local/") and Path("/usr/local").is_dir():
        covers.append(("empty", "/usr/local"))
    info = {
        "python": version,
        "interpreter": place,
        "interpreter_sha256": binary,
        "origin": f"copy of {prefix}" if copied else "system",
        "site": sites[0],
        "pytest": importlib.metadata.version("pytest"),
    }
    return Plan(
        digest=digest,
        python=place,
        covers=tuple(covers),
        env=env,
        info=info,
        copy_from=prefix if copied else None,
        site=site,
    )


def _site_files() -> dict[str, Path]:
    """Files of pytest and what it needs, from the running environment: path below site-packages → source."""
    found: dict[str, Path] = {}
    for package in _PACKAGES:
        try:
            files = importlib.metadata.files(package)
        except importlib.metadata.PackageNotFoundError:
            files = None
        if not files:
            if package == "pygments":  # needed by newer versions of pytest only
                continue
            raise CreateFailed(f"{package} is not installed here, and boxes need it", fix=f"pip install {package}")
        for file in files:
            if file.suffix != ".pyc" and ".." not in file.parts:
                found[str(file)] = Path(str(file.locate()))
    return found
