"""Tokens a second of the local engine beside `transformers`' `generate`: same weights, threads, prompts and lengths.

    python benchmarks/engine.py [--model smollm2|FOLDER] [--requests 32] [--turns 3] [--threads 2] [--rounds 2]

Needs `transformers`, which practicum itself does not (pip install transformers). `--requests` conversations run at the
same time, in groups of eight that begin alike, as attempts at one task do. In each turn every one says `--tokens` ids,
and is then told some more; turns of one conversation follow each other, and conversations do not wait for one another.
transformers is given each turn of all conversations as one left-padded batch, and keeps its key/value cache from turn
to turn. Both sides answer exactly the number of ids that is asked for; transformers must go on to the longest of a
turn. Ratios are of wall clock and of cpu, side by side, in alternating rounds. What they consist of is printed as the
cpu-seconds of each side for prompts and for sampling; what transformers spends outside its forward pass is sampling.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from practicum.policies.contract import SamplingParams
from practicum.policies.local.engine import LocalEngine
from practicum.policies.local.folder import load_folder
from practicum.policies.local.generator import Generator, Request
from practicum.policies.local.known import model_folder
from practicum.policies.local.model import next_logprobs, use_threads

GROUP = 8


class Timed(Generator):
    """A generator that sums the cpu-seconds of feeding prompts."""

    prompts_s = 0.0

    def begin(self, requests: Sequence[Request]) -> list[int]:
        start = time.process_time()
        try:
            return super().begin(requests)
        finally:
            self.prompts_s += time.process_time() - start


class Watched:
    """The cpu-seconds that a transformers model spends on feeding prompts: passes of more than one id a row."""

    def __init__(self, model: Any) -> None:
        self.prompts_s = self._start = 0.0
        model.register_forward_pre_hook(self._before, with_kwargs=True)
        model.register_forward_hook(self._after, with_kwargs=True)

    def _before(self, _: Any, args: Any, kwargs: Any) -> None:
        self._start = time.process_time()

    def _after(self, _: Any, args: Any, kwargs: Any, output: Any) -> None:
        if kwargs["input_ids"].shape[1] > 1:
            self.prompts_s += time.process_time() - self._start


Conversation = tuple[list[int], list[list[int]]]


def conversations(requests: int, turns: int, vocabulary: int, seed: int) -> list[Conversation]:
    """(first prompt, what is said in between) for each; members of a group begin alike."""
    rng = random.Random(seed)
    made: list[Conversation] = []
    for number in range(requests):
        if number % GROUP == 0:
            prompt = [rng.randrange(100, vocabulary) for _ in range(rng.randint(150, 350))]
        between = [[rng.randrange(100, vocabulary) for _ in range(rng.randint(20, 120))] for _ in range(turns - 1)]
        made.append((list(prompt), between))
    return made


def ours(
    generator: Generator, talks: list[Conversation], lengths: list[list[int]]
) -> tuple[int, list[tuple[list[int], list[float]]]]:
    """Ids sampled in all, and for each conversation the last prompt with its sample and log-probabilities."""
    engine = LocalEngine(generator, continuous=True)

    async def talk(number: int) -> tuple[int, list[int], list[float]]:
        prompt, between = list(talks[number][0]), talks[number][1]
        said = 0
        with engine.session(f"s{number}"):
            for turn, most in enumerate(lengths[number]):
                params = SamplingParams(most, 1.0, (), seed=number * 100 + turn)
                sampled = await engine.sample(prompt, params, session=f"s{number}")
                said += len(sampled.ids)
                whole, logprobs = [*prompt, *sampled.ids], list(sampled.logprobs)
                prompt = whole + (between[turn] if turn < len(between) else [])
        return said, whole, logprobs

    async def everybody() -> list[tuple[int, list[int], list[float]]]:
        return list(await asyncio.gather(*(talk(number) for number in range(len(talks)))))

    results = asyncio.run(everybody())
    return sum(result[0] for result in results), [(result[1], result[2]) for result in results]


def theirs(model: Any, talks: list[Conversation], lengths: list[list[int]]) -> int:
    """Ids sampled in all. Rows that need fewer than the longest of a turn are generated along, and masked.

    Between turns its own cache is kept: a row is then ids of which `mask` says which count, with padding before the
    first prompt and before what is said in each turn.
    """
    ids = mask = torch.zeros(len(talks), 0, dtype=torch.long)
    cache, said = None, 0
    for turn in range(len(lengths[0])):
        fresh = [between[turn - 1] if turn else prompt for prompt, between in talks]
        longest, most = max(map(len, fresh)), max(each[turn] for each in lengths)
        ids = torch.cat([ids, torch.tensor([[0] * (longest - len(p)) + p for p in fresh])], dim=1)
        mask = torch.cat([mask, torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in fresh])], dim=1)
        out = model.generate(
            ids, attention_mask=mask, max_new_tokens=most, min_new_tokens=most, do_sample=True, top_k=0,
            pad_token_id=0, past_key_values=cache, use_cache=True, return_dict_in_generate=True,
        )  # fmt: skip
        ids, cache = out.sequences, out.past_key_values
        kept = torch.tensor([each[turn] for each in lengths])
        mask = torch.cat([mask, (torch.arange(most) < kept[:, None]).long()], dim=1)
        said += int(kept.sum())
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=48, help="mean ids of a turn; they vary by half of it")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    from transformers import AutoModelForCausalLM

    use_threads(given.threads)
    folder = model_folder(given.model, Path.home() / ".cache" / "practicum" / "models")
    model, _ = load_folder(folder, context=2048)
    other = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    rng = random.Random(7)
    lengths = [
        [rng.randint(given.tokens // 2, given.tokens * 3 // 2) for _ in range(given.turns)]
        for _ in range(given.requests)
    ]
    watched = Watched(other)
    ratios: list[tuple[float, float]] = []
    for number in range(given.rounds):
        talks = conversations(given.requests, given.turns, model.shape.vocabulary, seed=number)
        rates = {}
        for name in ("practicum", "transformers") if number % 2 == 0 else ("transformers", "practicum"):
            start, cpu = time.perf_counter(), time.process_time()
            if name == "practicum":
                generator = Timed(model, max_rows=given.requests)
                said, last = ours(generator, talks, lengths)
                prompts = generator.prompts_s
            else:
                watched.prompts_s = 0.0
                said = theirs(other, talks, lengths)
                prompts = watched.prompts_s
            wall, spent = time.perf_counter() - start, time.process_time() - cpu
            rates[name] = said / wall, said / spent
            print(
                f"{name:13} {said:6} tokens  {said / wall:7.1f} a second  {said / spent:7.1f} a cpu-second"
                f"  (prompts {prompts:.1f} s, sampling {spent - prompts:.1f} s)",
                flush=True,
            )
        ratios.append(tuple(a / b for a, b in zip(rates["practicum"], rates["transformers"], strict=True)))  # type: ignore[arg-type]
    worst = 0.0
    for whole, logprobs in last[:8]:
        with torch.no_grad():
            plain = next_logprobs(model, torch.tensor([whole]))[0, -len(logprobs) :]
        worst = max(worst, float((plain - torch.tensor(logprobs)).abs().max()))
    wall, spent = (statistics.median(each) for each in zip(*ratios, strict=True))
    print(f"ratio: {wall:.2f} by wall clock, {spent:.2f} by cpu")
    print(f"largest difference from a plain forward pass: {worst:.1e}")


if __name__ == "__main__":
    main()
