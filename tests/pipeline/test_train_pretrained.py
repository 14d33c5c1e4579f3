"""Training a pretrained model end to end: the real command, real boxes, a stand-in of two blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file

from practicum.errors import ConfigError
from practicum.pipeline.exporting import export_run
from practicum.pipeline.run import last_state
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.trained import chosen_version, load_trained
from practicum.policies.local.chat import ChatRenderer
from practicum.policies.local.folder import load_folder
from practicum.policies.local.saved import Saved
from practicum.tasks.functions import FunctionsSpec, generate_functions
from practicum.weights.store import VersionStore

if TYPE_CHECKING:
    from pipeline.conftest import Lab, Pretrain

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CONTEXT = 384
CONFIG = """
name = "adapted"
seed = 5
[tasks]
family = "functions"
train = 4
validation = 1
test = 1
[policy]
model = "{model}"
speech = "fence"
adapter_rank = 4
adapter_alpha = 8.0
context = {context}
[rollout]
max_turns = 1
max_tokens_per_turn = 64
max_context = {context}
group_size = 4
tasks_per_update = 4
[sft]
steps = 0
[rl]
updates = 2
minibatches = 2
lr = 5e-3
reference_kl = 0.01
importance = "token-truncate"
advantage = "leave-one-out"
[evaluation]
every = 2
[verification]
canary_every = 0
"""


def _configured(lab: Lab, pretrain: Pretrain, *, steps: int = 80) -> None:
    tasks = generate_functions(FunctionsSpec(train=4, validation=1, test=1))
    torch.set_num_threads(1)
    folder = pretrain([task for task in tasks if task.split == "train"], lab.root / "model", steps=steps)
    lab.config.write_text(CONFIG.format(model=folder, context=CONTEXT))


def _weights(folder: Path, version: int) -> bytes:
    return (VersionStore(folder / "checkpoints").path(version) / "model.safetensors").read_bytes()


def test_a_pretrained_model_is_trained_and_a_killed_run_continues(lab: Lab, pretrain: Pretrain) -> None:
    """Only adapters are stored, they learn, the run's model can be loaded; killed and resumed it ends bit-equal."""
    _configured(lab, pretrain)
    summary = lab.train(str(lab.config))
    assert summary["updates"] == 2
    assert summary["boxes"]["leaked"] == 0
    assert lab.left() == []
    unbroken = lab.root / "unbroken"
    (lab.root / "runs").rename(unbroken)
    (whole,) = unbroken.iterdir()
    base = (lab.root / "model" / "model.safetensors").stat().st_size
    assert 0 < len(_weights(whole, 2)) < base
    assert _weights(whole, 1) != _weights(whole, 2) != _weights(whole, 0)
    with RunFolder.open(whole) as run:
        updates = [row for row in run.metrics() if row["kind"] == "update"]
        assert all("reference_kl" in row and "bounded" in row for row in updates)
        assert {turn.action.tool for attempt in run.store.read("rl") for turn in attempt.turns} >= {"write"}
        assert any(attempt.passed for attempt in run.store.read("rl"))
    _, renderer = load_trained(whole)
    assert isinstance(renderer, ChatRenderer)
    _check_exports(lab, whole)

    broken = lab.start(str(lab.config))
    folder = lab.begun()
    assert lab.eventually(lambda: (folder / "checkpoints" / "00001" / "state.json").exists(), 200)
    broken.kill()
    broken.communicate()
    assert lab.eventually(lambda: lab.left() == [], 20), lab.left()
    reached = last_state(VersionStore(folder / "checkpoints"))
    assert reached is not None
    if reached.version < 2:
        lab.train("--resume", str(folder))
    assert _weights(folder, 2) == _weights(whole, 2)


def _check_exports(lab: Lab, run: Path) -> None:
    """What is exported of `run` is the chosen version, merged or apart, with a card that tells its story."""
    version, _ = chosen_version(run)
    versions = VersionStore(run / "checkpoints")
    model, _ = Saved(versions.read, versions.fetch).build(version)
    export_run(run, lab.root / "merged")
    merged, _ = load_folder(lab.root / "merged", context=CONTEXT)
    assert all(torch.equal(value, merged.state_dict()[name]) for name, value in model.state_dict().items())
    card = (lab.root / "merged" / "README.md").read_text()
    assert "SHA-256" in card
    assert "family functions" in card
    assert "Success on held-out tasks, 2 attempts each" in card
    facts = export_run(run, lab.root / "apart", adapters=True)
    assert facts["kind"] == "adapters"
    # As peft computes it: W + alpha / r * B A, by Llama's names.
    low_rank = load_file(lab.root / "apart" / "adapter_model.safetensors")
    config = json.loads((lab.root / "apart" / "adapter_config.json").read_text())
    base, whole = (load_file(lab.root / name / "model.safetensors") for name in ("model", "merged"))
    touched = [name.removesuffix(".lora_A.weight") for name in low_rank if name.endswith("A.weight")]
    assert len(touched) == 2 * 7
    for name in touched:
        weight = f"{name.removeprefix('base_model.model.')}.weight"
        product = low_rank[f"{name}.lora_B.weight"] @ low_rank[f"{name}.lora_A.weight"]
        expected = base[weight] + config["lora_alpha"] / config["r"] * product
        torch.testing.assert_close(whole[weight], expected, atol=1e-5, rtol=1e-5)
    with pytest.raises(ConfigError, match="is there already"):
        export_run(run, lab.root / "apart")


def test_a_run_is_not_continued_upon_another_model(lab: Lab, pretrain: Pretrain) -> None:
    """Where the folder of the base holds other weights than at the start, a resume refuses."""
    _configured(lab, pretrain, steps=0)
    broken = lab.start(str(lab.config))
    folder = lab.begun()
    assert lab.eventually(lambda: (folder / "checkpoints" / "00000" / "state.json").exists(), 200)
    broken.kill()
    broken.communicate()
    assert lab.eventually(lambda: lab.left() == [], 20)
    weights = lab.root / "model" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    code, error, _ = lab.fail("--resume", str(folder))
    assert code == 2
    assert "is not the model that this run was started upon" in error["message"]


def test_a_model_that_cannot_be_had_is_refused_before_anything_is_made(lab: Lab) -> None:
    """A folder that is not there ends a run and a dry run at once, with nothing on disk."""
    lab.config.write_text(CONFIG.format(model=lab.root / "nowhere", context=CONTEXT))
    for extra in ([], ["--dry-run"]):
        code, error, _ = lab.fail(str(lab.config), *extra)
        assert code == 2
        assert str(lab.root / "nowhere") in error["message"]
    assert not (lab.root / "runs").exists()
