"""A strategy's candidates, found in a process of their own.

Owns: `open_proposer`; run as a program, it is that process.
Invariant: it finds little more than is asked for, and ends with whoever asks. A thread would not do: Python 3.11 cannot
parse in two threads at once, and reading sources takes seconds during which boxes would wait.
Must not know: how candidates are tried.
"""

from __future__ import annotations

import asyncio
import pickle
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from practicum.curation.synthesis.strategy import Candidate, Ground, Strategy

_SIZE = 8  # bytes of the length of what follows
Proposal = tuple[Candidate | None, float]


@asynccontextmanager
async def open_proposer(
    strategy: Strategy, ground: Ground, seed: int, tried: frozenset[str]
) -> AsyncIterator[Callable[[], Awaitable[Proposal]]]:
    """Gives a call for the next candidate whose key is not in `tried`, and the processor seconds that it took to find.

    The candidate is None when there are no more. The call raises `RuntimeError` where the strategy itself failed.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "practicum.curation.synthesis.proposing"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for whoever asks
    )
    assert process.stdin is not None
    reader = process.stdout
    assert reader is not None

    async def ask() -> Proposal:
        try:
            size = int.from_bytes(await reader.readexactly(_SIZE), "big")
            answer: Proposal = pickle.loads(await reader.readexactly(size))
        except asyncio.IncompleteReadError:
            raise RuntimeError(f"strategy {strategy.name!r} ended with exit code {await process.wait()}") from None
        return answer

    try:
        process.stdin.write(pickle.dumps((strategy, ground, seed, tried)))
        await process.stdin.drain()
        process.stdin.close()
        yield ask
    finally:
        if process.returncode is None:
            process.kill()
        await reader.read()  # a pipe that is full, and not read, would never be seen to end
        await process.wait()


def main() -> None:
    """Read what to find on stdin and write candidates to stdout, as fast as they are read."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # nobody asks any more
    strategy, ground, seed, tried = pickle.load(sys.stdin.buffer)
    rng = random.Random(f"synthesis-{strategy.name}-{strategy.version}-{seed}")
    for candidate in strategy.candidates(ground, rng):
        if candidate.key not in tried:
            _tell((candidate, time.process_time()))
    _tell((None, time.process_time()))


def _tell(proposal: Proposal) -> None:
    data = pickle.dumps(proposal)
    sys.stdout.buffer.write(len(data).to_bytes(_SIZE, "big") + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
