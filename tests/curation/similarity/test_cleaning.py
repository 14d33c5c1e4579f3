"""Who goes and who stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.similarity.cleaning import clean
from practicum.curation.similarity.matches import Match
from practicum.curation.similarity.search import Survey


def found(splits: dict[str, str], *clusters: list[str], contaminated: tuple[str, ...] = ()) -> Survey:
    """A survey in which each of `clusters` is one work."""
    return Survey(
        ids=list(splits),
        splits=list(splits.values()),
        places=list(range(len(splits))),
        duplicates={one: [Match("near", "code", c, 0.9) for c in m if c != one] for m in clusters for one in m},
        contaminated={task: [Match("exact", "code", "guarded", 1.0)] for task in contaminated},
        clusters=[*clusters],
        duplicate_clusters=[*clusters],
    )


def test_of_copies_the_most_protected_stays() -> None:
    """Of copies in several splits that of the test split stays, so that training never holds a held-out task."""
    done = clean(found({"a": "train", "b": "validation", "c": "test", "d": "train"}, ["a", "b", "c"]))
    assert done.kept == ["c", "d"]
    assert [(removal.task, removal.because, removal.matches[0].other) for removal in done.removed] == [
        ("a", "duplicate", "c"),
        ("b", "duplicate", "c"),
    ]


def test_contamination_goes_first() -> None:
    """A contaminated copy goes for that reason, and a clean copy of it stays."""
    done = clean(found({"a": "test", "b": "train"}, ["a", "b"], contaminated=("a",)))
    assert [(removal.task, removal.because) for removal in done.removed] == [("a", "contaminated")]
    assert done.kept == ["b"]


def test_kept_copies_share_a_split() -> None:
    """Where copies may stay, they move into the most protected split among them."""
    done = clean(found({"a": "train", "b": "test", "c": "dev"}, ["a", "b"]), duplicates=False)
    assert (done.removed, done.kept) == ([], ["a", "b", "c"])
    assert done.moved == {"a": ("train", "test")}


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["train", "validation", "test"]), min_size=2),
    st.integers(1, 4),
    st.sets(st.sampled_from("abcdefgh")),
)
def test_one_of_each_cluster_stays_and_none_is_on_two_sides(splits: dict[str, str], size: int, bad: set[str]) -> None:
    """Every task is kept or removed, at most one of each set of copies stays, and no clean set loses all."""
    ids = sorted(splits)
    clusters = [group for at in range(0, len(ids), size) if len(group := ids[at : at + size]) > 1]
    done = clean(found({name: splits[name] for name in ids}, *clusters, contaminated=tuple(sorted(bad & set(ids)))))
    gone = {removal.task for removal in done.removed}
    assert gone.isdisjoint(done.kept)
    assert gone | set(done.kept) == set(ids)
    for members in clusters:
        assert sum(task in done.kept for task in members) == (not set(members) <= bad)
    assert done.moved == {}
