"""What bounds the rate of trajectories, and which term it is.

Owns: `Work`, `Plant`, `Bound`, `throughput_bound`, `synchronous_bound`, and the formulae around them.
Invariant: the asynchronous bound is the least of its terms; each bound names the term that binds; a capacity that is
not given bounds nothing.
Must not know: how any of it was measured. Pure.

Per trajectory: T_i start, T_g decoding, T_e tools, T_v verification, T_r reset, W the time it holds a box, L tokens.
X trajectories per second, N in flight. The formulae are those of the project's scheduling reference; times in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """What one trajectory takes, on average; seconds."""

    decode_s: float  # T_g
    tools_s: float = 0.0  # T_e
    verify_s: float = 0.0  # T_v
    start_s: float = 0.0  # T_i
    reset_s: float = 0.0  # T_r
    tokens: float = 0.0  # L, generated
    verify_in_box: bool = False

    def __post_init__(self) -> None:
        given = (self.decode_s, self.tools_s, self.verify_s, self.start_s, self.reset_s, self.tokens)
        if min(given) < 0 or self.held_s <= 0:
            raise ValueError(f"{self}: no time is negative, and a trajectory takes some")

    @property
    def held_s(self) -> float:
        """W = T_i + T_g + T_e, and T_v where the same box is used to verify."""
        return self.start_s + self.decode_s + self.tools_s + (self.verify_s if self.verify_in_box else 0.0)


@dataclass(frozen=True, slots=True)
class Plant:
    """What there is to do the work with. None: not limited, or not known."""

    per_update: int  # B, trajectories
    update_s: float = 0.0  # T_u, with publication of the weights
    max_staleness: int | None = None  # η
    replicas: int | None = None  # R
    tokens_per_s: float | None = None  # μ, of one replica when it is full
    boxes: int | None = None  # S
    verifiers: int | None = None  # V
    creations_per_s: float | None = None  # C
    uses_per_box: float = 1.0  # u

    def __post_init__(self) -> None:
        counts = (self.replicas, self.tokens_per_s, self.boxes, self.verifiers, self.creations_per_s)
        if any(count is not None and count <= 0 for count in counts) or self.per_update < 1 or self.uses_per_box <= 0:
            raise ValueError(f"{self}: what there is is more than 0, or None where it is not limited")
        if self.update_s < 0 or (self.max_staleness is not None and self.max_staleness < 0):
            raise ValueError(f"{self}: neither update_s nor max_staleness is below 0")


@dataclass(frozen=True, slots=True)
class Bound:
    """At most `per_s` trajectories per second, most of all because of `binding`; `terms` are rates by name."""

    per_s: float
    binding: str
    terms: Mapping[str, float]

    def fraction(self, achieved_per_s: float) -> float:
        """What was achieved, of the bound."""
        return achieved_per_s / self.per_s

    def to_json(self) -> dict[str, Any]:
        """The bound, its binding term, and all terms."""
        terms = {name: rate for name, rate in self.terms.items() if rate < math.inf}
        return {"episodes_per_s": self.per_s, "binding_term": self.binding, "terms": terms}


def throughput_bound(work: Work, plant: Plant) -> Bound:
    """X ≤ min{ R·μ/L, S/(W + T_r), V/T_v, B/T_u, u·C, (η + 1)·B/W } of an asynchronous pipeline.

    The last term counts the time that a trajectory holds a box; waiting to be verified or trained makes it smaller.
    Names: `generation`, `boxes`, `verification`, `update`, `creation`, `staleness`.
    Raises `ValueError` where nothing is limited.
    """
    eta = plant.max_staleness
    terms = _capacities(work, plant) | {
        "update": _per(plant.per_update, plant.update_s),
        "creation": _per(plant.creations_per_s, 1 / plant.uses_per_box),
        "staleness": _per(None if eta is None else (eta + 1) * plant.per_update, work.held_s),
    }
    binding = min(terms, key=lambda name: terms[name])
    if terms[binding] == math.inf:
        raise ValueError(f"{plant} limits nothing, so there is no bound")
    return Bound(terms[binding], binding, terms)


def synchronous_bound(work: Work, plant: Plant, *, slowest_s: float, verify_tail_s: float = 0.0) -> Bound:
    """X = B / (E[max_j W_j] + T_v,tail + T_u) of a loop that waits for all before it goes on.

    `slowest_s` is E[max_j W_j] over the B of an update (`expected_max`). Boxes, engines and verifiers may need longer
    for B than the slowest one takes: the longest stands in place of E[max_j W_j] + T_v,tail. With S < B boxes the
    rollouts need B·(W + T_r)/S at least, and are over within B·W/S + max W (list scheduling).
    Terms are the rates if that part were all there is; `binding` is the part that takes longest of an update.
    """
    terms = {"slowest": _per(plant.per_update, slowest_s + verify_tail_s)} | _capacities(work, plant)
    collection = min(terms, key=lambda name: terms[name])
    terms["update"] = _per(plant.per_update, plant.update_s)
    seconds = plant.per_update / terms[collection] + plant.update_s
    return Bound(plant.per_update / seconds, min((collection, "update"), key=lambda name: terms[name]), terms)


def in_flight(per_s: float, held_s: float) -> float:
    """N = X·W (Little): how many trajectories are on their way at rate `per_s`."""
    return per_s * held_s


def least_staleness(held_s: float, per_update: int, per_s: float) -> int:
    """The least η ≥ W/T_step − 1, with T_step = B/X, under which staleness does not bound the rate `per_s`."""
    # A rate that staleness bounds exactly must not come out one higher for a rounding error.
    return max(0, math.ceil(held_s * per_s / per_update - 1 - 1e-9))


def retried(failure: float, retries: int) -> tuple[float, float]:
    """The share that succeeds, 1 − p^(r+1), and the mean number of tries, (1 − p^(r+1))/(1 − p)."""
    if not 0 <= failure < 1 or retries < 0:
        raise ValueError(f"a failure rate of {failure} with {retries} retries: it is in [0, 1), and they are ≥ 0")
    success = 1 - failure ** (retries + 1)
    return success, success / (1 - failure)


def expected_max(seconds: Sequence[float], draws: int) -> float:
    """E[max] of `draws` independent draws from the sample `seconds`, exactly.

    With x₁ ≤ … ≤ xₙ it is Σ xᵢ·((i/n)^k − ((i − 1)/n)^k).
    """
    if not seconds or draws < 1:
        raise ValueError(f"the largest of {draws} draws from {len(seconds)} values: neither may be 0")
    count = len(seconds)
    return sum(
        value * (((number + 1) / count) ** draws - (number / count) ** draws)
        for number, value in enumerate(sorted(seconds))
    )


def _capacities(work: Work, plant: Plant) -> dict[str, float]:
    """Trajectories per second that engines, boxes and verifiers can do, whatever the loop."""
    engines = None if plant.replicas is None or plant.tokens_per_s is None else plant.replicas * plant.tokens_per_s
    return {
        "generation": _per(engines, work.tokens),
        "boxes": _per(plant.boxes, work.held_s + work.reset_s),
        "verification": _per(plant.verifiers, work.verify_s),
    }


def _per(capacity: float | None, each: float) -> float:
    """How often per second what takes `each` of `capacity` can be done; infinite where nothing limits it."""
    return math.inf if capacity is None or each <= 0 else capacity / each
