"""A small model, and the server that a test wants, on a real socket."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from practicum.policies.local.engine import LocalEngine
from practicum.policies.local.generator import Generator
from practicum.policies.local.model import Cache, Decoder
from practicum.policies.local.tiny import tiny_shape, tiny_tokenizer
from practicum.policies.serving.app import Service
from practicum.policies.serving.run import address_of, listen, server_of

torch.set_num_threads(1)


class Counting(Decoder):
    """A decoder that counts the ids it is fed."""

    fed = 0

    def step(self, ids: torch.Tensor, cache: Cache, counts: torch.Tensor) -> torch.Tensor:
        self.fed += int(counts.sum())
        return super().step(ids, cache, counts)


@dataclass
class Served:
    """A server that runs. `url` ends in /v1."""

    url: str
    service: Service

    @property
    def generator(self) -> Generator:
        return self.service.engine.generator


@contextmanager
def running(service: Service) -> Iterator[str]:
    """The address of `service` while it runs in a thread."""
    with listen("127.0.0.1", 0, has_key=False) as listening:
        server = server_of(service.app(), grace_s=1, backlog=256)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield address_of(listening)
        finally:
            server.should_exit = True
            thread.join()


@dataclass
class Bench:
    """Models, engines and servers for one test."""

    stack: ExitStack

    def model(self, *, seed: int = 1, context: int = 512) -> Counting:
        """The tiny model with room for a conversation, and weights that make a difference."""
        made = Counting(replace(tiny_shape(), context=context), seed=seed)
        with torch.no_grad():
            for parameter in made.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(3.0)
        made.eval()
        return made

    def engine(self, model: Decoder) -> LocalEngine:
        return LocalEngine(Generator(model), continuous=True)

    def serve(self, model: Decoder | None = None, **options: Any) -> Served:
        """Serves a model (the default one) until the test ends; options are those of `Service`."""
        service = Service(self.engine(model or self.model()), tiny_tokenizer(), "small", **options)
        return Served(self.stack.enter_context(running(service)), service)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(stack)
