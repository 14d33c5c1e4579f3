"""A trainer over two processes is one trainer. `torchrun` starts this same file, with a folder, as their program."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.testing import assert_close

from practicum.errors import TrainerError
from practicum.policies.local.model import Decoder, ModelShape
from practicum.records.sample import Sample
from practicum.training.batching import micro_batches
from practicum.training.losses import clipped_policy_gradient
from practicum.training.sharded import Sharded, process_group, shard, shares
from practicum.training.trainer import Trainer

SHAPE = ModelShape(vocabulary=17, layers=2, width=16, heads=2, context=32)
LOSS = clipped_policy_gradient(clip_low=0.2, clip_high=0.28, entropy_bonus=0.01)
BATCH_TOKENS = 24


def read_samples(folder: Path) -> list[Sample]:
    """The samples that both sides train on."""
    rows = json.loads((folder / "samples.json").read_text())
    return [Sample(tuple(ids), tuple(mask), tuple(then), tuple(credit), 0) for ids, mask, then, credit in rows]


def slopes(trainer: Trainer) -> dict[str, Tensor]:
    whole = trainer.layout.gathered
    return {name: whole(p.grad).clone() for name, p in trainer.model.named_parameters() if p.grad is not None}


def train_together(folder: Path) -> None:
    """What each process does: two steps with one between them that ruins the model, and the second once more from what
    was saved; it writes down what it had."""
    torch.set_num_threads(1)
    samples, reports = read_samples(folder), []
    tensors: dict[str, dict[str, Tensor]] = {}
    with process_group(timeout_s=120):
        model = Decoder(SHAPE, seed=2)
        layout = shard(model)
        held = sum(len(part.reshape(-1)) for part in (layout.local(p) for p in model.parameters()))
        trainer = Trainer(model, batch_tokens=BATCH_TOKENS, layout=layout)
        reports.append(trainer.forward_backward(samples, LOSS))
        tensors["slopes"] = slopes(trainer)
        trainer.optim_step(1e-2)
        trainer.save(folder)
        tensors["first"] = trainer.state()
        ruined = trainer.step(samples, LOSS, lr=10.0)
        reports.append(trainer.step(samples, LOSS, lr=1e-2))
        tensors["second"] = trainer.state()
        trainer.take(tensors["first"])
        trainer.load(folder)
        reports.append(trainer.step(samples, LOSS, lr=1e-2))
        tensors["again"] = trainer.state()
    if layout.rank == 0:
        for name, each in tensors.items():
            save_file(each, folder / f"{name}.safetensors")
    (folder / f"rank{layout.rank}.json").write_text(json.dumps({"held": held, "reports": reports, "ruined": ruined}))


def close(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert_close(one[name], other[name], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_processes_compute_what_one_does(samples: list[Sample], tmp_path: Path) -> None:
    """Gradients, reports and weights are those of one process, each holds half, and a saved state fits either; a step
    that ruins the model is undone in both."""
    rows = [[s.input_ids, s.loss_mask, s.behaviour_logprobs, s.advantages] for s in samples]
    (tmp_path / "samples.json").write_text(json.dumps(rows))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    # Not `--standalone`: that asks for the host's name, which may take minutes where there is no name server.
    program = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    done = subprocess.run(
        [*program, "--master-port", port, __file__, str(tmp_path)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ranks = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(2)]
    found = {name: load_file(tmp_path / f"{name}.safetensors") for name in ("slopes", "first", "second", "again")}

    assert len(micro_batches(read_samples(tmp_path), max_tokens=BATCH_TOKENS)) % 2 == 1  # one process has one fewer
    alone = Trainer(Decoder(SHAPE, seed=2), batch_tokens=BATCH_TOKENS)
    report = alone.forward_backward(samples, LOSS)
    close(found["slopes"], slopes(alone))
    alone.optim_step(1e-2)
    close(found["first"], alone.state())
    alone.take(found["first"])
    alone.load(tmp_path)  # what two processes saved, one goes on from
    after = alone.step(samples, LOSS, lr=1e-2)
    close(found["second"], alone.state())
    assert all(torch.equal(found["again"][name], found["second"][name]) for name in found["second"])

    whole = sum(parameter.numel() for parameter in alone.model.parameters())
    assert sum(rank["held"] for rank in ranks) == whole
    assert max(rank["held"] for rank in ranks) < 0.6 * whole
    assert [rank["ruined"] for rank in ranks] == [{}, {}]
    assert ranks[0]["reports"] == ranks[1]["reports"]
    assert ranks[0]["reports"][0] == pytest.approx(report, rel=1e-4)
    assert ranks[0]["reports"][1] == pytest.approx(after, rel=1e-4)
    assert ranks[0]["reports"][2] == ranks[0]["reports"][1]


def test_every_micro_batch_has_one_process(samples: list[Sample]) -> None:
    """Processes make equally many passes, and those that count are each micro-batch once."""
    batches = micro_batches(samples, max_tokens=1)
    taken = [list(shares(batches, Sharded(rank, 3))) for rank in range(3)]
    assert len({len(passes) for passes in taken}) == 1
    assert all(weight in (0.0, 1.0) for passes in taken for _, weight in passes)
    counted = [batch.places for passes in taken for batch, weight in passes if weight]
    assert sorted(counted) == sorted(batch.places for batch in batches)


def test_without_processes() -> None:
    """A program that torchrun did not start is told how to be started."""
    with pytest.raises(TrainerError, match="group of processes"), process_group():
        pass


if __name__ == "__main__":
    train_together(Path(sys.argv[1]))
    os._exit(0)  # see `process_group`
