"""Advantages: from the rewards of a group to the credit of each of its trajectories.

Owns: group-relative advantages with masking.
Invariant: a masked member (reward None) is in no statistic and gets no credit; a group without signal, or with
fewer valid members than `least`, gives none.
Must not know: tokens, losses, models.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def group_advantages(rewards: Sequence[float | None], *, least: int = 2, scale: bool = True) -> list[float | None]:
    """Credit of each member of one group: `(r − mean) / std` over the valid members (GRPO, arXiv 2402.03300).

    `rewards` [G] holds None where a member is masked. With `scale` False the division is left out (Dr. GRPO,
    arXiv 2503.20783). Returns [G], None for masked members, and for all members where the group has fewer than
    `least` valid members or all its valid rewards are equal.
    """
    valid = np.array([reward for reward in rewards if reward is not None], dtype=np.float64)
    if len(valid) < max(2, least) or bool((valid == valid[0]).all()):
        return [None] * len(rewards)
    mean, std = float(valid.mean()), float(valid.std())
    divisor = std if scale else 1.0
    return [None if reward is None else (reward - mean) / divisor for reward in rewards]
