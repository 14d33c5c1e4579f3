"""A few of a step's own samples, by which it is told whether the step ruined the model.

Owns: `Proof`, `proof_of`.
Invariant: both figures are of the very same tokens, read in the same way; a process has a proof of its own part.
Must not know: optimisers, what follows from it.

A gradient may be in proportion and the step ruinous all the same, as at a learning rate that is too high. The next
step's loss would show it, but by then the weights may have been published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from practicum.records.sample import Sample
from practicum.training.batching import MicroBatch, micro_batches
from practicum.training.losses import Loss, TokenStreams

TOKENS = 256
"""As many as a proof holds at most, unless what belongs together exceeds it alone: a second pass must cost little."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The samples of `batch`, and what they came to `before` the step."""

    batch: MicroBatch
    loss: Loss
    temperature: float
    before: float

    def figure(self, streams: TokenStreams) -> float:
        """What they come to by `streams`."""
        return _figure(self.loss, streams, len(self.batch.lengths))


def proof_of(
    samples: Sequence[Sample], first: MicroBatch, loss: Loss, streams: TokenStreams, temperature: float
) -> Proof:
    """The shortest samples of the micro-batch `first`, which was made of `samples` and has just given `streams`.

    Where the loss is no measure they are of those that have a token to make likelier, if there are any.
    """
    together = 2 if loss.unit == "pair" else 1
    rows = list(range(len(first.lengths)))
    if not loss.name:
        rows = sorted(set(streams.sequences[streams.advantages > 0].tolist())) or rows
    batch = micro_batches([samples[first.places[row]] for row in rows], max_tokens=TOKENS, together=together)[0]
    count = len(batch.lengths)
    return Proof(batch, loss, temperature, _figure(loss, streams.of_rows(rows[:count]), count))


def _figure(loss: Loss, streams: TokenStreams, rows: int) -> float:
    """The loss by unit where that is a measure; else how unlikely the tokens are that were to become likelier, in nats.

    Where none was, there is nothing to go by: tokens that were to become less likely may well have done so.
    """
    if not loss.name:
        praised = streams.logprobs.detach()[streams.advantages > 0]
        return -float(praised.mean()) if len(praised) else 0.0
    units = {"token": len(streams.logprobs), "sequence": rows, "pair": rows // 2}[loss.unit]
    return float(loss(streams).total.detach()) / units
