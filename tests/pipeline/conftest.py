"""Training runs of the smallest size that learns, started as a person starts them."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from practicum.policies.contract import Message
from practicum.policies.local.chat import ChatRenderer
from practicum.policies.local.folder import save_folder
from practicum.policies.local.model import Decoder
from practicum.policies.local.tiny import tiny_shape, tiny_tokenizer
from practicum.policies.speech import FENCE
from practicum.records.task import Task
from practicum.tasks.functions.catalogue import CATALOGUE
from practicum.training.demonstrations import Demonstration, spoken_sample
from practicum.training.losses import cross_entropy
from practicum.training.trainer import Trainer

# Few tasks, learnt almost by heart, so that some attempts of a group pass and others do not.
SMALL = """
name = "small"
seed = 3
[tasks]
family = "quickstart"
train = 4
validation = 2
test = 2
[policy]
width = 96
heads = 4
[rollout]
group_size = 4
tasks_per_update = 4
max_staleness = {staleness}
[sft]
demonstrations = 16
correct_rate = 0.9
steps = 70
batch_size = 8
rename_rate = 0.0
threads = 1
[rl]
updates = 3
minibatches = 2
[evaluation]
every = 2
"""


class Lab:
    """A place for runs whose boxes can be told from any others."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cache = root / "cache"
        self.config = root / "small.toml"
        self.configure()
        self.environment = os.environ | {"PRACTICUM_CACHE": str(self.cache)}

    def configure(self, *changes: tuple[str, str], staleness: int = 1) -> None:
        """Write the configuration, each `(old, new)` text replaced in it."""
        text = SMALL.format(staleness=staleness)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        self.config.write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "practicum", "train", *arguments, "--json"]
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def train(self, *arguments: str) -> dict[str, Any]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err.decode()
        summary: dict[str, Any] = json.loads(out)
        return summary

    def fail(self, *arguments: str) -> tuple[int, dict[str, Any], str]:
        """Exit code, the error's document and what was said of a run that does not end well."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=240)
        assert process.returncode != 0
        document: dict[str, Any] = json.loads(out)["error"]
        return process.returncode, document, err.decode()

    def run_folder(self) -> Path:
        """The one run folder there is."""
        (folder,) = (self.root / "runs").iterdir()
        return folder

    def begun(self) -> Path:
        """The one run folder, once a run has made it."""
        assert self.eventually(lambda: any(self.root.glob("runs/*/config.toml")), 60)
        return self.run_folder()

    @staticmethod
    def eventually(condition: Callable[[], bool], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def left(self) -> list[str]:
        """Processes and ownership records that still exist of runs here."""
        mark = str(self.root).encode()
        found = [str(path) for path in self.cache.glob("state/owners/*")]
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    line = (entry / "cmdline").read_bytes()
                except (FileNotFoundError, ProcessLookupError):
                    continue
                found += [f"process {entry.name}: {line!r}"] * (mark in line)
        return found


@pytest.fixture
def lab() -> Iterator[Lab]:
    # Not pytest's tmp_path: that is closed to other users, and the sandbox's user must get at the layers.
    root = Path(tempfile.mkdtemp(prefix="practicum-test-"))
    root.chmod(0o755)
    yield Lab(root)
    shutil.rmtree(root)


PRETRAINED_CONTEXT = 384
Pretrain = Callable[..., Path]


def _answers(task: Task) -> tuple[str, str]:
    """A right and a wrong answer to a task of the family `functions`."""
    name = task.id.split("-", 1)[1].replace("-", "_")
    (function,) = [each for each in CATALOGUE if each.name == name]
    right, wrong = (
        f"def {name}({function.parameters}):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
        for body in (function.right, function.wrong)
    )
    return f"```python\n{right}```", f"```python\n{wrong}```"


def make_pretrained(tasks: Sequence[Task], folder: Path, *, steps: int = 80) -> Path:
    """A Hugging Face folder of a model that answers `tasks` rightly about half of the time."""
    tokenizer = tiny_tokenizer()
    renderer = ChatRenderer(tokenizer, FENCE)
    model = Decoder(replace(tiny_shape(), width=48, inner=96, context=PRETRAINED_CONTEXT), seed=1)
    known = [
        spoken_sample(
            Demonstration(
                (Message("task", task.instruction), Message("assistant", answer), Message("observation", ""))
            ),
            renderer,
            prompt_weight=0.0,
        )
        for task in tasks
        for answer in _answers(task)
    ]
    trainer, rng = Trainer(model, batch_tokens=4096), random.Random(0)
    for _ in range(steps):
        trainer.forward_backward(rng.sample(known, min(8, len(known))), cross_entropy)
        trainer.optim_step(4e-3)
    folder.mkdir(parents=True)
    save_folder(model, tokenizer, folder, model.state_dict())
    return folder


@pytest.fixture
def pretrain() -> Pretrain:
    """`make_pretrained`: a folder of a tiny model that knows a right and a wrong answer to each of a few tasks."""
    return make_pretrained
