"""The trainer: `forward_backward`, `optim_step`, `save`, `load`, after the shape of the Tinker API.

Owns: the trained weights, the optimiser, the update counter.
Invariant: a step is taken only on finite gradients; a state that was saved and loaded continues bit for bit.
Must not know: tasks, rewards, boxes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from practicum.errors import StoreError, TrainerError
from practicum.policies.local.model import Decoder
from practicum.records.sample import Sample
from practicum.training.batching import MicroBatch, micro_batches
from practicum.training.losses import Loss, TokenStreams
from practicum.training.scoring import token_scores

Metrics = dict[str, float]


class Trainer:
    """AdamW over the weights of a `Decoder` that want a gradient."""

    def __init__(self, model: Decoder, *, grad_clip: float = 1.0, batch_tokens: int = 1024) -> None:
        self.model = model
        self.grad_clip = grad_clip
        self.batch_tokens = batch_tokens
        self.steps = 0
        trained = [p for p in model.parameters() if p.requires_grad]  # not what adapters stand upon
        matrices = [p for p in trained if p.dim() > 1]
        vectors = [p for p in trained if p.dim() <= 1]
        self.optimiser = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.0}, {"params": vectors, "weight_decay": 0.0}],
            lr=0.0,
            betas=(0.9, 0.95),
            eps=1e-8,
        )

    def set_weight_decay(self, weight_decay: float) -> None:
        """AdamW's decay of matrices; norms are never decayed."""
        self.optimiser.param_groups[0]["weight_decay"] = weight_decay

    def forward_backward(self, samples: Sequence[Sample], loss: Loss, *, temperature: float = 1.0) -> Metrics:
        """Accumulate gradients of the mean loss over all of the loss's units in `samples`: tokens, sequences or pairs.

        With a loss over pairs, chosen and rejected answers stand in turn. `temperature` is the one they were sampled
        at: log-probabilities are compared under one distribution. Returns the mean loss, what the loss watches per
        token (per pair, with such a loss), and `tokens`. Raises `TrainerError` for an empty batch or a loss that is not
        finite; then no gradient is kept.
        """
        batches = micro_batches(samples, max_tokens=self.batch_tokens, together=2 if loss.unit == "pair" else 1)
        tokens = sum(len(batch.rows) for batch in batches)
        if tokens == 0:
            raise TrainerError("the batch holds no token to train on")
        rows = sum(any(sample.loss_mask) for sample in samples)
        units = {"token": tokens, "sequence": rows, "pair": len(samples) // 2}[loss.unit]
        watched_by = units if loss.unit == "pair" else tokens
        metrics: Metrics = {"loss": 0.0}
        for batch in batches:
            result = loss(self._streams(batch, temperature))
            scaled = result.total / units
            if not math.isfinite(float(scaled.detach())):
                # What earlier micro-batches left behind must not reach the next step.
                self.optimiser.zero_grad(set_to_none=True)
                raise TrainerError(
                    "the loss is not finite", fix="lower the learning rate, go back to the last checkpoint"
                )
            scaled.backward()  # type: ignore[no-untyped-call]
            metrics["loss"] += float(scaled.detach())
            for name, value in result.watched.items():
                metrics[name] = metrics.get(name, 0.0) + value / watched_by
        return metrics | {"tokens": float(tokens)}

    def _streams(self, batch: MicroBatch, temperature: float) -> TokenStreams:
        logprobs, entropies = token_scores(self.model, batch, temperature)
        return TokenStreams(
            logprobs,
            entropies,
            batch.behaviour_logprobs,
            batch.advantages,
            batch.rows,
            batch.reference_logprobs,
            batch.proximal_logprobs,
        )

    def optim_step(self, lr: float) -> Metrics:
        """One AdamW step at learning rate `lr`, gradients clipped to `grad_clip` in L2 norm, then cleared.

        Raises `TrainerError`, leaving the weights as they were, if the gradient is not finite.
        """
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.grad_clip))
        if not math.isfinite(norm):
            self.optimiser.zero_grad(set_to_none=True)
            raise TrainerError(
                "the gradient is not finite", fix="lower the learning rate, go back to the last checkpoint"
            )
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.steps += 1
        return {"grad_norm": norm, "lr": lr}

    def state(self) -> dict[str, Tensor]:
        """The weights by name, detached copies."""
        return {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def save(self, folder: Path) -> None:
        """Write `optimiser.safetensors` and `trainer.json` into the existing `folder`; weights are published apart."""
        from safetensors.torch import save_file

        tensors: dict[str, Tensor] = {}
        for index, parameter in enumerate(p for g in self.optimiser.param_groups for p in g["params"]):
            for name, value in self.optimiser.state.get(parameter, {}).items():
                tensors[f"{index}.{name}"] = value.detach().clone().contiguous()
        save_file(tensors, folder / "optimiser.safetensors")
        (folder / "trainer.json").write_text(json.dumps({"steps": self.steps}))

    def load(self, folder: Path) -> None:
        """Take the optimiser's state and the counters back from `folder`.

        Raises `StoreError`, leaving the trainer as it was, where they are missing, damaged or of another model.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        parameters = [p for g in self.optimiser.param_groups for p in g["params"]]
        found: dict[Tensor, dict[str, Tensor]] = {}
        try:
            for name, value in load_file(folder / "optimiser.safetensors").items():
                index, _, field = name.partition(".")
                parameter = parameters[int(index)]
                if field != "step" and value.shape != parameter.shape:
                    raise ValueError(f"{name} is of shape {list(value.shape)}, not {list(parameter.shape)}")
                found.setdefault(parameter, {})[field] = value
            steps = int(json.loads((folder / "trainer.json").read_text("utf-8"))["steps"])
        except (OSError, SafetensorError, ValueError, KeyError, IndexError, TypeError) as error:
            raise StoreError(f"cannot read the trainer's state in {folder}: {error}") from error
        self.optimiser.state.clear()
        self.optimiser.state.update(found)
        self.steps = steps
