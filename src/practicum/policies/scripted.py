"""Policies that say what a script tells them: oracle, no-op, a file's commands, demonstrators.

Owns: `ScriptedPolicy` and its factories.
Invariant: the same script, session and turn give the same ids, whatever happens in between.
Must not know: boxes, tasks, models. A scripted policy is shipped and public; tests use it in place of a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Protocol

from practicum.errors import PolicyRefused
from practicum.policies.contract import Renderer, Sampled, SamplingParams
from practicum.policies.protocol import format_action
from practicum.records.trajectory import Action

# No trainer ever published it, so staleness can never take it for a policy that may be followed.
SCRIPTED_VERSION = -1
ORACLE_COMMAND = "bash /solution/solve.sh"

Script = Callable[[str, int], str | None]


class SpeakingRenderer(Renderer, Protocol):
    """A renderer that can also turn an assistant's text into the ids a model would have sampled."""

    def encode(self, text: str) -> list[int]: ...


class ScriptedPolicy:
    """`script(session, turn)` gives the text of each turn, counted from 0; None means that it submits.

    Log-probabilities are 0.0 (it was certain) and the version is −1. `trainable` is False: its samples may be
    imitated, but a ratio against them means nothing. A turn is the one that the request names (so an episode can be
    resumed in the middle); those that name none are counted per session, anew each time it is opened.
    """

    trainable: ClassVar[bool] = False

    def __init__(self, renderer: SpeakingRenderer, script: Script) -> None:
        self._renderer = renderer
        self._script = script
        self._turns: dict[str, int] = {}

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, *, session: str) -> Sampled:
        """Raises `PolicyRefused` where the text does not fit in `params.max_tokens`: half a script is no script."""
        turn = self._turns.get(session, 0) if params.turn is None else params.turn
        text = self._script(session, turn)
        if text is None:
            text = format_action(Action("submit"))
        ids = tuple(self._renderer.encode(text))
        if not ids or ids[-1] not in self._renderer.stop_ids:
            ids = (*ids, *self._renderer.stop_ids[:1])
        if len(ids) > params.max_tokens:
            raise PolicyRefused(
                f"turn {turn} of the script takes {len(ids)} tokens, and a turn may have {params.max_tokens}",
                fix="raise the budget of tokens per turn, or shorten the script",
            )
        self._turns[session] = turn + 1
        return Sampled(ids, (0.0,) * len(ids), "stop", SCRIPTED_VERSION)

    @contextmanager
    def session(self, name: str) -> Iterator[None]:
        """While open, turns of `name` are counted."""
        self._turns.pop(name, None)
        try:
            yield
        finally:
            self._turns.pop(name, None)


def noop_policy(renderer: SpeakingRenderer) -> ScriptedPolicy:
    """Submits at once: what the untouched task is worth."""
    return ScriptedPolicy(renderer, lambda _session, _turn: None)


def oracle_policy(renderer: SpeakingRenderer) -> ScriptedPolicy:
    """Runs the gold in `/solution`, then submits. The attempt must mount the solution."""
    return script_policy(renderer, ORACLE_COMMAND)


def script_policy(renderer: SpeakingRenderer, commands: str) -> ScriptedPolicy:
    """Runs `commands`, a whole shell script, as one `bash` action, then submits.

    Raises `ValueError` where the protocol cannot carry the script.
    """
    action = format_action(Action("bash", {"command": commands}))
    return ScriptedPolicy(renderer, lambda _session, turn: action if turn == 0 else None)
