"""Advantages: from rewards to the credit of trajectories, turns and tokens.

Owns: credit relative to a group, to the batch, to a critic; credit of turns by process rewards and of branches.
Invariant: a masked member (reward None) is in no statistic and gets no credit; a group without signal, or with
fewer valid members than `least`, gives none.
Must not know: tokens, losses, models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Rewards = Sequence[float | None]
Credits = list[float | None]


def group_advantages(rewards: Rewards, *, least: int = 2, scale: bool = True) -> Credits:
    """Credit of each member of one group: `(r − mean) / std` over the valid members (GRPO, arXiv 2402.03300).

    `rewards` [G] holds None where a member is masked. With `scale` False the division is left out (Dr. GRPO,
    arXiv 2503.20783). Returns [G], None for masked members, and for all members where the group has fewer than
    `least` valid members or all its valid rewards are equal.
    """
    valid = _valid(rewards)
    if not _has_signal(valid, least):
        return [None] * len(rewards)
    mean, std = float(valid.mean()), float(valid.std())
    divisor = std if scale else 1.0
    return [None if reward is None else (reward - mean) / divisor for reward in rewards]


def leave_one_out(rewards: Rewards, *, least: int = 2) -> Credits:
    """RLOO (arXiv 2402.14740, eq. 7): each member against the mean of the *other* valid members of its group.

    Equal to `n / (n − 1)` times the centred reward. Shapes and masking as `group_advantages`.
    """
    valid = _valid(rewards)
    if not _has_signal(valid, least):
        return [None] * len(rewards)
    total, others = float(valid.sum()), len(valid) - 1
    return [None if reward is None else reward - (total - reward) / others for reward in rewards]


def batch_advantages(groups: Sequence[Rewards], *, least: int = 2, centre_groups: bool = True) -> list[Credits]:
    """REINFORCE++ (arXiv 2501.03262): normalised over the whole batch, so that no group weighs more for being easy.

    With `centre_groups` a group's mean is taken off first (the variant "with baseline"), and a group without signal
    gives none; without, only the batch's mean is. Then `(x − mean) / std` over all valid members of the batch.
    Returns one list a group, as `group_advantages` does.
    """
    centred: list[Credits] = []
    for rewards in groups:
        valid = _valid(rewards)
        if centre_groups and not _has_signal(valid, least):
            centred.append([None] * len(rewards))
            continue
        mean = float(valid.mean()) if centre_groups else 0.0
        centred.append([None if reward is None else reward - mean for reward in rewards])
    everything = np.array([x for group in centred for x in group if x is not None], dtype=np.float64)
    if not _has_signal(everything, 2):
        return [[None] * len(group) for group in groups]
    mean, std = float(everything.mean()), float(everything.std())
    return [[None if x is None else (x - mean) / std for x in group] for group in centred]


def generalised_advantages(
    rewards: Sequence[float], values: Sequence[float], *, discount: float, trace: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """GAE (arXiv 1506.02438, eq. 16) of one episode: advantages [T] and returns [T] = advantages + values.

    `rewards` [T], `values` [T + 1] with the value after the last step (0 where the episode ended there); `discount` γ
    and `trace` λ in [0, 1]. `δ_t = r_t + γ·V_{t+1} − V_t`, `A_t = δ_t + γλ·A_{t+1}`.
    """
    if len(values) != len(rewards) + 1:
        raise ValueError(f"{len(rewards)} rewards need {len(rewards) + 1} values, not {len(values)}")
    found = np.zeros(len(rewards))
    ahead = 0.0
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + discount * values[t + 1] - values[t]
        ahead = delta + discount * trace * ahead
        found[t] = ahead
    return found, found + np.asarray(values[:-1], dtype=np.float64)


def shaped_turns(potentials: Sequence[float], *, discount: float = 1.0) -> list[float]:
    """Process rewards [K] of K turns by a difference of potential (Ng, Harada and Russell, 1999): no optimum changes.

    `potentials` [K + 1] are those of the state before each turn and after the last. `F_k = γ·Φ_{k+1} − Φ_k`, where the
    end's potential counts as 0; discounted, they add up to −Φ_0 whatever the turns did.
    """
    ends = [*potentials[1:-1], 0.0]
    return [discount * after - before for before, after in zip(potentials[:-1], ends, strict=True)]


def turn_advantages(
    outcomes: Rewards, shaping: Sequence[Sequence[float]], *, discount: float = 1.0, least: int = 2
) -> list[list[float] | None]:
    """Credit of every turn of the members of one group: what is still to come, against the group at that turn.

    `outcomes` [G] are paid with the last turn, `shaping` [G][K_g] by turn. The return of turn k is
    `R_{g,k} = Σ_{j ≥ k} γ^{j−k}·f_{g,j} + γ^{K−1−k}·r_g`, less the mean over the valid members that have a turn k.
    None for masked members, and for all where the returns of the group are equal throughout.
    """
    returns: list[list[float] | None] = []
    for outcome, parts in zip(outcomes, shaping, strict=True):
        if outcome is None:
            returns.append(None)
            continue
        found = list[float]()
        for part in reversed(parts):
            found.append(part + (discount * found[-1] if found else outcome))
        returns.append(found[::-1])
    valid = [each for each in returns if each is not None]
    if len(valid) < max(2, least):
        return [None] * len(outcomes)
    longest = max(len(each) for each in valid)
    means = [float(np.mean([each[k] for each in valid if len(each) > k])) for k in range(longest)]
    credits = [None if each is None else [x - means[k] for k, x in enumerate(each)] for each in returns]
    flat = not any(abs(x) > 1e-12 for each in credits if each is not None for x in each)
    return [None] * len(outcomes) if flat else credits


def branch_advantages(
    parents: Mapping[str, str | None], rewards: Mapping[str, float | None]
) -> dict[str, float | None]:
    """Credit of each edge of a tree of continuations: the worth of where it leads, less that of where it starts.

    `parents` names each node's parent (None for the root); `rewards` are those of the leaves, None where masked. A
    node's worth is the mean reward of the valid leaves below it. Returns the credit of the edge that leads to each
    node but the root, None where no valid leaf is below. Raises `ValueError` for a tree with a circle or a stranger.
    """
    leaves: dict[str, list[float]] = {name: [] for name in parents}
    for leaf, reward in rewards.items():
        if reward is None:
            continue
        at: str | None = leaf
        for _ in range(len(parents) + 1):
            if at is None:
                break
            if at not in parents:
                raise ValueError(f"the node {at!r} is not in the tree")
            leaves[at].append(reward)
            at = parents[at]
        else:
            raise ValueError(f"the parents of {leaf!r} go round in a circle")
    worth = {name: float(np.mean(found)) if found else None for name, found in leaves.items()}
    credits: dict[str, float | None] = {}
    for name, parent in parents.items():
        if parent is not None:
            here, there = worth[name], worth[parent]
            credits[name] = None if here is None or there is None else here - there
    return credits


def _valid(rewards: Rewards) -> npt.NDArray[np.float64]:
    return np.array([reward for reward in rewards if reward is not None], dtype=np.float64)


def _has_signal(valid: npt.NDArray[np.float64], least: int) -> bool:
    return len(valid) >= max(2, least) and not bool((valid == valid[0]).all())
