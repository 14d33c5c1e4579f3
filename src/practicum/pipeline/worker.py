"""The rollout worker: a process of its own that makes attempts and has them judged, so that both overlap with updates.

Owns: the process, and the parts it opens for one run: provider, judge, journal.
Invariant: when the trainer's process goes away, the worker closes its boxes and ends.
Must not know: training.
"""

from __future__ import annotations

import asyncio
import signal
import traceback
from multiprocessing.connection import Connection

from practicum.errors import PracticumError, TrainerError
from practicum.pipeline.floor import Floor
from practicum.pipeline.orders import Closed, Failed, Judge, Order, Ready, Settled, Stop, WorkerSetup
from practicum.pipeline.signals import open_signals
from practicum.policies.local.model import use_threads
from practicum.sandboxes.parentage import end_with_parent
from practicum.sandboxes.provider import open_provider
from practicum.sandboxes.snapshots import DirectorySnapshots
from practicum.trajectories.journal import Journal
from practicum.verification.opening import open_verifier

_Message = Order | Judge | Settled | Stop


class _Over(Exception):
    """Leaves the collector with all that is under way. `told`: the trainer asked for it, and hears a last word."""

    def __init__(self, *, told: bool) -> None:
        super().__init__(told)
        self.told = told


def serve(connection: Connection, setup: WorkerSetup) -> None:
    """Entry point of the process: carry out orders from `connection` until `Stop` or until it closes."""
    # Ctrl-C reaches the whole process group; stopping is the trainer's decision, and comes as an order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    use_threads(setup.rollout.threads)
    try:
        asyncio.run(_serve(connection, setup))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the trainer is gone, and the boxes are closed: nobody is left to tell
    except PracticumError as error:
        connection.send(Failed("", error))
    except Exception:  # noqa: BLE001  a bug: its text must reach the trainer, which raises it
        connection.send(Failed("", TrainerError(f"the rollout worker broke:\n{traceback.format_exc()}")))


async def _serve(connection: Connection, setup: WorkerSetup) -> None:
    inbox: asyncio.Queue[_Message | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    reader = loop.run_in_executor(None, _read, connection, loop, inbox)
    snapshots = DirectorySnapshots(setup.snapshots)
    async with (
        open_provider(run_id=setup.run_id, limits_by=setup.sandbox.limits_by, snapshots=snapshots) as provider,
        open_verifier(provider, max_concurrent=setup.sandbox.verify_concurrent, seed=setup.seed) as executing,
        open_signals(provider, executing, setup.judge) as shaping,
    ):
        with Journal.open(setup.journal) as journal:
            floor = Floor(setup, provider, shaping, journal, connection.send)
            connection.send(
                Ready(provider.layer_info("python") | {"verifier": shaping.version, "provider": provider.name})
            )
            try:
                async with floor.collector, asyncio.TaskGroup() as orders:
                    orders.create_task(floor.adapt())
                    while True:
                        message = await inbox.get()
                        if message is None or isinstance(message, Stop):
                            raise _Over(told=message is not None)
                        if isinstance(message, Settled):
                            await floor.settle(message)
                        else:
                            orders.create_task(floor.carry_out(message))
            except* _Over as over:
                told = any(each.told for each in over.exceptions if isinstance(each, _Over))
            except* PracticumError as errors:
                raise _first(errors) from None
    if not told:
        raise EOFError
    connection.send(Closed(provider.created, provider.live))
    connection.close()
    await reader


def _first(errors: BaseExceptionGroup[PracticumError]) -> PracticumError:
    first = errors.exceptions[0]
    return first if isinstance(first, PracticumError) else _first(first)


def _read(connection: Connection, loop: asyncio.AbstractEventLoop, inbox: asyncio.Queue[_Message | None]) -> None:
    """Runs in a thread: pass messages on until `Stop` or the end of the connection (None)."""
    message: _Message | None = None
    while not isinstance(message, Stop):
        try:
            message = connection.recv()
        except (EOFError, OSError):
            message = None
        loop.call_soon_threadsafe(inbox.put_nowait, message)
        if message is None:
            return
