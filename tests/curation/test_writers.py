"""Two of one kind never write to one folder at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from practicum.curation.writers import sole_writer
from practicum.errors import StoreError

HOLD = """
import sys
from pathlib import Path
from practicum.curation.writers import sole_writer
with sole_writer(Path(sys.argv[1]), "synth"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    """Another process is named with its work; what does other work is let in, and so is who comes when it has died."""
    records = tmp_path / "set" / ".practicum"
    command = [sys.executable, "-c", HOLD, str(records)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        said = f"another `practicum tasks synth` .process {holder.pid}. is writing to {tmp_path / 'set'}"
        with pytest.raises(StoreError, match=said), sole_writer(records, "synth"):
            pass
        with sole_writer(records, "check"):
            pass
        holder.kill()
        holder.wait()
    with sole_writer(records, "synth"):
        pass


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """It is an error with the place's name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"), sole_writer(tmp_path / "file", "synth"):
        pass
