"""What a box has carried out lately, by the name of the action.

Owns: `Actions`.
Invariant: an action takes effect at most once in the life of a box; results of the last few are kept, no more.
Must not know: what a command is, how it is run.

The results are kept on the host's side of the box. That is as good as inside it, since here no box outlives the process
that owns it: where the results have gone, so has what the action did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from practicum.errors import BoxPathError, SandboxError
from practicum.sandboxes.contract import CommandResult

KEPT = 4  # an agent waits for one action before it asks for the next; each result may be as large as two outputs


class Actions:
    """The actions of one box."""

    def __init__(self) -> None:
        self._known: dict[str, asyncio.Future[CommandResult]] = {}

    async def once(self, action: str | None, carry_out: Callable[[], Awaitable[CommandResult]]) -> CommandResult:
        """The result of `action`, which is carried out unless it was, or is being; without a name it always is.

        Raises what `carry_out` raises, and `SandboxError` for an action that was cut short before.
        """
        if action is None:
            return await carry_out()
        known = self._known.get(action)
        if known is not None:
            return await asyncio.shield(known)
        while len(self._known) >= KEPT:
            del self._known[next(iter(self._known))]
        known = self._known[action] = asyncio.get_running_loop().create_future()
        try:
            result = await carry_out()
        except (BoxPathError, ValueError) as error:  # it was not begun
            self._known.pop(action, None)
            known.set_exception(error)
            known.exception()  # whether somebody waits for it or not
            raise
        except BaseException:
            known.set_exception(SandboxError(f"the action {action!r} was cut short, and what it did is not known"))
            known.exception()
            raise
        known.set_result(result)
        return result

    def forget(self) -> None:
        """The box is another from now on."""
        self._known.clear()
