"""The report's account of seconds, tokens and waits.

Owns: `schedule_section`.
Invariant: what is shown sums to what was recorded; what was not recorded is left out.
Must not know: how the section is laid out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from practicum.pipeline import wording

Row = Mapping[str, Any]
WORDS = {
    "wait_place": "waiting for a place",
    "lease": "getting a box",
    "start": "between stages (rendering, the host busy with others)",
    "generate": "the policy's turn",
    "act": "acting in the box",
    "record": "saving the workspace",
    "submit": "carrying the work out",
    "wait_judge": "waiting for room before the judge",
    "verify": "being judged",
    "retry": "given up",
}
_TERMS = {
    "generation": "tokens that the engines make",
    "boxes": "places for agents' boxes",
    "verification": "judges",
    "update": "the trainer",
    "creation": "boxes that can be made",
    "staleness": "how stale tokens may be",
}


def schedule_section(updates: Sequence[Row]) -> dict[str, Any] | None:
    """What the page shows of the rows of `updates`; None where they say nothing of it."""
    measured = [row for row in updates if row.get("episode_time")]
    if not measured:
        return None
    weights = [float(row.get("episodes") or 0) for row in measured]
    states: Counter[str] = Counter()
    for row, weight in zip(measured, weights, strict=True):
        for state, share in row["episode_time"].items():
            states[state] += share * weight
    parts = wording.shares({state: states[state] for state in WORDS if states[state] > 0})
    return {
        "episode": [
            {"words": WORDS[state], "share": share, "style": "abcdefgh"[index % 8]}
            for index, (state, share) in enumerate(parts)
        ],
        "tokens": _tokens(measured),
        "staleness": _staleness(measured),
        "queues": _queues(measured[-1].get("queues") or {}),
        "bound": _bound(measured),
        "spares": sum((row.get("spares") or {}).get("given_up", 0) for row in measured),
        "partial": sum(row.get("partial_groups") or 0 for row in measured),
    }


def _tokens(rows: Sequence[Row]) -> list[tuple[str, float, float]]:
    """What became of sampled tokens: words, how many, their share."""
    total: Counter[str] = Counter()
    for row in rows:
        used = row.get("tokens_used") or {}
        total["trained"] += used.get("trained", 0)
        for why, tokens in (used.get("lost") or {}).items():
            total[f"not trained: {why}"] += tokens
    return [(words, total[words], share) for words, share in wording.shares(total)]


def _staleness(rows: Sequence[Row]) -> list[tuple[int, float, float]]:
    """Versions between sampling and training: how many tokens, and their share."""
    total: Counter[int] = Counter()
    for row in rows:
        for age, tokens in (row.get("staleness_tokens") or {}).items():
            total[int(age)] += tokens
    every = sum(total.values())
    return [(age, total[age], total[age] / every) for age in sorted(total)] if every else []


def _queues(queues: Mapping[str, Any]) -> list[dict[str, Any]]:
    named = {"place": "a place to act", "judge": "room before the judge"}
    return [{"name": named.get(name, name), **each} for name, each in queues.items()]


def _bound(rows: Sequence[Row]) -> dict[str, Any] | None:
    """The bounds of the updates, summed up by the term that binds most often."""
    known = [row["bound"] for row in rows if row.get("bound")]
    if not known:
        return None
    term, times = Counter(each["binding_term"] for each in known).most_common(1)[0]
    those = [each for each in known if each["binding_term"] == term]
    return {
        "term": _TERMS.get(term, term),
        "times": times,
        "of": len(known),
        "per_s": sum(each["episodes_per_s"] for each in those) / times,
        "achieved": sum(each["achieved_per_s"] for each in those) / times,
    }
