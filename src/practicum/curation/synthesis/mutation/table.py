"""All mutators, by name.

Owns: `MUTATORS`, `KINDS`, `BY_NODE`.
Invariant: names are unique; the order is that of the table, the same on every machine.
Must not know: which sites are chosen.
"""

from __future__ import annotations

import libcst as cst

from practicum.curation.synthesis.mutation.expressions import EXPRESSIONS
from practicum.curation.synthesis.mutation.names import NAMES
from practicum.curation.synthesis.mutation.scene import Mutator
from practicum.curation.synthesis.mutation.statements import STATEMENTS

MUTATORS: dict[str, Mutator] = {mutator.name: mutator for mutator in (*EXPRESSIONS, *STATEMENTS, *NAMES)}
KINDS: tuple[str, ...] = tuple(sorted({mutator.kind for mutator in MUTATORS.values()}))
BY_NODE: dict[type[cst.CSTNode], list[Mutator]] = {}
for _mutator in MUTATORS.values():
    for _node in _mutator.nodes:
        BY_NODE.setdefault(_node, []).append(_mutator)
