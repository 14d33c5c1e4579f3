"""The rollout worker: a process of its own that makes attempts, so that they overlap with updates.

Owns: the worker's side of `orders`: provider, judge, engine and harness for one run.
Invariant: orders are carried out one after another, each under exactly the weights it names, so that what is
sampled depends on seeds alone; when the trainer's process goes away, the worker closes its boxes and ends.
Must not know: training.
"""

from __future__ import annotations

import asyncio
import ctypes
import signal
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

from practicum.errors import PracticumError, TrainerError
from practicum.pipeline.orders import Closed, Done, Failed, Judge, Judged, Order, Progress, Ready, Stop, WorkerSetup
from practicum.pipeline.signals import open_signals
from practicum.policies.demonstrator import demonstration
from practicum.policies.local.engine import LocalEngine
from practicum.policies.local.generator import Generator
from practicum.policies.local.model import use_threads
from practicum.policies.local.renderer import LocalRenderer
from practicum.policies.local.saved import Saved
from practicum.policies.local.trainee import AnyRenderer
from practicum.policies.protocol import parse_action
from practicum.policies.scripted import ScriptedPolicy
from practicum.records.trajectory import Trajectory
from practicum.rollouts.agents import Agent, noop_agent, oracle_agent
from practicum.rollouts.attempt import AttemptSpec
from practicum.rollouts.session import Budgets
from practicum.rollouts.workshop import Workshop, run_specs
from practicum.sandboxes.provider import HostProvider, open_provider
from practicum.sandboxes.snapshots import DirectorySnapshots
from practicum.verification.judging import judge_all
from practicum.verification.opening import open_verifier
from practicum.verification.reuse import ReusingVerifier
from practicum.weights.store import VersionStore

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_Inbox = asyncio.Queue[Order | Judge | Stop | None]


def serve(connection: Connection, setup: WorkerSetup) -> None:
    """Entry point of the process: carry out orders from `connection` until `Stop` or until it closes."""
    # Ctrl-C reaches the whole process group; stopping is the trainer's decision, and comes as an order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Ends this process even where it is stuck in native code when the trainer is killed.
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGTERM)
    use_threads(1)
    try:
        asyncio.run(_serve(connection, setup))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the trainer is gone, and the boxes are closed: nobody is left to tell
    except PracticumError as error:
        connection.send(Failed("", error))
    except Exception:  # noqa: BLE001  a bug: its text must reach the trainer, which raises it
        connection.send(Failed("", TrainerError(f"the rollout worker broke:\n{traceback.format_exc()}")))


async def _serve(connection: Connection, setup: WorkerSetup) -> None:
    inbox: _Inbox = asyncio.Queue()
    loop = asyncio.get_running_loop()
    reader = loop.run_in_executor(None, _read, connection, loop, inbox)
    snapshots = DirectorySnapshots(setup.snapshots)
    async with (
        open_provider(run_id=setup.run_id, limits_by=setup.sandbox.limits_by, snapshots=snapshots) as provider,
        open_verifier(provider, max_concurrent=setup.sandbox.verify_concurrent, seed=setup.seed) as executing,
        open_signals(provider, executing, setup.judge) as shaping,
    ):
        verifier = ReusingVerifier(shaping)
        workshop = Workshop(provider, verifier, setup.sandbox.max_concurrent)
        crew = _Crew(setup)
        connection.send(
            Ready(provider.layer_info("python") | {"verifier": verifier.version, "provider": provider.name})
        )
        current: asyncio.Task[None] | None = None
        waiting: list[Order | Judge] = []
        while isinstance(message := await _next(inbox, current), (Order, Judge)) or message == "ended":
            if isinstance(message, (Order, Judge)):
                waiting.append(message)
            elif current is not None:
                current.result()
                current = None
            if current is None and waiting:
                current = asyncio.create_task(_carry_out(waiting.pop(0), workshop, provider, crew, connection))
        if current is not None:
            current.cancel()
            await asyncio.gather(current, return_exceptions=True)
    if isinstance(message, Stop):
        connection.send(Closed(provider.created, provider.live))
    else:
        raise EOFError
    connection.close()
    await reader


def _read(
    connection: Connection, loop: asyncio.AbstractEventLoop, inbox: asyncio.Queue[Order | Judge | Stop | None]
) -> None:
    """Runs in a thread: pass messages on until `Stop` or the end of the connection (None)."""
    message: Order | Judge | Stop | None = None
    while not isinstance(message, Stop):
        try:
            message = connection.recv()
        except (EOFError, OSError):
            message = None
        loop.call_soon_threadsafe(inbox.put_nowait, message)
        if message is None:
            return


async def _next(inbox: _Inbox, current: asyncio.Task[None] | None) -> Order | Judge | Stop | str | None:
    """The next message, or "ended" when the order that is being carried out has."""
    getter = asyncio.create_task(inbox.get())
    await asyncio.wait({getter, current} if current else {getter}, return_when=asyncio.FIRST_COMPLETED)
    if getter.done():
        return getter.result()
    getter.cancel()
    return "ended"


async def _carry_out(
    order: Order | Judge, workshop: Workshop, provider: HostProvider, crew: _Crew, connection: Connection
) -> None:
    if isinstance(workshop.verifier, ReusingVerifier):
        workshop.verifier.forget()
    if isinstance(order, Judge):
        await _judge(order, workshop, provider, connection)
        return
    start, before, done = time.perf_counter(), provider.created, 0

    def progress(_: Trajectory) -> None:
        nonlocal done
        done += 1
        connection.send(Progress(order.id, done, len(order.specs)))

    try:
        shop = Workshop(provider, workshop.verifier, order.most or workshop.max_concurrent)
        agent = crew.agent(order)
        trajectories = await run_specs(shop, agent, order.specs, on_done=progress)
    except PracticumError as error:
        connection.send(Failed(order.id, error))
        return
    seconds = time.perf_counter() - start
    connection.send(Done(order.id, tuple(trajectories), seconds, provider.created - before))


async def _judge(order: Judge, workshop: Workshop, provider: HostProvider, connection: Connection) -> None:
    before = provider.created
    try:
        verdicts = await judge_all(workshop.verifier, order.items)
    except PracticumError as error:
        connection.send(Failed(order.id, error))
        return
    connection.send(Judged(order.id, tuple(verdicts), provider.created - before))


@dataclass
class _Crew:
    """Who can act in this run."""

    setup: WorkerSetup
    _engine: LocalEngine | None = None
    _version: int | None = None

    def __post_init__(self) -> None:
        self.renderer = self.setup.speaker.renderer()
        rollout = self.setup.rollout
        self.budgets = Budgets(rollout.max_turns, rollout.max_tokens_per_turn, rollout.max_context)
        store = VersionStore(self.setup.checkpoints)
        self.saved = Saved(store.read, store.fetch)

    def agent(self, order: Order) -> Agent:
        """The one that `order` asks for. Raises `StoreError` where its weights cannot be read."""
        if order.who == "oracle":
            return oracle_agent()
        if order.who == "noop":
            return noop_agent()
        if order.who == "demonstrator":
            scripts = _scripts(order.specs, self.setup.correct_rate, self.renderer)
            policy = ScriptedPolicy(self.renderer, partial(_script, scripts))
            return Agent(policy, self.renderer, self.budgets)
        return Agent(self._model(order.version), self.renderer, self.budgets)

    def _model(self, version: int) -> LocalEngine:
        if self._engine is None:
            model, _ = self.saved.build(version)
            self._engine = LocalEngine(Generator(model, version=version))
        elif self._version != version:
            self._engine.generator.load(self.saved.state(version), version)
        self._version = version
        return self._engine


def _scripts(specs: Sequence[AttemptSpec], correct_rate: float, renderer: AnyRenderer) -> dict[str, list[str]]:
    """What the demonstrator says, by attempt, in the model's own way of speaking."""
    found = {spec.id: demonstration(spec.task, seed=spec.seed, correct_rate=correct_rate) for spec in specs}
    if isinstance(renderer, LocalRenderer):
        return found
    return {name: [renderer.speech.say(parse_action(text)) for text in texts] for name, texts in found.items()}


def _script(scripts: dict[str, list[str]], session: str, turn: int) -> str | None:
    texts = scripts[session]
    return texts[turn] if turn < len(texts) else None
