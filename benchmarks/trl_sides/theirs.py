"""TRL's side: `GRPOTrainer` with an `environment_factory`, on the tasks that practicum's side drew, in their order.

    python theirs.py FOLDER OURS.json OUT SETTING…

Owns: the trainer's settings, which are those of the run in FOLDER with SETTING….
Invariant: what is counted is `train()`, from the first batch to the last step; records and checkpoints are left out.
Must not know: how a box works.
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from boxes import Boxes, Repair, rewards
from clock import Parts, spent
from datasets import Dataset  # type: ignore[import-not-found, unused-ignore]
from transformers import (  # type: ignore[import-not-found, unused-ignore]
    AutoModelForCausalLM,
    AutoTokenizer,
    PrinterCallback,
    TrainerCallback,
)
from trl import GRPOConfig, GRPOTrainer  # type: ignore[import-not-found, unused-ignore]
from trl.trainer import grpo_trainer  # type: ignore[import-not-found, unused-ignore]
from words import RESPONSES

from practicum.config import load_config
from practicum.config.sections import RunConfig
from practicum.policies.local.model import use_threads
from practicum.training.schedules import linear

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"


def settings(config: RunConfig, out: Path) -> GRPOConfig:
    """The run's settings in TRL's words."""
    rl, rollout = config.rl, config.rollout
    batch = rollout.tasks_per_update * rollout.group_size
    return GRPOConfig(
        output_dir=str(out.with_suffix(".trl")),
        seed=config.seed,
        max_steps=rl.updates * rl.minibatches,
        per_device_train_batch_size=batch // rl.minibatches,
        gradient_accumulation_steps=1,
        steps_per_generation=rl.minibatches,
        num_generations=rollout.group_size,
        max_completion_length=rollout.max_context - 1,
        max_tool_calling_iterations=rollout.max_turns - 1,
        generation_kwargs={"max_new_tokens": rollout.max_tokens_per_turn},
        temperature=rollout.temperature,
        top_p=1.0,
        top_k=0,
        loss_type="bnpo",  # the mean over the tokens of a minibatch, as practicum's
        scale_rewards="group",
        beta=0.0,
        epsilon=rl.clip_low,
        epsilon_high=rl.clip_high,
        max_grad_norm=rl.grad_clip,
        shuffle_dataset=False,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        logging_steps=rl.minibatches,
        log_completions=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


def optimiser(model: torch.nn.Module, config: RunConfig) -> Any:
    """practicum's AdamW and its schedule: the rate is that of the update which a step belongs to."""
    rl = config.rl
    adam = torch.optim.AdamW(model.parameters(), lr=1.0, betas=(0.9, 0.95), eps=1e-8, weight_decay=rl.weight_decay)

    def rate(step: int) -> float:
        return linear(step // rl.minibatches, rl.updates, first=rl.lr, last=rl.lr_final, warmup=3)

    return adam, torch.optim.lr_scheduler.LambdaLR(adam, rate)


class Watch(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Keeps what the trainer logs of each update."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        if logs and "reward" in logs:
            self.rows.append(logs)


class Counting(GRPOTrainer):  # type: ignore[misc, unused-ignore]
    """Nothing but `GRPOTrainer`, and counts of what it generated."""

    sampled = turns = 0

    def _generate_single_turn(self, *args: Any, **more: Any) -> Any:
        ids, logprobs = super()._generate_single_turn(*args, **more)
        self.turns += len(ids)
        self.sampled += sum(map(len, ids))
        return ids, logprobs


class Judged:
    """The reward function, which keeps what it gave, in the order that it was asked."""

    __name__ = "reward"  # TRL logs it by that

    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes
        self.got: list[tuple[str, float | None]] = []

    def __call__(self, environments: Any, completions: Any, task: list[str], **_: Any) -> list[float | None]:
        found = rewards(self._boxes, environments, completions)
        self.got += zip(task, found, strict=True)
        return found

    def batches(self, size: int, group: int) -> list[list[list[tuple[str, float | None]]]]:
        """Groups by update."""
        groups = [self.got[i : i + group] for i in range(0, len(self.got), group)]
        return [groups[i : i + size] for i in range(0, len(groups), size)]


def clocks(parts: Parts) -> None:
    """Put `parts` on the trainer's work."""
    parts.time(Counting, "_generate_single_turn", "generation")
    parts.time(Counting, "training_step", "forward and backward")
    parts.time(Counting, "_prepare_inputs", "batches")
    scoring = "_get_per_token_logps_and_entropies"
    parts.time(Counting, scoring, "log-probabilities", unless_in="forward and backward")
    for name in ("_tokenize_prompts", "_get_tool_suffix_ids"):
        parts.time(Counting, name, "text")
    parts.time(grpo_trainer, "parse_response", "text")
    parts.time(torch.optim.AdamW, "step", "forward and backward")


def outcome(judged: Judged, watch: Watch, trainer: Counting, config: RunConfig) -> dict[str, Any]:
    """What was done and what came of it."""
    batches = judged.batches(config.rollout.tasks_per_update, config.rollout.group_size)
    rewards_of = [[[reward for _, reward in group] for group in batch] for batch in batches]
    given = [[r for group in batch for r in group if r is not None] for batch in rewards_of]
    return {
        "episodes": len(judged.got),
        "turns": trainer.turns,
        "sampled": trainer.sampled,
        "groups": [
            [(group[0][0], [reward >= 1.0 for _, reward in group if reward is not None]) for group in batch]
            for batch in batches
        ],
        "reward": [sum(batch) / len(batch) for batch in given],
        "signal": [sum(len(set(group)) > 1 for group in batch) / len(batch) for batch in rewards_of],
        "entropy": [row["entropy"] for row in watch.rows],
    }


def main(folder: Path, ours: Path, out: Path, given: list[str]) -> None:
    use_threads(1)
    config = load_config(folder / "run" / "config.toml", given)
    drawn = [task for batch in json.loads(ours.read_text())["groups"] for task, _ in batch]
    model = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder / "model", padding_side="left")
    tokenizer.response_template = RESPONSES
    watch = Watch()
    with Boxes(folder / "run" / "tasks") as boxes:
        rows = [
            {"prompt": [{"role": "user", "content": boxes.tasks[task].instruction}], "task": task} for task in drawn
        ]
        judged = Judged(boxes)
        trainer = Counting(
            model,
            reward_funcs=[judged],
            args=settings(config, out),
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            callbacks=[watch],
            optimizers=optimiser(model, config),
            environment_factory=partial(Repair, boxes),
        )
        trainer.remove_callback(PrinterCallback)
        parts = Parts(out.with_suffix(".parts"))
        clocks(parts)
        threads = time.pthread_getcpuclockid(boxes.thread.ident or 0)
        parts_before, before, client = parts.read(), spent([os.getpid()]), time.clock_gettime(threads)
        trainer.train()
        cost, client = spent([os.getpid()]).since(before), time.clock_gettime(threads) - client
        done = {name: seconds - parts_before[name] for name, seconds in parts.read().items()}
    found = {
        "trainer": cost.own[os.getpid()] - client,
        "client": client,
        "boxes": cost.boxes,
        "wall": cost.wall,
        "parts": done,
        **outcome(judged, watch, trainer, config),
    }
    out.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
