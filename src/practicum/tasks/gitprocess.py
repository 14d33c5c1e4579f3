"""The git binary, run such that nothing of a repository is executed.

Owns: `GitProcess`, `git_output`, the environment that git is given.
Invariant: no hook, pager, filter, text converter, monitor, helper or transport that a repository names is ever started,
nothing is fetched, nothing is written; every wait has a deadline and every answer a bound.
Must not know: what is asked of git.

A repository's own configuration is still read, since it says in which format its objects are; whatever in it could
start a program is overridden from the command's side, which counts for more.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from practicum.errors import TaskError

DEADLINE_S = 120.0
MAX_OUTPUT = 64 << 20  # bytes
_CHUNK = 1 << 16
_OVERRIDES = {
    "advice.graftFileDeprecated": "false",
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "core.attributesFile": "/dev/null",
    "core.quotePath": "false",
    "core.alternateRefsCommand": "false",
    "credential.helper": "",
    "diff.external": "",
    "diff.orderFile": "/dev/null",
    "gpg.program": "false",
    "log.showSignature": "false",
    "log.mailmap": "false",
    "protocol.allow": "never",
    "safe.directory": "*",  # as data only, so it does not matter whose the files are
    "uploadpack.packObjectsHook": "",
}
_FIX_GIT = "install git (apt-get install git), so that repositories can be read"


def git_environment(git_dir: Path) -> dict[str, str]:
    """What git may know: the repository at `git_dir` and no other, no settings of this host, no way out."""
    overrides = {"GIT_CONFIG_COUNT": str(len(_OVERRIDES))}
    for number, (key, value) in enumerate(_OVERRIDES.items()):
        overrides |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return overrides | {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_DIR": str(git_dir),  # named, so that git does not look for one in the folders above
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # a list of those allowed; counts for more than any configuration
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": "/dev/null",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
    }


class GitProcess:
    """One running git, read piece by piece; a context manager that leaves no process behind.

    `deadline_s` bounds the time that git is waited for, in all; what the reader does in between does not count.
    """

    def __init__(
        self, git_dir: Path, arguments: Sequence[str], *, deadline_s: float = DEADLINE_S, with_input: bool = False
    ) -> None:
        self._what = f"git {arguments[0]} in {git_dir}"
        self._left_s = deadline_s
        self._deadline_s = deadline_s
        self._buffer = bytearray()
        self._ended = False
        git = shutil.which("git")
        if git is None:
            raise TaskError("there is no git on this machine", fix=_FIX_GIT)
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed in __exit__)
        try:
            self._process = subprocess.Popen(
                [git, "--no-pager", "--no-replace-objects", "--literal-pathspecs", *arguments],
                cwd=git_dir,
                env=git_environment(git_dir),
                stdin=subprocess.PIPE if with_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
            )
        except OSError as error:
            self._stderr.close()
            raise TaskError(f"{self._what} could not be started: {error.strerror}", fix=_FIX_GIT) from None

    def __enter__(self) -> GitProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # git was gone before it had read all; there is nothing left to say to it
        self._process.wait()
        self._stderr.close()

    def ask(self, line: bytes) -> None:
        """Write one line that git answers. Raises `TaskError` where git has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self.failure() from None

    def exactly(self, size: int) -> bytes:
        """The next `size` bytes. Raises `TaskError` where there are fewer."""
        while len(self._buffer) < size:
            if not self._fill():
                raise self.failure()
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def until(self, mark: bytes, *, max_bytes: int) -> bytes | None:
        """What stands before the next `mark`, or None at the end. Raises `TaskError` for more than `max_bytes`."""
        seen = 0
        while (at := self._buffer.find(mark, seen)) < 0:
            seen = max(0, len(self._buffer) - len(mark) + 1)
            if seen > max_bytes:
                raise TaskError(f"{self._what}: a name or message is longer than {max_bytes} bytes")
            if not self._fill():
                if self._buffer:
                    raise self.failure()
                return None
        taken = bytes(self._buffer[:at])
        del self._buffer[: at + len(mark)]
        return taken

    def pieces(self, mark: bytes, *, max_bytes: int) -> Iterator[bytes]:
        """All pieces that end with `mark`."""
        while (piece := self.until(mark, max_bytes=max_bytes)) is not None:
            yield piece

    def rest(self, *, max_bytes: int) -> bytes:
        """All that is left. Raises `TaskError` for more than `max_bytes`."""
        while self._fill():
            if len(self._buffer) > max_bytes:
                raise TaskError(f"{self._what} gave more than {max_bytes} bytes", fix="ask for less of the repository")
        return bytes(self._buffer)

    def status(self) -> int:
        """The exit status, once all has been read. Raises `TaskError` past the deadline."""
        try:
            return self._process.wait(timeout=max(0.1, self._left_s))
        except subprocess.TimeoutExpired:
            raise self._late() from None

    def failure(self) -> TaskError:
        """The error that says how git failed, with the end of what it said on stderr."""
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - 500))
        said = self._stderr.read().decode(errors="replace").strip() or "without a word"
        partial = "take a full clone: parts of this one were left out, and nothing is fetched here"
        return TaskError(f"{self._what} failed: {said}", fix=partial if "promisor" in said else None)

    def _fill(self) -> bool:
        """Read one more chunk; False at the end."""
        if self._ended:
            return False
        assert self._process.stdout is not None
        start = time.monotonic()
        ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, self._left_s))
        self._left_s -= time.monotonic() - start
        if not ready:
            raise self._late()
        chunk = os.read(self._process.stdout.fileno(), _CHUNK)
        self._ended = not chunk
        self._buffer += chunk
        return bool(chunk)

    def _late(self) -> TaskError:
        return TaskError(
            f"{self._what} took longer than {self._deadline_s:g} s",
            fix="take a smaller repository, or a shallow clone of it (git clone --depth N)",
        )


def git_output(
    git_dir: Path, arguments: Sequence[str], *, max_bytes: int = MAX_OUTPUT, deadline_s: float = DEADLINE_S
) -> bytes:
    """All that git says. Raises `TaskError` with its complaint where it fails, takes too long or says too much."""
    with GitProcess(git_dir, arguments, deadline_s=deadline_s) as git:
        said = git.rest(max_bytes=max_bytes)
        if git.status() != 0:
            raise git.failure()
        return said
