"""The trainer: `forward_backward`, `optim_step`, `save`, `load`, after the shape of the Tinker API.

Owns: the trained weights, the optimiser, the update counter, what the guard remembers.
Invariant: a step is taken only on a loss and gradients that the guard lets pass, stays only where it did not ruin the
weights, and else leaves no trace; a state that was saved and loaded continues bit for bit.
Must not know: tasks, rewards, boxes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import torch
from torch import Tensor

from practicum.errors import PracticumError, StepRefused, StoreError, TrainerError
from practicum.policies.local.model import Decoder
from practicum.records.sample import Sample
from practicum.training.batching import MicroBatch, micro_batches
from practicum.training.guard import Bounds, StepGuard
from practicum.training.losses import Loss
from practicum.training.precision import Precision, computing
from practicum.training.proof import Proof, proof_of
from practicum.training.scoring import Reading, token_streams
from practicum.training.sharded import Layout, Whole, shares

Metrics = dict[str, float]


class Trainer:
    """AdamW over the weights of a `Decoder` that want a gradient; `read` says what losses are given of it.

    `layout` says where the weights are: with `sharded.Sharded` each process has a trainer of its own, is given the same
    samples and calls the same methods in the same order. `tell` is told why a step was not taken.
    """

    def __init__(
        self,
        model: Decoder,
        *,
        grad_clip: float = 1.0,
        batch_tokens: int = 1024,
        read: Reading = token_streams,
        bounds: Bounds | None = None,
        layout: Layout | None = None,
        precision: Precision = "float32",
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.model = model
        self.read = read
        self.grad_clip = grad_clip
        self.batch_tokens = batch_tokens
        self.layout: Layout = layout or Whole()
        self.guard = StepGuard(bounds or Bounds())
        self.tell = tell
        self.precision: Precision = precision
        computing(precision)  # refused here rather than at the first step
        self.steps = 0
        self._loss: float | None = None  # of what has been accumulated for the next step
        self._proof: Proof | None = None  # of the same
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

    def step(self, samples: Sequence[Sample], loss: Loss, *, lr: float, temperature: float = 1.0) -> Metrics:
        """`forward_backward` and `optim_step`; nothing where the guard refused the step and the run may go on."""
        try:
            return self.forward_backward(samples, loss, temperature=temperature) | self.optim_step(lr)
        except StepRefused:
            return {}

    def forward_backward(self, samples: Sequence[Sample], loss: Loss, *, temperature: float = 1.0) -> Metrics:
        """Accumulate gradients of the mean loss over all of the loss's units in `samples`: tokens, sequences or pairs.

        With a loss over pairs, chosen and rejected answers stand in turn. `temperature` is the one they were sampled
        at: log-probabilities are compared under one distribution. Returns the mean loss, what the loss watches per
        token (per pair, with such a loss), and `tokens`. Raises `StepRefused` for a loss that is not finite, and
        `TrainerError` for an empty batch or a sample longer than the model's context; then no gradient is kept.
        """
        batches = micro_batches(samples, max_tokens=self.batch_tokens, together=2 if loss.unit == "pair" else 1)
        tokens = sum(len(batch.rows) for batch in batches)
        if tokens == 0:
            raise TrainerError("the batch holds no token to train on")
        longest = max(max(batch.lengths) for batch in batches)
        if longest > self.model.shape.context:
            raise TrainerError(
                f"a sample has {longest} tokens, and the model's context has {self.model.shape.context}",
                fix="raise policy.context, or lower rollout.max_context",
            )
        sequences = sum(len(batch.lengths) for batch in batches)
        units = {"token": tokens, "sequence": sequences, "pair": sequences // 2}[loss.unit]
        watched_by = units if loss.unit == "pair" else tokens
        self.guard = self.guard.under(loss.name)
        try:
            metrics = self._accumulate(samples, batches, loss, temperature, units, watched_by)
        except PracticumError:
            self._forget()
            raise
        if not math.isfinite(metrics["loss"]):
            self._refuse("the loss is not finite")
        self._loss = (self._loss or 0.0) + metrics["loss"]
        return metrics | {"tokens": float(tokens)}

    def _accumulate(
        self,
        samples: Sequence[Sample],
        batches: Sequence[MicroBatch],
        loss: Loss,
        temperature: float,
        units: int,
        watched_by: int,
    ) -> Metrics:
        metrics: Metrics = {"loss": 0.0}
        for number, (batch, weight) in enumerate(shares(batches, self.layout)):
            with computing(self.precision):
                streams = self.read(self.model, batch, temperature)
            result = loss(streams)
            if number == 0:
                self._proof = proof_of(samples, batch, loss, streams, temperature)
            scaled = result.total * (weight / units)
            # Processes' gradients are averaged, and their losses add up.
            (scaled * self.layout.size).backward()  # type: ignore[no-untyped-call]
            metrics["loss"] += float(scaled.detach())
            for name, value in result.watched.items():
                metrics[name] = metrics.get(name, 0.0) + value * weight / watched_by
        return self.layout.summed(metrics)

    def optim_step(self, lr: float) -> Metrics:
        """One AdamW step at learning rate `lr`, gradients clipped to `grad_clip` in L2 norm, then cleared.

        Raises `StepRefused`, leaving weights and moments as they were, if the gradient is not finite, loss or gradient
        are out of proportion to the last steps, or the step ruins the weights; `TrainerError` once too many steps in a
        row were refused, and where there is no gradient.
        """
        if self._loss is None or self._proof is None:
            raise TrainerError("there is no gradient to make a step on")
        parameters = [p for group in self.optimiser.param_groups for p in group["params"]]
        norm = float(self.layout.gathered(torch.nn.utils.clip_grad_norm_(parameters, self.grad_clip)))
        objection = self.guard.objection(self._loss, norm)
        if objection is not None:
            self._refuse(objection)
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        moments = {parameter: dict(state) for parameter, state in self.optimiser.state.items()}
        values = [*parameters, *(value for state in moments.values() for value in state.values())]
        kept = [(value, value.detach().clone()) for value in values]
        self.optimiser.step()
        objection = self._ruined(self._proof, parameters)
        if objection is not None:
            self._undo(kept, moments)
            self._refuse(objection)
        self.guard = self.guard.taken(self._loss, norm)
        self._forget()
        self.steps += 1
        return {"grad_norm": norm, "lr": lr}

    @torch.no_grad()
    def _ruined(self, proof: Proof, parameters: Sequence[Tensor]) -> str | None:
        """Why the step that was just made must be undone, the same in every process."""
        with computing(self.precision):
            streams = self.read(self.model, proof.batch, proof.temperature)
        self.layout.put_back(self.model)
        means = self.layout.summed({"before": proof.before, "after": proof.figure(streams)})
        before, after = (means[name] / self.layout.size for name in ("before", "after"))
        norm = self.layout.gathered(torch.nn.utils.get_total_norm(parameters))
        return self.guard.ruin(before, after, float(norm))

    @torch.no_grad()
    def _undo(self, kept: Sequence[tuple[Tensor, Tensor]], moments: dict[Tensor, dict[str, Tensor]]) -> None:
        """Weights and `moments` as they were; weights that no step had moved before have none."""
        for value, before in kept:
            value.copy_(before)
        self.optimiser.state.clear()
        self.optimiser.state.update(moments)

    def _forget(self) -> None:
        """Clear what has been accumulated: it must not reach the next step."""
        self.optimiser.zero_grad(set_to_none=True)
        self._loss = self._proof = None

    def _refuse(self, reason: str) -> NoReturn:
        self._forget()
        self.guard = self.guard.not_taken()
        if self.tell is not None:
            self.tell(reason)
        if self.guard.spent:
            raise TrainerError(
                f"{self.guard.refused} steps in a row were not taken; the last one: {reason}",
                fix="the last good version is kept; start again from it with a lower learning rate",
            )
        raise StepRefused(reason)

    def state(self) -> dict[str, Tensor]:
        """The weights by name, detached copies, whole in every process."""
        whole = self.layout.gathered
        return {name: whole(value.detach()).clone() for name, value in self.model.state_dict().items()}

    def take(self, state: Mapping[str, Tensor]) -> None:
        """Put weights back that `state` gave, whole in every process."""
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                value.copy_(self.layout.part_of(state[name], value))

    def save(self, folder: Path) -> None:
        """Write `optimiser.safetensors` and `trainer.json` into the existing `folder`; weights are published apart.

        The first process writes, for all; the files do not depend on how many there are.
        """
        from safetensors.torch import save_file

        tensors: dict[str, Tensor] = {}
        for index, parameter in enumerate(p for g in self.optimiser.param_groups for p in g["params"]):
            for name, value in self.optimiser.state.get(parameter, {}).items():
                tensors[f"{index}.{name}"] = self.layout.gathered(value.detach()).clone().contiguous()
        if self.layout.rank == 0:
            save_file(tensors, folder / "optimiser.safetensors")
            state = {"steps": self.steps, "guard": self.guard.to_dict()}
            (folder / "trainer.json").write_text(json.dumps(state))

    def load(self, folder: Path) -> None:
        """Take the optimiser's state, the counters and the guard's memory back from `folder`.

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
                found.setdefault(parameter, {})[field] = self.layout.part_of(value, parameter)
            state = json.loads((folder / "trainer.json").read_text("utf-8"))
            steps, guard = int(state["steps"]), self.guard.remembering(state["guard"])
        except (OSError, SafetensorError, ValueError, KeyError, IndexError, TypeError) as error:
            raise StoreError(f"cannot read the trainer's state in {folder}: {error}") from error
        self.optimiser.state.clear()
        self.optimiser.state.update(found)
        self.steps, self.guard = steps, guard


def mean_of(reports: Sequence[Metrics]) -> Metrics:
    """The mean of what steps report, over those that were taken; nothing where none was."""
    taken = [report for report in reports if report]
    return {name: sum(report[name] for report in taken) / len(taken) for name in (taken[0] if taken else ())}
