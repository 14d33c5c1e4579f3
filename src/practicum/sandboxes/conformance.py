"""The sandbox contract as named checks that any provider can be held against.

Owns: `check_provider`, `CheckResult`, what checks are written with, the checks of simple commands.
Invariant: a check asks only what `contract.py` promises; one that needs more than a provider claims to have is
reported as skipped, with the capability that is missing.
Must not know: any provider.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal

from practicum.errors import PracticumError
from practicum.records.task import Limits
from practicum.records.tree import File
from practicum.sandboxes.contract import BoxSpec, Capability, SandboxProvider

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found. `detail` says why it failed or was skipped; `seconds` are wall clock."""

    name: str
    status: Literal["passed", "failed", "skipped"]
    detail: str = ""
    seconds: float = 0.0


class Broken(Exception):
    """The provider does not do what the contract says."""


Check = Callable[[SandboxProvider], Awaitable[None]]
_CHECKS: dict[str, tuple[frozenset[Capability], Check]] = {}


def check(name: str, *needs: Capability) -> Callable[[Check], Check]:
    """Register a check that needs the capabilities `needs`."""

    def register(function: Check) -> Check:
        _CHECKS[name] = (frozenset(needs), function)
        return function

    return register


def expect(condition: object, what: str) -> None:
    if not condition:
        raise Broken(what)


async def refuses(call: Awaitable[object], kind: type[PracticumError], what: str) -> None:
    """Expect `call` to raise `kind`."""
    try:
        await call
    except kind:
        return
    raise Broken(f"{what}: {kind.__name__} was expected")


def spec(**fields: object) -> BoxSpec:
    """A small box of its own name."""
    return BoxSpec(create_id=f"check-{next(_numbers)}", **fields)  # type: ignore[arg-type]


async def check_provider(
    make_provider: Callable[[], AbstractAsyncContextManager[SandboxProvider]],
    *,
    check_timeout_s: float = 60.0,
) -> list[CheckResult]:
    """Hold a provider against every check, in one provider context, one after the other."""
    from practicum.sandboxes import (  # noqa: F401  they register the rest
        conformance_files,
        conformance_processes,
        conformance_snapshots,
    )

    results: list[CheckResult] = []
    async with make_provider() as provider:
        for name, (needs, function) in _CHECKS.items():
            missing = needs - provider.capabilities
            if missing:
                results.append(CheckResult(name, "skipped", f"needs {', '.join(sorted(missing))}"))
                continue
            start = time.monotonic()
            try:
                async with asyncio.timeout(check_timeout_s):
                    await function(provider)
                result = CheckResult(name, "passed", seconds=time.monotonic() - start)
            except Exception as error:  # noqa: BLE001  whatever a provider does wrong is the result
                detail = str(error) if isinstance(error, Broken) else repr(error)
                result = CheckResult(name, "failed", detail, time.monotonic() - start)
            results.append(result)
    return results


# --- commands ------------------------------------------------------------------------------------------------


@check("exit code zero")
async def _true(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        result = await box.run(["true"], timeout_s=10)
        expect(result.exit_code == 0 and not result.timed_out, f"true gave {result}")
        expect(result.stdout == b"" == result.stderr and not result.truncated, f"true said {result}")


@check("exit code of a failing command is a result")
async def _false(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        expect((await box.run(["false"], timeout_s=10)).exit_code == 1, "false did not give 1")


@check("unknown program gives 127")
async def _unknown(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        result = await box.run(["no-such-program"], timeout_s=10)
        expect(result.exit_code == 127 and result.stderr, f"got {result}")


@check("binary standard input and output")
async def _binary(provider: SandboxProvider) -> None:
    data = bytes(range(256)) * 100
    async with provider.create(spec()) as box:
        expect((await box.run(["cat"], timeout_s=10, stdin=data)).stdout == data, "cat changed the bytes")


@check("standard input is empty by default")
async def _no_input(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        result = await box.run(["cat"], timeout_s=10)
        expect(result.exit_code == 0 and result.stdout == b"", f"cat gave {result}")


@check("commands start in the workdir, or where told")
async def _cwd(provider: SandboxProvider) -> None:
    files = {"inner/file": File(b"")}
    async with provider.create(spec(workdir="/work", files=files)) as box:
        expect((await box.run(["pwd"], timeout_s=10)).stdout == b"/work\n", "not in the workdir")
        expect((await box.run(["pwd"], timeout_s=10, cwd="/work/inner")).stdout == b"/work/inner\n", "cwd was ignored")
        expect((await box.run(["pwd"], timeout_s=10, cwd="inner")).stdout == b"/work/inner\n", "relative to workdir")


@check("the environment is the box's own")
async def _env(provider: SandboxProvider) -> None:
    allowed = {"PATH", "HOME", "LANG", "PYTHONDONTWRITEBYTECODE", "LD_LIBRARY_PATH", "ONE", "TWO"}
    allowed |= {"OMP_NUM_THREADS", "PYTHON_CPU_COUNT"}  # how many processors there are to use
    async with provider.create(spec(env={"ONE": "1", "TWO": "box"})) as box:
        lines = (await box.run(["env"], timeout_s=10, env={"TWO": "call=2"})).stdout.decode().splitlines()
        found = dict(line.split("=", 1) for line in lines)
        expect(found.get("ONE") == "1" and found.get("TWO") == "call=2", f"got {found}")
        expect(found.keys() <= allowed, f"strangers in the environment: {found.keys() - allowed}")


@check("a command past its deadline gives 124")
async def _deadline(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        start = time.monotonic()
        result = await box.run(["sleep", "30"], timeout_s=0.3)
        expect(result.timed_out and result.exit_code == 124, f"got {result}")
        expect(time.monotonic() - start < 5, "it took far longer than its deadline")
        expect((await box.run(["true"], timeout_s=10)).exit_code == 0, "the box is of no more use")


@check("output keeps head and tail within the cap")
async def _cap(provider: SandboxProvider) -> None:
    async with provider.create(spec(limits=Limits(output_bytes=1000))) as box:
        result = await box.run(["cat"], timeout_s=10, stdin=b"head" + b"x" * 100_000 + b"tail")
        out = result.stdout
        expect(result.truncated and len(out) <= 1000, f"{len(out)} bytes, truncated={result.truncated}")
        expect(out.startswith(b"headxxx") and out.endswith(b"xxxtail"), "head or tail is missing")
        exact = await box.run(["cat"], timeout_s=10, stdin=b"y" * 1000)
        expect(exact.stdout == b"y" * 1000 and not exact.truncated, "output of just the cap was changed")


@check("a NUL byte in a command is a result")
async def _nul(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        expect((await box.run(["echo", "a\0b"], timeout_s=10)).exit_code == 126, "not 126")
        expect((await box.run(["true"], timeout_s=10)).exit_code == 0, "the box is of no more use")


@check("odd text reaches the command")
async def _odd_text(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        result = await box.run(["echo", "ä✓ \udcff $HOME\n'\""], timeout_s=10)
        expect(result.stdout == "ä✓ ".encode() + b"\xff $HOME\n'\"\n", f"got {result.stdout!r}")


@check("a cancelled call leaves a usable box")
async def _cancel(provider: SandboxProvider) -> None:
    async with provider.create(spec()) as box:
        call = asyncio.create_task(box.run(["sleep", "30"], timeout_s=60))
        await asyncio.sleep(0.1)
        call.cancel()
        await asyncio.wait([call], timeout=10)
        expect(call.cancelled(), "the call was not cancelled")
        expect((await box.run(["echo", "on"], timeout_s=10)).stdout == b"on\n", "the box is of no more use")
