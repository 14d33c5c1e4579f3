"""Python packages of a lock, as a folder of packages.

Owns: `install`, `resolve`, `Target`.
Invariant: no code of a package runs: wheels only, fetched by hash, laid out from local files without compiling; what
the lock names replaces what the layer had of the same name.
Must not know: where the folder goes, how layers are kept.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import InvalidMarker, Marker, default_environment

from practicum.errors import CreateFailed, LayerFailed
from practicum.records.recipe import Pinned

_DEADLINE_S = 900.0
_PASSED_ON = re.compile(
    r"(PIP_.*|HOME|PATH|LANG|LC_.*|TMPDIR|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|.*_proxy|.*_PROXY)"
)
_HASH_OF_PROGRAM = re.compile(r"^((?:\.\./)+bin/[^,\n]+),sha256=[^,\n]*,\d*$", re.MULTILINE)
_UNREACHABLE = re.compile(r"Retrying \(|ConnectionError|NewConnectionError|Could not fetch URL|ProxyError")


@dataclass(frozen=True, slots=True)
class Target:
    """The interpreter that the packages are for. `version` is x.y.z, `program` its path in the box."""

    version: str
    program: str

    @property
    def short(self) -> str:
        return ".".join(self.version.split(".")[:2])


def install(packages: Sequence[Pinned], target: Target, folder: Path, where: str) -> None:
    """Lay the packages of a lock into `folder`, which may hold others, with their programs in `folder`/bin.

    Raises `CreateFailed` that names the requirement for one that has no wheel here, does not match its hash, or
    cannot be fetched.
    """
    if importlib.util.find_spec("pip") is None:
        raise CreateFailed(f"{where}: pip is needed to fetch packages, and is not here", fix="python -m ensurepip")
    wanted = [package for package in packages if _counts(package, target, where)]
    lines = [f"{p.name}=={p.version} {' '.join(f'--hash={h}' for h in sorted(p.hashes))}\n" for p in wanted]
    if not lines:
        return
    with tempfile.TemporaryDirectory(prefix="practicum-wheels-") as scratch:
        lock, wheels = Path(scratch, "lock.txt"), Path(scratch, "wheels")
        lock.write_text("".join(lines))
        _pip(["download", "--no-deps", "--require-hashes", "--only-binary", ":all:", *_tags(target), "--dest",
              str(wheels), "-r", str(lock)], where)  # fmt: skip
        _remove_named(folder, [package.name for package in wanted])
        fresh = Path(scratch, "site")
        # By name and from a folder, not by path: pip would write the path into what it lays down.
        _pip(["install", "--no-deps", "--require-hashes", "--no-index", "--find-links", str(wheels), "--no-compile",
              "--no-warn-script-location", "--only-binary", ":all:", *_tags(target), "--target", str(fresh),
              "-r", str(lock)], where)  # fmt: skip
        # The folder of packages and the one of programs may be there already, so the fresh ones are laid into them.
        _settle_programs(fresh / "bin", target)
        shutil.copytree(fresh, folder, symlinks=True, dirs_exist_ok=True)


def resolve(requirements: Sequence[str], target: Target, where: str) -> tuple[Pinned, ...]:
    """What pip would install for `requirements` and what those need, as pins: wheels for the target only.

    Nothing is built or run: of a package, its stated metadata is all that is read. Raises as `install`.
    """
    with tempfile.TemporaryDirectory(prefix="practicum-resolve-") as scratch:
        asked, report = Path(scratch, "asked.txt"), Path(scratch, "report.json")
        asked.write_text("".join(f"{line}\n" for line in requirements))
        _pip(["install", "--dry-run", "--ignore-installed", "--only-binary", ":all:", *_tags(target), "--target",
              str(Path(scratch, "site")), "--report", str(report), "--quiet", "-r", str(asked)], where)  # fmt: skip
        found = json.loads(report.read_text())["install"]
    return tuple(
        Pinned(
            re.sub(r"[-_.]+", "-", str(item["metadata"]["name"])).lower(),
            str(item["metadata"]["version"]),
            (f"sha256:{item['download_info']['archive_info']['hashes']['sha256']}",),
        )
        for item in found
    )


def compile_packages(folder: Path, place: str, interpreter: str) -> None:
    """Compile what is in `folder`, which will be `place`; sources that do not compile are left as they are."""
    argv = [interpreter, "-I", "-S", "-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
    try:
        subprocess.run([*argv, "-s", str(folder), "-p", place, str(folder)], env={}, cwd="/", capture_output=True,
                       timeout=_DEADLINE_S, check=False)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CreateFailed(f"packages cannot be compiled by {interpreter}: {error}") from error


def _counts(package: Pinned, target: Target, where: str) -> bool:
    """Whether a requirement's marker holds for the target. Else pip would ask it of the interpreter that runs pip."""
    if not package.marker:
        return True
    environment = {key: str(value) for key, value in default_environment().items()}
    environment |= {"python_version": target.short, "python_full_version": target.version, "extra": ""}
    environment |= {"implementation_name": "cpython", "implementation_version": target.version}
    try:
        return Marker(package.marker).evaluate(environment)
    except InvalidMarker as error:
        raise CreateFailed(
            f"{where}: the marker of {package.name}=={package.version} cannot be read: {error}"
        ) from None


def _tags(target: Target) -> list[str]:
    """Which wheels fit: said in full, since the interpreter of the box need not be the one that runs pip."""
    machine = platform.machine()
    _, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "glibc 2.17").partition(" ")
    newest = int(version.split(".")[1])
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, 4, -1)]
    platforms += [f"manylinux2014_{machine}", f"manylinux2010_{machine}", f"manylinux1_{machine}", f"linux_{machine}"]
    short = target.short.replace(".", "")
    tags = ["--python-version", target.version, "--implementation", "cp"]
    tags += ["--abi", f"cp{short}", "--abi", "abi3", "--abi", "none"]
    return tags + [part for name in platforms for part in ("--platform", name)]


def _pip(arguments: list[str], where: str) -> None:
    env = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    argv = [
        sys.executable,
        "-I",
        "-m",
        "pip",
        "--no-input",
        "--disable-pip-version-check",
        "--no-cache-dir",
        *arguments,
    ]
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise CreateFailed(f"{where}: pip did not end within {_DEADLINE_S:.0f} s") from None
    if done.returncode:
        raise _failure(done.stdout + done.stderr, where)


def _failure(said: str, where: str) -> CreateFailed:
    """What pip said, as one error that names the requirement."""
    if _UNREACHABLE.search(said):
        return CreateFailed(f"{where}: the package index cannot be reached: {_last(said)}", fix="see `pip config list`")
    if found := re.search(r"No matching distribution found for (\S+)", said):
        return LayerFailed(
            f"{where}: {found[1]} has no wheel for this machine and interpreter",
            fix="choose a version that comes as a wheel: nothing is built from source, since that runs its code here",
        )
    if "DO NOT MATCH THE HASHES" in said:
        named = re.search(r"^\s+(\S+==\S+?)(?: from|:)", said[said.index("DO NOT MATCH") :], re.MULTILINE)
        return LayerFailed(
            f"{where}: {named[1] if named else 'a requirement'} is not what its hash says", fix="make the lock anew"
        )
    return CreateFailed(f"{where}: pip failed: {_last(said)}")


def _last(said: str) -> str:
    errors = [line for line in said.splitlines() if line.startswith("ERROR")] or said.strip().splitlines()[-1:]
    return " ".join(errors)[:500]


def _remove_named(folder: Path, names: list[str]) -> None:
    """Remove distributions of these names, by their own lists of files."""
    for info in sorted(folder.glob("*.dist-info")):
        if re.sub(r"[-_.]+", "-", info.name.partition("-")[0]).lower() not in names:
            continue
        for line in (info / "RECORD").read_text().splitlines():
            path = folder / line.split(",")[0].strip('"')
            if ".." not in path.parts:
                path.unlink(missing_ok=True)
                for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                    compiled.unlink()
        shutil.rmtree(info, ignore_errors=True)


def _settle_programs(folder: Path, target: Target) -> None:
    """Programs start with the interpreter that pip ran in; in the box that is another."""
    here = re.compile(re.escape(os.fsencode(sys.executable)))
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        head, newline, rest = path.read_bytes().partition(b"\n")
        if head.startswith(b"#!"):
            if head == b"#!/bin/sh":  # how a long path is spelled: the interpreter stands in the second line
                second, _, tail = rest.partition(b"\n")
                rest = here.sub(os.fsencode(target.program), second) + b"\n" + tail
            path.write_bytes(here.sub(os.fsencode(target.program), head) + newline + rest)
    for record in folder.parent.glob("*.dist-info/RECORD"):  # their hashes are no longer theirs
        record.write_text(_HASH_OF_PROGRAM.sub(r"\1,,", record.read_text()))
