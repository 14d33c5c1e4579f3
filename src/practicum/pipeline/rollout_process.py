"""The trainer's handle on the rollout worker.

Owns: starting the process, sending orders, waiting for answers with a deadline, ending it.
Invariant: an answer that does not come is an error with a reason; on leaving, the worker is gone.
Must not know: what an order is for.
"""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

from practicum.errors import PracticumError, TrainerError
from practicum.pipeline.orders import (
    Closed,
    Done,
    Failed,
    Judge,
    Judged,
    Order,
    Progress,
    Ready,
    Stop,
    WorkerSetup,
)

OnProgress = Callable[[Progress], None]
_Word = Ready | Progress | Done | Judged | Closed | Failed
START_S = 60.0
STOP_S = 30.0


class RolloutProcess:
    """A context manager around one worker. `order_s` bounds the silence between two words of the worker."""

    def __init__(self, setup: WorkerSetup, *, order_s: float = 900.0, on_progress: OnProgress | None = None) -> None:
        self._setup = setup
        self._order_s = order_s
        self._on_progress = on_progress
        self._answers: dict[str, Done | Judged] = {}
        self._words: queue.SimpleQueue[_Word | None] = queue.SimpleQueue()
        self.host: dict[str, str] = {}
        self.closed: Closed | None = None

    def __enter__(self) -> Self:
        from practicum.pipeline.worker import serve

        # Spawned, not forked: torch's threads and the run folder's lock must not be inherited.
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self._setup), name="rollouts")
        self._process.start()
        theirs.close()
        # Read all the time: a worker whose words are not taken cannot go on to its next order.
        self._reader = threading.Thread(target=_take, args=(self._connection, self._words), daemon=True)
        self._reader.start()
        try:
            ready = self._hear(START_S)
        except BaseException:
            self._end()
            raise
        if isinstance(ready, Ready):
            self.host = dict(ready.host)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def send(self, order: Order | Judge) -> None:
        """Queue an order; orders are carried out in turn."""
        try:
            self._connection.send(order)
        except OSError as error:
            raise self._gone() from error

    def wait(self, order: str) -> Done:
        """The answer to `order`, whenever it came. Raises what the worker raised, or `TrainerError` on silence."""
        answer = self._answer(order)
        assert isinstance(answer, Done)
        return answer

    def wait_judged(self, order: str) -> Judged:
        """The same for a `Judge`."""
        answer = self._answer(order)
        assert isinstance(answer, Judged)
        return answer

    def _answer(self, order: str) -> Done | Judged:
        while order not in self._answers:
            message = self._hear(self._order_s)
            if isinstance(message, (Done, Judged)):
                self._answers[message.order] = message
            elif isinstance(message, Progress) and self._on_progress is not None:
                self._on_progress(message)
        return self._answers.pop(order)

    def stop(self) -> Closed:
        """End the worker and return its last word. Idempotent."""
        if self.closed is None:
            try:
                self.closed = self._ask_to_stop()
            except (PracticumError, OSError) as error:
                self.closed = Closed(0, 0, (f"the rollout worker did not end in order: {error}",))
            self._end()
        return self.closed

    def _ask_to_stop(self) -> Closed:
        self._connection.send(Stop())
        deadline = time.monotonic() + STOP_S
        while True:
            message = self._hear(max(0.0, deadline - time.monotonic()))
            if isinstance(message, Closed):
                return message

    def _hear(self, timeout_s: float) -> Ready | Progress | Done | Judged | Closed:
        """The next word of the worker; raises the error it reports."""
        try:
            message = self._words.get(timeout=timeout_s)
        except queue.Empty:
            raise TrainerError(
                f"the rollout worker has said nothing for {timeout_s:.0f} s",
                fix="look at the machine's load, then continue with --resume",
            ) from None
        if message is None:
            raise self._gone()
        if isinstance(message, Failed):
            raise message.error
        return message

    def _gone(self) -> TrainerError:
        self._process.join(2.0)
        return TrainerError(
            f"the rollout worker is gone (exit status {self._process.exitcode})",
            fix="if it was killed for memory, lower sandbox.max_concurrent; then continue with --resume",
        )

    def _end(self) -> None:
        self._process.join(STOP_S)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(5.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(5.0)
        # Its end of the connection is closed with it, so the reader has come to the end.
        self._reader.join(5.0)
        self._connection.close()


def _take(connection: Connection, words: queue.SimpleQueue[_Word | None]) -> None:
    """Runs in a thread: queue what the worker says, and None once it says no more."""
    while True:
        try:
            words.put(connection.recv())
        except (EOFError, OSError):
            words.put(None)
            return
