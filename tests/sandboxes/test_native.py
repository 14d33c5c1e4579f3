"""The native program: built from these sources, needing nothing of a box, and never at a loss."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import select
import shutil
import stat
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from practicum.sandboxes import native
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.hub import Hub
from practicum.sandboxes.launch import PROGRAM, Bubblewrap, Mount, sandbox_user
from practicum.sandboxes.layers import Layer, LayerCache
from practicum.sandboxes.means import filter_file
from practicum.sandboxes.profile import Profile
from practicum.sandboxes.wire import pack, unpack

MACHINES = {"x86_64": 62, "aarch64": 183}  # as ELF numbers them
DEADLINE_S = 20.0
STATUSES = {b"ok", b"path", b"errno", b"exec", b"fault"}


def copy_of(folder: Path) -> ModuleType:
    """The module and its sources, as another installation has them."""
    shutil.copytree(native.HERE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    spec = importlib.util.spec_from_file_location("native_copy", folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_built_from_these_sources() -> None:
    """The program that is shipped names the digest of the sources beside it."""
    said = subprocess.run([native.program(), "version"], capture_output=True, text=True, timeout=10, check=True)
    assert said.stdout == native.source_digest() + "\n"


@pytest.mark.parametrize("machine", native.MACHINES)
def test_it_needs_no_library(machine: str) -> None:
    """For each machine it is a small static program: no interpreter, no shared objects, no writable code."""
    data = native.program(machine).read_bytes()
    assert data[:6] == b"\x7fELF\x02\x01"
    kind, number = struct.unpack_from("<HH", data, 16)
    assert (kind, number) == (2, MACHINES[machine])
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<II", data, offset + i * size) for i in range(count)]
    assert not {2, 3} & {kind for kind, _ in headers}  # dynamic, interpreter
    assert all(flags & 3 != 3 for kind, flags in headers if kind == 1)  # loaded, writable and executable
    assert len(data) < 64 << 10


def test_boxes_get_a_copy_that_nobody_can_change(cache: LayerCache) -> None:
    """In the cache it is named by its sources, executable by all, writable by none, and copied once."""
    target = native.program_in(cache.root)
    before = target.stat()
    assert native.source_digest() in target.name
    assert stat.S_IMODE(before.st_mode) == 0o555
    assert target.read_bytes() == native.program().read_bytes()
    assert native.program_in(cache.root).stat().st_ino == before.st_ino


def test_a_stale_program_is_noticed(tmp_path: Path) -> None:
    """Changed sources, another machine's program, or none at all is an error that says to install again."""
    changed = copy_of(tmp_path / "changed")
    (changed.HERE / "base.c").write_text("// changed\n")
    with pytest.raises(RuntimeError, match=r"was built from other sources.*install practicum again"):
        changed.program_in(tmp_path)
    missing = copy_of(tmp_path / "missing")
    missing.program().unlink()
    with pytest.raises(RuntimeError, match=r"has not been built.*install practicum again"):
        missing.program_in(tmp_path)
    assert list(tmp_path.glob("box-*")) == []


@pytest.mark.parametrize("arguments", [[], ["agent", "x"], ["hub"], ["hub", "1", "2"], ["nonsense"]])
def test_bad_usage(arguments: list[str]) -> None:
    """Unknown or incomplete arguments end with 2."""
    done = subprocess.run([native.program(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 2


# --- the agent, in an empty box, told nonsense -------------------------------------------------------------


class Agent:
    """A box that holds nothing but the native program, and the raw ends of its wire."""

    def __init__(self, cache: LayerCache) -> None:
        program = native.program_in(cache.root)
        nothing = Layer("nothing", "", {}, (), {})
        mounts = [Mount(PROGRAM, str(program)), Mount("/app", "", writable=True, size=1 << 20)]
        argv = Bubblewrap().argv("fuzz", BoxSpec("fuzz"), nothing, mounts, Profile())
        self.hub = Hub(program, cache.root, sandbox_user(), stacks=False)
        self.filter = filter_file(cache)
        self.argv = argv

    @contextlib.contextmanager
    def started(self) -> Iterator[tuple[io.FileIO, int, int]]:
        """Where to write, where to read, and what becomes readable at its end."""
        box_in, input_fd = os.pipe()
        from_box, box_out = os.pipe()
        to_box = io.FileIO(input_fd, "w")
        null = os.open(os.devnull, os.O_RDWR)
        program = os.open(self.filter, os.O_RDONLY)
        handle = -1
        try:
            try:
                handle = self.hub.spawn(self.argv, [box_in, box_out, null, program]).pidfd
            finally:
                for fd in (box_in, box_out, null, program):
                    os.close(fd)
            yield to_box, from_box, handle
        finally:
            to_box.close()
            os.close(from_box)
            if handle >= 0:
                os.close(handle)


@pytest.fixture(scope="module")
def agent(cache: LayerCache) -> Iterator[Agent]:
    made = Agent(cache)
    yield made
    made.hub.close()


def exchange(agent: Agent, data: bytes) -> bytes:
    """Send all, hang up, and return all that comes until the end, which must come."""
    deadline = time.monotonic() + DEADLINE_S
    found = b""
    with agent.started() as (to_box, from_box, handle):
        os.set_blocking(to_box.fileno(), False)
        while True:
            if not data:
                to_box.close()
            left = max(0.0, deadline - time.monotonic())
            readable, writable, _ = select.select([from_box], [] if to_box.closed else [to_box], [], left)
            assert readable or writable, "it neither reads, nor answers, nor ends"
            if writable:
                try:
                    data = data[to_box.write(data) :]
                except BrokenPipeError:
                    data = b""
            if readable:
                part = os.read(from_box, 1 << 16)
                if not part:
                    break
                found += part
        assert select.select([handle], [], [], max(0.0, deadline - time.monotonic()))[0], "it has not ended"
    return found


def answers(data: bytes) -> list[list[bytes]]:
    found = []
    while data:
        size = int.from_bytes(data[:4], "little")
        assert len(data) >= 4 + size, "a frame was cut off"
        found.append(unpack(data[4 : 4 + size]))
        data = data[4 + size :]
    return found


OPERATIONS = [b"run", b"copy", b"warm", b"read", b"write", b"list", b"quiet", b"procs", b"ping", b"cancel", b"", b"\0"]
FIELD = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"/app/f", b"/app", b"/", b"..", b"/proc/self/mem", b"0", b"1", b"-1", b"9" * 30, b"4=1 7=5", b"=", b"7"]
    ),
)
FRAME = st.one_of(
    st.builds(lambda operation, fields: pack([operation, *fields]), st.sampled_from(OPERATIONS), st.lists(FIELD)),
    st.lists(FIELD, max_size=5).map(pack),
    st.binary(max_size=40).map(lambda body: len(body).to_bytes(4, "little") + body),
    st.binary(max_size=12),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frames=st.lists(FRAME, max_size=8))
def test_nonsense_is_answered_or_ends_it(agent: Agent, frames: list[bytes]) -> None:
    """Whatever it is sent, it answers in whole frames with a status it has, or ends; it never hangs."""
    found = answers(exchange(agent, b"".join(frames)))
    assert found[0] == [b"ok", b"hello"]
    assert all(answer[0] in STATUSES for answer in found[1:])
    assert len(found) <= len(frames) + 1


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",  # a frame of 4 GiB that does not come
        (8).to_bytes(4, "little") + b"\xff\xff\xff\xffabcd",  # a field longer than its frame
        (0).to_bytes(4, "little"),
        pack([b"run"] + [b""] * 20),
        pack([b"run", b"/app", b"1", b"1", b"", b"0", b"", b"4000000000", b"x"]),  # more arguments than there are
        pack([b"run", b"/app", b"1000000", b"-5", b"", b"0", b"", b"1", b"/.practicum", b"X=1"]),
        pack([b"read", b"/app/x", b"99999999999999999999"]),
        pack([b"write", *[b"/app/a", b"420", b"x"] * 2000]),
        pack([b"write", b"/app/a"]),
        pack([b"read", b"/" + b"a/" * 3000, b"5"]),
        pack([b"list", b"/app" + b"\0" + b"x", b"5"]),
        pack([b"cancel"]) * 500 + pack([b"ping"]),
    ],
    ids=range(12),
)
def test_hostile_frames(agent: Agent, data: bytes) -> None:
    """Lengths that lie, numbers out of range, missing and too many fields: an answer, or the end."""
    found = answers(exchange(agent, data))
    assert found[0] == [b"ok", b"hello"]
    assert all(answer[0] in STATUSES for answer in found)
