"""What makes two tasks too alike: the kinds of match, their thresholds, and what follows from them.

Owns: `Match`, `Kind`, `Rules`, `Alike`, `FACETS`.
Invariant: policy only, as pure functions of what two tasks share; each threshold is documented here and nowhere else.
Must not know: how likeness is measured, where tasks come from.

| facet | text | shingles | near from | least | alone | runs | share |
|--|--|--|--|--|--|--|--|
| instruction | the statement | 3 words | 0.6 | 8 | 8 | 13 words | 0.1 |
| code | the definitions that the gold changes, as the gold leaves them | 5 tokens | 0.8 | 12 | 12 | 30 tokens | 0.3 |
| shape | the same, without the names that a person may choose | 8 tokens | 0.85 | 24 | 24 | – | – |
| patch | the lines that the gold adds and removes | 3 tokens | 0.8 | 4 | 24 | 12 tokens | 0.5 |
| tests | the frozen tests | 5 tokens | 0.8 | 12 | 12 | 30 tokens | 0.3 |

`near from` is the Jaccard index of the two shingle sets. A facet with less than `least` shingles says nothing, one with
less than `alone` counts only beside another. Against protected sets, long `runs` count too, where more than `share` of
a task's runs stand in a protected task; for a statement also from `passage` runs (a passage of twice their length). A
task gives another away from half of the runs of 12 tokens that the gold of that brings in (`revealing`). Boilerplate of
a source is dropped before anything is counted (`boilerplate`). The patch of a program that was written anew, or mostly
so, is no evidence beside its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["exact", "renamed", "near", "overlap", "reveals", "repository"]
"""exact: the same normalised text. renamed: the same syntax tree under other names. near: Jaccard index of shingles.
overlap: long runs of words or tokens found in the other. reveals: the task's files hold what the other's gold brings in
(directed: the one that is named is given away). repository: both come from the same repository."""

FacetName = Literal["instruction", "code", "shape", "patch", "tests"]
"""As in the table. A match may also name `change`: code and patch under other names, `gold`: what it reveals, or
`provenance`."""


@dataclass(frozen=True, slots=True)
class FacetRule:
    """How one facet is cut and compared; see the table above."""

    name: FacetName
    shingle: int
    near: float
    least: int
    alone: int
    run: int = 0
    share: float = 0.0
    passage: int = 0


FACETS: tuple[FacetRule, ...] = (
    FacetRule("instruction", shingle=3, near=0.6, least=8, alone=8, run=13, share=0.1, passage=13),
    FacetRule("code", shingle=5, near=0.8, least=12, alone=12, run=30, share=0.3),
    FacetRule("shape", shingle=8, near=0.85, least=24, alone=24),
    FacetRule("patch", shingle=3, near=0.8, least=4, alone=24, run=12, share=0.5),
    FacetRule("tests", shingle=5, near=0.8, least=12, alone=12, run=30, share=0.3),
)


@dataclass(frozen=True, slots=True)
class Rules:
    """Thresholds. `threshold`, where given, stands for the `near` of every facet.

    `common_share`: shingles in more than this share of the distinct tasks of one source are boilerplate, but never
    those in `common_least` tasks or fewer, and always those in more than `common_most`. `recall` is the chance that
    a pair at the threshold becomes a candidate; `permutations` bounds the memory that this takes (4 bytes each).
    Tasks of one source, or of one family of sources (`family/member`), share turns of phrase and scaffolds: between
    them an overlap counts only from a share that is `kin_share` larger, and without what two distinct tasks of the
    family hold on one side, however few tasks there are.
    `reveal_run`, `revealed`, `reveal_least`: length of the runs of tokens by which a gold is recognised in another
    task's files, and the part and number of them from which the task is given away.
    `least_nodes`: syntax trees with fewer nodes are too common to name anything.
    """

    facets: tuple[FacetRule, ...] = FACETS
    threshold: float | None = None
    common_share: float = 0.05
    common_least: int = 8
    common_most: int = 200
    recall: float = 0.99
    permutations: int = 128
    kin_share: float = 0.25
    least_nodes: int = 20
    reveal_run: int = 12
    revealed: float = 0.5
    reveal_least: int = 6

    def near(self, facet: FacetRule) -> float:
        return facet.near if self.threshold is None else self.threshold


@dataclass(frozen=True, slots=True)
class Match:
    """One way in which a task is like the task `other`.

    `score` is 1 for exact and renamed, the Jaccard index for near, and for overlap the share of the task's runs that
    stand in the other. `span` is the longest text that both hold, where there is one to show.
    """

    kind: Kind
    facet: str
    other: str
    score: float
    span: str = ""

    def document(self) -> dict[str, Any]:
        """For JSON."""
        found = {"kind": self.kind, "facet": self.facet, "with": self.other, "score": round(self.score, 3)}
        return found | ({"span": self.span} if self.span else {})


@dataclass(frozen=True, slots=True)
class Alike:
    """What two tasks share: kind and score by facet. `same_work` that change *and* code agree under other names.

    `told` are the facets that both have enough of to be compared, `alone` those large enough to count by themselves.
    """

    found: Mapping[str, tuple[Kind, float]] = field(default_factory=dict)
    same_work: bool = False
    told: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()

    @property
    def duplicate(self) -> bool:
        """Whether they are the same work: one of them teaches and shows nothing that the other does not.

        Two bugs in one function share its code but not the change; two tasks of one template share words but not the
        code; two programs written anew may share much of what they need. So one facet alone is enough only where
        nothing else can be compared.
        """
        code = "code" in self.found or "shape" in self.found
        patch, instruction = "patch" in self.found, "instruction" in self.found
        blind = not self.told & {"code", "patch"}
        return self.same_work or (patch and (code or instruction)) or (instruction and (code or blind))

    @property
    def related(self) -> bool:
        """Whether one gives the other away, so that both belong into one split: the same code or statement."""
        return self.duplicate or bool(self.found.keys() & {"code", "shape", "instruction"})

    @property
    def contaminates(self) -> bool:
        """Whether a task that is so like a protected one must go: one facet is enough, or two small ones."""
        return self.same_work or len(self.found) > 1 or bool(self.found.keys() & self.alone)
