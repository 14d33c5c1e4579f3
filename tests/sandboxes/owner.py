"""A process that owns boxes and does not end by itself; the tests of leaks kill it.

Arguments: cache folder, limits_by. Prints "ready" when its boxes are up: one idle, one in a command, one with processes
that left their session.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.provider import open_provider

MARK = "86399.5"  # an unusual number of seconds, by which the tests find sleepers


async def main(root: str, limits_by: str) -> None:
    async with (
        open_provider(limits_by=limits_by, cache=LayerCache(Path(root))) as provider,  # type: ignore[arg-type]
        provider.create(BoxSpec("idle")),
        provider.create(BoxSpec("busy")) as busy,
        provider.create(BoxSpec("daemons")) as daemons,
    ):
        # It waits for the sleepers to have left its process group, which ends with the command.
        script = (
            f"(setsid sh -c 'sleep {MARK} & touch up; sleep {MARK}' >/dev/null 2>&1 &); until [ -e up ]; do :; done"
        )
        await daemons.run(["sh", "-c", script], timeout_s=10)
        running = asyncio.create_task(busy.run(["sleep", MARK], timeout_s=10_000))
        await asyncio.sleep(0.1)
        print("ready", flush=True)  # noqa: T201
        await running


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
