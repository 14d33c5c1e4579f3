"""Commands in a box: requests made from them, and results.

Owns: `Commands`.
Invariant: a command gets the box's environment, its limits and a deadline; what cannot be passed to a system call
is a result, not an error.
Must not know: the wire, how the box is kept, what is on its disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from practicum.errors import BoxPathError, WarmEnded
from practicum.sandboxes.contract import BoxSpec, CommandResult
from practicum.sandboxes.messages import NUL_RESULT, encode, has_nul, run_answer, run_request

_WARM_S = 60.0
LONGEST_S = 30 * 86400.0


class Ask(Protocol):
    """See `Line.ask`."""

    async def __call__(
        self, fields: Sequence[bytes], *, timeout_s: float | None = None, max_bytes: int = 0
    ) -> list[bytes]: ...


class Commands:
    """Those of one box. `env` is the environment they start with; `oom` tells of kills for memory since the last."""

    def __init__(self, name: str, spec: BoxSpec, ask: Ask, *, limited_by_groups: bool) -> None:
        self._name = name
        self._spec = spec
        self._ask = ask
        self._limited_by_groups = limited_by_groups
        self.env: Mapping[str, str] = {}
        self.oom: Callable[[], bool] = lambda: False

    async def run(
        self, command: Sequence[str], timeout_s: float, stdin: bytes | None, env: Mapping[str, str], cwd: str | None
    ) -> CommandResult:
        if not command:
            raise ValueError("a command needs at least its program")
        if not timeout_s <= LONGEST_S:  # nor is nan
            raise ValueError(f"a command cannot be given {timeout_s} s; at most {LONGEST_S:g}")
        environment = {**self.env, **env}
        where = cwd or self._spec.workdir
        if has_nul(command, environment, where):
            return NUL_RESULT
        where = where if where.startswith("/") else f"{self._spec.workdir}/{where}"
        return await self._result(b"run", command, timeout_s, stdin, environment, where)

    async def run_warm(self, arguments: Sequence[str], timeout_s: float, stdin: bytes | None) -> CommandResult:
        return await self._result(b"copy", arguments, timeout_s, stdin, {}, self._spec.workdir)

    async def warm_up(self) -> None:
        """Start the warm process, and wait until it is ready."""
        env, command = self.env, self._spec.warm
        await self._ask(self._request(b"warm", command, _WARM_S, None, env, "/", {}), timeout_s=_WARM_S)

    async def check_warm(self) -> None:
        """`WarmEnded` where the warm process has ended, or was changed by what ran beside it."""
        try:
            await self._ask([b"tepid"])
        except BoxPathError as error:
            raise WarmEnded(f"box {self._name}: its warm process has ended") from error

    async def _result(
        self,
        operation: bytes,
        command: Sequence[str],
        timeout_s: float,
        stdin: bytes | None,
        env: Mapping[str, str],
        cwd: str,
    ) -> CommandResult:
        request = self._request(operation, command, timeout_s, stdin, env, cwd, self._rlimits(timeout_s))
        answer = await self._ask(request, timeout_s=timeout_s, max_bytes=2 * self._spec.limits.output_bytes)
        if operation == b"copy" and answer[0] == b"exec":
            raise WarmEnded(f"box {self._name}: its warm process has ended")
        return run_answer(answer, command, cwd, oom_killed=self.oom())

    def _request(
        self,
        operation: bytes,
        command: Sequence[str],
        timeout_s: float,
        stdin: bytes | None,
        env: Mapping[str, str],
        cwd: str,
        rlimits: Mapping[str, int],
    ) -> list[bytes]:
        return run_request(
            command,
            cwd=encode(cwd),
            env=env,
            stdin=stdin,
            timeout_s=timeout_s,
            output_bytes=self._spec.limits.output_bytes,
            rlimits=rlimits,
            operation=operation,
        )

    def _rlimits(self, timeout_s: float) -> dict[str, int]:
        """Limits of each process. They are the only ones where there are no control groups."""
        if not self._spec.profile.limits:
            return {}
        limits = self._spec.limits
        seconds = math.ceil(timeout_s * max(1.0, limits.cpus)) + 2
        # CORE is 1 and not 0: a host that pipes core dumps to a program of its own skips only those of that limit.
        found = {"FSIZE": limits.disk_bytes, "CORE": 1, "NOFILE": 1024, "CPU": seconds}
        if not self._limited_by_groups:
            found |= {"AS": limits.memory_bytes, "NPROC": limits.pids + 1}
        return found
