"""What is said over the wire to a box's agent, and what may come back.

Owns: the fields of requests and the reading of answers. Pure.
Invariant: an answer is either exactly what was asked for or a `SandboxError`: the box may be hostile.
Must not know: pipes, processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from practicum.errors import SandboxError, SubmissionError
from practicum.records.tree import File, Tree, check_path
from practicum.sandboxes.contract import CommandResult, Listing


def encode(text: str) -> bytes:
    """Text for the box. What a policy says is data: lone surrogates are carried, not refused."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def has_nul(command: Sequence[str], env: Mapping[str, str], cwd: str) -> bool:
    """Whether a command holds what no system call can carry."""
    return any("\0" in text for text in (*command, *env, *env.values(), cwd))


NUL_RESULT = CommandResult(126, b"", b"practicum: cannot run a command that holds a NUL byte\n")


def run_request(
    command: Sequence[str],
    *,
    cwd: bytes,
    env: Mapping[str, str],
    stdin: bytes | None,
    timeout_s: float,
    output_bytes: int,
    rlimits: Mapping[str, int],
) -> list[bytes]:
    """Run `command`; `rlimits` are by the names of `resource.RLIMIT_*` without the prefix."""
    return [
        b"run",
        cwd,
        b"%f" % timeout_s,
        b"%d" % output_bytes,
        " ".join(f"{name}={value}" for name, value in rlimits.items()).encode(),
        b"1" if stdin is not None else b"0",
        stdin or b"",
        b"%d" % len(command),
        *(encode(part) for part in command),
        *(encode(f"{name}={value}") for name, value in env.items()),
    ]


def run_answer(fields: Sequence[bytes], *, oom_killed: bool) -> CommandResult:
    try:
        code, timed_out, truncated, wall_us, cpu_us, peak = (int(number) for number in fields[:6])
        stdout, stderr = fields[6:]
    except ValueError as error:
        raise SandboxError("the box gave a malformed result") from error
    return CommandResult(
        exit_code=code,
        stdout=stdout,
        stderr=stderr,
        truncated=bool(truncated),
        timed_out=bool(timed_out),
        oom_killed=oom_killed,
        wall_s=wall_us / 1e6,
        cpu_s=cpu_us / 1e6,
        peak_memory_bytes=peak,
    )


def write_request(folder: str, tree: Tree) -> list[bytes]:
    """Write all files of `tree` below `folder`."""
    fields = [b"write"]
    for path, file in tree.items():
        fields += [encode(f"{folder}/{path}"), b"%d" % file.mode, file.data]
    return fields


def read_answer(fields: Sequence[bytes]) -> bytes:
    if len(fields) != 1:
        raise SandboxError("the box gave a malformed file")
    return fields[0]


def list_answer(fields: Sequence[bytes]) -> Listing:
    """`[number of files, (path, mode, content)…, (path, kind)…]`."""
    try:
        end = 1 + 3 * int(fields[0])
        rows = zip(fields[1:end:3], fields[2:end:3], fields[3:end:3], strict=True)
        files = {_inner(path): File(data, int(mode) & 0o777) for path, mode, data in rows}
        rest = fields[end:]
        odd = {_inner(path): kind.decode() for path, kind in zip(rest[::2], rest[1::2], strict=True)}
    except (ValueError, IndexError, SubmissionError) as error:
        raise SandboxError("the box gave a malformed listing") from error
    return Listing(files, odd)


def _inner(path: bytes) -> str:
    return check_path(path.decode("utf-8", "surrogateescape"))
