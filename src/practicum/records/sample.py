"""The sample: one flat row of tokens that a trainer can use.

Owns: `Sample` and its conversion from a trajectory.
Invariant: a token trains at most once, and only if the policy sampled it (`loss_mask`).
Must not know: losses, advantages' formulae, models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from practicum.records.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Sample:
    """Per-token streams of equal length T.

    `loss_mask[t]` is 1 where token t was sampled by the policy, `behaviour_logprobs[t]` its log-probability
    then (0 elsewhere), `advantages[t]` its credit (0 elsewhere), `policy_version` the oldest that sampled it.
    `reference_logprobs` are those of a fixed model, `proximal_logprobs` the trainer's before an update began; empty
    where nobody asked for them.
    """

    input_ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    behaviour_logprobs: tuple[float, ...]
    advantages: tuple[float, ...]
    policy_version: int
    reference_logprobs: tuple[float, ...] = ()
    proximal_logprobs: tuple[float, ...] = ()


def samples_from(trajectory: Trajectory, advantage: float | Sequence[float]) -> list[Sample]:
    """Flatten a trajectory into samples, one where every turn's prompt extends the last, else several.

    `advantage` is given to every sampled token, or one for each turn to the tokens of that turn. No token is tokenised
    again.
    """
    by_turn = [advantage] * len(trajectory.turns) if isinstance(advantage, (int, float)) else advantage
    rows: list[Sample] = []
    ids: list[int] = []
    mask: list[int] = []
    logprobs: list[float] = []
    credit: list[float] = []
    version = 0

    def flush() -> None:
        if any(mask):
            rows.append(Sample(tuple(ids), tuple(mask), tuple(logprobs), tuple(credit), version))

    for turn, worth in zip(trajectory.turns, by_turn, strict=True):
        prompt = list(turn.prompt_ids)
        if prompt[: len(ids)] != ids or not ids:
            flush()
            ids, mask, logprobs, credit, version = [], [], [], [], turn.policy_version
        fresh = prompt[len(ids) :]
        ids += [*fresh, *turn.sampled_ids]
        mask += [0] * len(fresh) + [1] * len(turn.sampled_ids)
        logprobs += [0.0] * len(fresh) + list(turn.logprobs)
        credit += [0.0] * len(fresh) + [worth] * len(turn.sampled_ids)
        version = min(version, turn.policy_version)
    flush()
    return rows
