"""What a set covers, and its holes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from practicum.cli.template import template_task
from practicum.curation.coverage import NOT_STATED, SIZES, STRATA, Card, Hole, card_of, coverage_of

CARD = Card("t", "train", "bug-fix", "boundary", "made", "r", "MIT", "easy", 3, 40, 1, 1, 2)
CARDS = st.lists(
    st.builds(
        replace,
        st.just(CARD),
        domain=st.sampled_from(["bug-fix", "scripts"]),
        bug_kind=st.sampled_from(["boundary", "operator"]),
        lines=st.sampled_from([1, 30, 300, None]),
        difficulty=st.sampled_from([*STRATA, NOT_STATED]),
    ),
    max_size=60,
)


def test_a_card_tells_sizes_of_the_gold() -> None:
    """What the gold changes is counted from the solution, the statement in words; what is not stated stays so."""
    card = card_of(template_task("t"))
    assert (card.files, card.hunks, card.lines, card.size) == (1, 1, 4, "small")
    assert (card.tests, card.domain, card.bug_kind, card.difficulty) == (5, "bug-fix", NOT_STATED, NOT_STATED)
    assert card_of(template_task("t"), "hard").difficulty == "hard"
    assert card_of(replace(template_task("t"), solution={})).size == NOT_STATED


@given(CARDS, st.integers(1, 4))
def test_every_thin_cell_lies_in_exactly_the_holes_that_are_named(cards: list[Card], minimum: int) -> None:
    """A cell below the minimum is described by a hole, no full place is called a hole, and none is named twice."""
    found = coverage_of(cards, minimum)
    kept = [(c.domain, c.bug_kind, c.size, c.difficulty) for c in cards]
    for domain in {c.domain for c in cards}:
        for kind in {c.bug_kind for c in cards}:
            for size in SIZES:
                for stratum in STRATA:
                    cell = {"domain": domain, "bug_kind": kind, "size": size, "difficulty": stratum}
                    named = [hole for hole in found.holes if hole.where.items() <= cell.items()]
                    assert bool(named) >= (kept.count((domain, kind, size, stratum)) < minimum)
    for hole in found.holes:
        inside = [c for c in cards if all(getattr(c, name) == value for name, value in hole.where.items())]
        assert len(inside) == hole.count < minimum
        assert not any(h.where.items() < hole.where.items() for h in found.holes)
    assert len({str(hole) for hole in found.holes}) == len(found.holes)


def test_holes_are_named_by_the_least_that_describes_them() -> None:
    """Where no large task exists, that is one hole, not one for each domain, kind and difficulty."""
    cards = [
        replace(CARD, task=f"{size}-{stratum}-{at}", lines=lines, difficulty=stratum)
        for size, lines in (("small", 2), ("medium", 30))
        for stratum in STRATA
        for at in range(3)
    ]
    found = coverage_of(cards, 3)
    assert found.holes == (Hole({"size": "large"}, 0),)
    assert str(found.holes[0]) == "large (size)"
    assert (found.cells, found.covered) == (9, 6)
    assert found.counts["size"] == {"small": 9, "medium": 9}
    assert found.spreads["lines"] == {"least": 2, "median": 16, "p90": 30, "most": 30}
