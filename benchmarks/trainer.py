"""Tokens a cpu-second of the trainer on ragged trajectories, beside a bare forward and backward on equal lengths.

    python benchmarks/trainer.py [--model quickstart|smollm2|FOLDER] [--run RUN_FOLDER] [--threads 1] [--rounds 5]

The trainer is given samples as tuples, and packs, scores, takes the loss, clips and steps. The bare pass is given
tensors: rows of the samples' mean length, as many tokens read out against the vocabulary, the mean of their
log-likelihood, one backward; no padding, no packing, no clipping, no optimiser. Third come the matrix products of that
pass alone, on buffers that are there already: the bound of the machine. All three run in turn, in each round, with one
model, as many tokens, threads and tokens a pass. A ratio is the median over rounds.

The lengths are those of one minibatch of real attempts, (tokens, sampled by the policy): of the run in `--run`, or else
as they were recorded from the first update of `quickstart` and of `smollm2`.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from practicum.policies.local.folder import load_folder
from practicum.policies.local.known import model_folder
from practicum.policies.local.lora import Adapters, LoraLinear, add_adapters
from practicum.policies.local.model import Decoder, ModelShape, use_threads
from practicum.records.sample import Sample, samples_from
from practicum.training.losses import clipped_policy_gradient
from practicum.training.trainer import Trainer
from practicum.trajectories.store import TrajectoryStore

Lengths = list[tuple[int, int]]
RECORDED = {
    "quickstart": (
        "130:37 111:33 111:33 85:15 111:33 303:38 126:33 111:33 111:33 111:33 111:33 111:33 111:33 85:15 85:15 "
        "111:33 116:29 116:29 172:29 116:29 116:29 92:13 315:46 143:29 120:29 104:29 104:29 104:29 120:29 104:29 "
        "80:13 195:44 137:33 119:33 93:15 93:15 119:33 119:33 93:15 137:33 109:29 96:31 141:25 96:31 96:31 109:29 "
        "70:13 96:31 "
    ),
    "smollm2": (
        "147:60 137:50 159:72 159:72 159:72 103:16 159:72 159:72 137:72 137:72 137:72 125:60 88:23 137:72 119:54 "
        "119:54 174:70 176:72 176:72 176:72 176:72 176:72 176:72 176:72 124:59 121:56 137:72 106:41 137:72 122:57 "
        "110:45 128:63 110:18 164:72 149:57 156:64 164:72 126:34 112:20 164:72 130:64 133:67 130:64 138:72 85:19 "
        "125:59 125:59 117:51 "
    ),
}


def lengths_of(text: str) -> Lengths:
    """`tokens:sampled` words as pairs."""
    return [(int(tokens), int(sampled)) for tokens, sampled in (word.split(":") for word in text.split())]


def lengths_in(run: Path) -> Lengths:
    """(tokens, sampled) of each sample of the run's first update."""
    store = TrajectoryStore(run / "trajectories")
    samples = [s for t in store.load(store.batches("rl")[0]) for s in samples_from(t, 1.0)]
    return [(len(sample.input_ids), sum(sample.loss_mask)) for sample in samples]


def samples_like(lengths: Lengths, vocabulary: int, seed: int) -> list[Sample]:
    """Random ids of these lengths, the sampled ones spread over the second half."""
    rng = random.Random(f"benchmark-{seed}")
    made = []
    for tokens, sampled in lengths:
        trained = set(rng.sample(range(max(1, tokens // 2 - sampled), tokens), sampled))
        mask = tuple(int(place in trained) for place in range(tokens))
        ids = tuple(rng.randrange(vocabulary) for _ in range(tokens))
        made.append(Sample(ids, mask, tuple(-5.0 * m for m in mask), tuple(rng.uniform(-1, 1) * m for m in mask), 0))
    return made


def bare(model: Decoder, ids: Tensor, sampled: int) -> None:
    """A forward and backward on `ids` [B, T], the last `sampled` of each row read out."""
    hidden = model(ids)[:, -sampled - 1 : -1]
    logprobs = model.logits(hidden).log_softmax(-1).gather(-1, ids[:, -sampled:, None])
    (-logprobs.mean()).backward()  # type: ignore[no-untyped-call]


def products(model: Decoder, tokens: int, sampled: int) -> list[Callable[[], object]]:
    """The matrix products of a forward and backward: y = x·Wᵀ, dx = dy·W, and dW = dyᵀ·x for what is trained."""
    made: list[Callable[[], object]] = []

    def add(weight: Tensor, rows: int, *, trained: bool) -> None:
        weight = weight.detach()
        x, y = torch.randn(rows, weight.shape[1]), torch.randn(rows, weight.shape[0])
        into = torch.empty_like(x), torch.empty_like(y), torch.empty_like(weight)
        made.append(lambda: torch.mm(x, weight.T, out=into[1]))
        made.append(lambda: torch.mm(y, weight, out=into[0]))
        if trained:
            made.append(lambda: torch.mm(y.T, x, out=into[2]))

    for block in model.blocks:
        for module in block.modules():
            if isinstance(module, LoraLinear):
                add(module.a, tokens, trained=True)
                add(module.b, tokens, trained=True)
            elif isinstance(module, torch.nn.Linear):
                add(module.weight, tokens, trained=module.weight.requires_grad)
    readout = model.embedding.weight if model.readout is None else model.readout.weight
    add(readout, sampled, trained=readout.requires_grad)
    return made


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def model_of(name: str) -> Decoder:
    """The quickstart's decoder, or a pretrained model with adapters as its run trains it."""
    if name == "quickstart":
        return Decoder(ModelShape(vocabulary=512, layers=2, width=192, heads=6, context=512))
    model, _ = load_folder(model_folder(name, Path.home() / ".cache" / "practicum" / "models"), context=1024)
    add_adapters(model, Adapters(rank=16, alpha=32.0))
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="quickstart")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--samples", type=int, default=20, help="a minibatch")
    parser.add_argument("--batch-tokens", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    use_threads(given.threads)
    lengths = lengths_in(given.run) if given.run else lengths_of(RECORDED.get(given.model, RECORDED["smollm2"]))
    random.Random("lengths").shuffle(lengths)
    lengths = lengths[: given.samples]
    model = model_of(given.model)
    samples = samples_like(lengths, model.shape.vocabulary, 0)
    tokens, sampled = (sum(each) for each in zip(*lengths, strict=True))
    length, read = round(tokens / len(lengths)), round(sampled / len(lengths))
    rows = max(1, given.batch_tokens // length)
    equal = torch.split(torch.randint(0, model.shape.vocabulary, (len(lengths), length)), rows)
    alone = [products(model, len(part) * length, len(part) * read) for part in equal]
    trainer = Trainer(model, batch_tokens=given.batch_tokens)
    loss = clipped_policy_gradient(clip_low=0.2, clip_high=0.28)

    def trained() -> None:
        trainer.forward_backward(samples, loss)
        trainer.optim_step(0.0)

    def passed() -> None:
        for part in equal:
            bare(model, part, read)
        model.zero_grad()

    def multiplied() -> None:
        for part in alone:
            for product in part:
                product()

    work = {
        "trainer, ragged": (trained, tokens),
        "bare, equal": (passed, length * len(lengths)),
        "matrix products": (multiplied, length * len(lengths)),
    }
    ordered = [tokens for tokens, _ in sorted(lengths)]
    print(
        f"{given.model}: {len(lengths)} samples of {ordered[0]} to {ordered[-1]} tokens, {tokens} in all, {sampled} of "
        f"them trained; equal: {length}; {given.threads} threads, {given.batch_tokens} tokens a pass"
    )
    rates: dict[str, list[float]] = {name: [] for name in work}
    for number in range(given.rounds + 1):
        for name in sorted(work, reverse=number % 2 == 1):
            run, count = work[name]
            spent = cpu_seconds(run)
            if number:  # the first round warms up
                rates[name].append(count / spent)
    for name, each in rates.items():
        print(f"{name:16} {statistics.median(each):9.1f} tokens a cpu-second (from {min(each):.1f} to {max(each):.1f})")
    first, *others = rates
    for other in others:
        ratio = statistics.median(a / b for a, b in zip(rates[first], rates[other], strict=True))
        print(f"ratio to {other}: {ratio:.2f}")


if __name__ == "__main__":
    main()
