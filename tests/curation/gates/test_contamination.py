"""Gate `contamination`: what the set's own splits keep for measuring."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from practicum.records.tree import File

if TYPE_CHECKING:
    from curation.gates.conftest import Assess, Shop

WORK = b"""\
def even_out(rows, width):
    padded = [list(row) + [""] * (width - len(row)) for row in rows]
    return [row[:width] for row in padded if any(row)]
"""


def test_files_that_show_a_gold_of_the_split_for_testing(assess: Assess, shop: Shop) -> None:
    """A task for training whose files hold what a test task asks for is rejected; the other way round it is none."""
    asks = replace(
        shop(id="asks"),
        instruction="Rows of a table shall all get one width: even_out(rows, width), in table.py, is to be written.",
        files={"table.py": File(b"def even_out(rows, width):\n    raise NotImplementedError\n")},
        solution={"solve.sh": File(b"cp /solution/table.py table.py\n", 0o755), "table.py": File(WORK)},
        verification=replace(
            shop().verification, tests={"test_shop.py": File(b"import table\n\n\ndef test_rows():\n    pass\n")}
        ),
    )
    shows = shop(id="shows")
    shows = replace(shows, files={**shows.files, "table.py": File(WORK)})
    _, found = assess(replace(asks, split="test"), shows, gates=["contamination"])
    assert found.decision == "rejected"
    assert "its files give away the gold of the protected asks" in found.reason
    first, second = assess(asks, replace(shows, split="test"), gates=["contamination"])
    assert first.gates["contamination"].passed
    assert second.gates["contamination"].passed
