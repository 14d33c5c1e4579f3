"""What the name of the verifier's code rests on."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

from practicum.verification.sources import digest_below, source_digest


def test_every_source_counts(tmp_path: Path) -> None:
    """A changed, new or renamed attack makes another name, as a changed module does; what was compiled makes none."""
    with resources.as_file(resources.files("practicum.verification")) as sources:
        copy = shutil.copytree(sources, tmp_path / "copy")
    seen = [digest_below(copy)]
    assert seen == [source_digest()]
    attack = sorted((copy / "redteam/attacks").rglob("*.toml"))[0]
    module = copy / "inside/suites.py"
    for path in (attack, module):
        path.write_bytes(path.read_bytes() + b"\n")
        seen.append(digest_below(copy))
    shutil.copy(attack, attack.with_name("new.toml"))
    seen.append(digest_below(copy))
    attack.rename(attack.with_name("renamed.toml"))
    seen.append(digest_below(copy))
    assert len(set(seen)) == len(seen)
    (copy / "__pycache__").mkdir(exist_ok=True)
    (copy / "__pycache__/x.py").write_bytes(b"")
    assert digest_below(copy) == seen[-1]
