"""What is said over the wire to a box's agent, and what may come back.

Owns: the fields of requests and the reading of answers. Pure.
Invariant: an answer is either exactly what was asked for or a `SandboxError`: the box may be hostile.
Must not know: pipes, processes.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Mapping, Sequence

from practicum.errors import BoxPathError, SandboxError, SubmissionError
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


def take_status(fields: Sequence[bytes]) -> list[bytes]:
    """What follows the status of an answer; `BoxPathError` or `SandboxError` where it is not `ok` or `exec`."""
    status, rest = fields[0] if fields else b"", list(fields[1:])
    if status == b"ok":
        return rest
    if status == b"path" and rest:
        raise BoxPathError(rest[0].decode(errors="replace"))
    if status == b"errno" and rest and _is_errno(rest[0]):
        raise BoxPathError(os.strerror(int(rest[0])))
    if status == b"exec" and rest and _is_errno(rest[0]):
        return [b"exec", rest[0]]
    raise SandboxError(f"the box answered {b' '.join(fields[:2]).decode(errors='replace')!r}")


def _is_errno(field: bytes) -> bool:
    return field.isdigit() and len(field) < 6


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
    operation: bytes = b"run",
) -> list[bytes]:
    """Run `command`; `rlimits` are by the names of `resource.RLIMIT_*` without the prefix.

    `operation` is `run`, `copy` (of the warm process) or `warm` (start that).
    """
    return [
        operation,
        cwd,
        b"%d" % (timeout_s * 1e6),
        b"%d" % output_bytes,
        " ".join(f"{getattr(resource, 'RLIMIT_' + name)}={value}" for name, value in rlimits.items()).encode(),
        b"1" if stdin is not None else b"0",
        stdin or b"",
        b"%d" % len(command),
        *(encode(part) for part in command),
        *(encode(f"{name}={value}") for name, value in env.items()),
    ]


def run_answer(fields: Sequence[bytes], command: Sequence[str], cwd: str, *, oom_killed: bool) -> CommandResult:
    if len(fields) == 2 and fields[0] == b"exec" and _is_errno(fields[1]):  # as a shell shows it
        number = int(fields[1])
        text = f"practicum: cannot run {command[0]!r} in {cwd!r}: {os.strerror(number)}\n"
        return CommandResult(127 if number == errno.ENOENT else 126, b"", text.encode("utf-8", "surrogatepass"))
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
        files = {_inner(path): File(data, int(mode, 8) & 0o777) for path, mode, data in rows}
        rest = fields[end:]
        odd = {_inner(path): kind.decode() for path, kind in zip(rest[::2], rest[1::2], strict=True)}
    except (ValueError, IndexError, SubmissionError) as error:
        raise SandboxError("the box gave a malformed listing") from error
    return Listing(files, odd)


def _inner(path: bytes) -> str:
    return check_path(path.decode("utf-8", "surrogateescape"))
