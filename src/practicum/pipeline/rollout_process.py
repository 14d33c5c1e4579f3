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
from collections.abc import Callable, Collection
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
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
    Settled,
    Stop,
    Told,
    WorkerSetup,
)
from practicum.rollouts.attempt import Patience

OnProgress = Callable[[Progress], None]
OnTold = Callable[[Told], None]
_Heard = Ready | Progress | Told | Done | Judged | Closed
_Word = _Heard | Failed
START_S = 600.0  # importing torch on a host that does much else
STOP_S = 30.0
_JUDGING_S = Patience().verify_tries * Patience().verify_s + 300.0


class RolloutProcess:
    """A context manager around one worker. Between two words of the worker an attempt may pass, and its judgement."""

    def __init__(
        self,
        setup: WorkerSetup,
        *,
        on_progress: OnProgress | None = None,
        on_told: OnTold | None = None,
    ) -> None:
        self._setup = setup
        self._on_told = on_told
        self._silence_s = setup.schedule.attempt_s + _JUDGING_S
        self._on_progress = on_progress
        self._answers: dict[str, Done | Judged] = {}
        self._words: queue.SimpleQueue[_Word | None] = queue.SimpleQueue()
        self._orders: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
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
        self._sender = threading.Thread(target=_give, args=(self._connection, self._orders), daemon=True)
        self._sender.start()
        try:
            ready = self._hear(START_S, what="has not started after")
        except BaseException:
            self._end()
            raise
        if isinstance(ready, Ready):
            self.host = dict(ready.host)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def send(self, order: Order | Judge | Settled | Stop) -> None:
        """Queue an order; orders are begun in turn. Never waits: a worker that takes none is found out by `wait`."""
        self._orders.put(bytes(ForkingPickler.dumps(order)))

    def wait(self, order: str) -> Done:
        """The answer to `order`, whenever it came. Raises what the worker raised, or `TrainerError` on silence."""
        answer = self._answer(order)
        assert isinstance(answer, Done)
        return answer

    def wait_any(self, orders: Collection[str]) -> Done:
        """The answer to one of `orders`: of those that came, the first. Raises as `wait` does."""
        while (first := next((name for name in self._answers if name in orders), None)) is None:
            self._hear_answer()
        return self.wait(first)

    def wait_judged(self, order: str) -> Judged:
        """The same for a `Judge`."""
        answer = self._answer(order)
        assert isinstance(answer, Judged)
        return answer

    def _answer(self, order: str) -> Done | Judged:
        while order not in self._answers:
            self._hear_answer()
        return self._answers.pop(order)

    def _hear_answer(self) -> None:
        message = self._hear(self._silence_s)
        if isinstance(message, (Done, Judged)):
            self._answers[message.order] = message
        elif isinstance(message, Progress) and self._on_progress is not None:
            self._on_progress(message)
        elif isinstance(message, Told) and self._on_told is not None:
            self._on_told(message)

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
        self.send(Stop())
        deadline = time.monotonic() + STOP_S
        while True:
            message = self._hear(max(0.0, deadline - time.monotonic()))
            if isinstance(message, Closed):
                return message

    def _hear(self, timeout_s: float, what: str = "has said nothing for") -> _Heard:
        """The next word of the worker; raises the error it reports."""
        try:
            message = self._words.get(timeout=timeout_s)
        except queue.Empty:
            raise TrainerError(
                f"the rollout worker {what} {timeout_s:.0f} s",
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
        self._orders.put(None)
        self._sender.join(5.0)
        self._connection.close()


def _give(connection: Connection, orders: queue.SimpleQueue[bytes | None]) -> None:
    """Runs in a thread: send what is queued, until None or until nobody takes it."""
    while (order := orders.get()) is not None:
        try:
            connection.send_bytes(order)
        except OSError:
            return  # the reader sees the same end, and tells


def _take(connection: Connection, words: queue.SimpleQueue[_Word | None]) -> None:
    """Runs in a thread: queue what the worker says, and None once it says no more."""
    while True:
        try:
            words.put(connection.recv())
        except (EOFError, OSError):
            words.put(None)
            return
