"""The hub starts programs and mounts, unprivileged and out of the host's sight, and says what it was refused."""

from __future__ import annotations

import errno
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from practicum.errors import SandboxError
from practicum.sandboxes.hub import Hub, HubEnded, HubRefused, Started
from practicum.sandboxes.launch import sandbox_user
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.native import program_in
from practicum.sandboxes.ownership import process_start


@pytest.fixture
def hub(cache: LayerCache) -> Iterator[Hub]:
    folder = cache.root / "hub"
    folder.mkdir(exist_ok=True, mode=0o755)
    try:
        hub = Hub(program_in(cache.root), folder, sandbox_user())
    except HubRefused as error:
        pytest.skip(f"no hub that mounts can be had here: {error}")
    yield hub
    hub.close()


def spawn(hub: Hub, argv: list[str], *more: int) -> tuple[str, str]:
    """What a program wrote to its output and its error stream before it ended."""
    out, err = os.pipe(), os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        started = hub.spawn(argv, [null, out[1], err[1], null, *more])
    finally:
        for fd in (null, out[1], err[1]):
            os.close(fd)
    wait(started)
    with os.fdopen(out[0]) as output, os.fdopen(err[0]) as errors:
        return output.read(), errors.read()


def wait(started: Started) -> None:
    assert select.select([started.pidfd], [], [], 10)[0], "it has not ended"
    os.close(started.pidfd)


@pytest.mark.parametrize(
    ("steps", "number", "named"),
    [
        ([("D", "a", ""), ("B", "nothing", "a")], errno.ENOENT, "B nothing a"),
        ([("T", "none", "size=1m")], errno.ENOENT, "T none"),
        ([("D", "b", ""), ("T", "b", "no-such-option=1")], errno.EINVAL, "no-such-option"),
        ([("D", "c", ""), ("D", "c", "")], errno.EEXIST, "D c"),
        ([("U", "d", "")], errno.ENOENT, "U d"),
        ([("Z", "e", "")], errno.EINVAL, "Z e"),
        ([("D", "/usr/here", "")], None, "D /usr/here"),
        ([("D", "f", ""), ("O", "f", "lowerdir=/nowhere")], errno.ENOENT, "O f"),
    ],
)
def test_a_refused_step_is_named(hub: Hub, steps: list[tuple[str, str, str]], number: int | None, named: str) -> None:
    """A step that the kernel refuses is named with its operands and the reason; the hub goes on."""
    with pytest.raises(HubRefused) as refused:
        hub.do(steps)
    assert named in refused.value.message
    assert refused.value.number == number or (number is None and refused.value.number in (errno.EACCES, errno.EROFS))
    assert os.strerror(refused.value.number) in refused.value.message
    hub.do([("D", "later", "")])


def test_nobody_else_sees_its_mounts(hub: Hub) -> None:
    """What it mounts is in its own namespace: the host sees an empty folder, and no mount."""
    hub.do([("D", "seen", ""), ("T", "seen", "size=1m"), ("D", "seen/inner", "")])
    assert list(hub.folder.iterdir()) == []
    assert str(hub.folder) not in Path("/proc/self/mountinfo").read_text()
    assert f"{hub.folder}/seen" in Path(f"/proc/{hub.pid}/mountinfo").read_text()


def test_it_is_unprivileged(hub: Hub) -> None:
    """It has the sandbox's user's id, no groups, and cannot get privileges by executing something."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{hub.pid}/status").read_text().splitlines())
    assert set(status["Uid"].split()) == {str(sandbox_user())}
    if os.geteuid() == 0:
        assert status["NoNewPrivs"] == "1"
        assert status["Groups"].split() == []
        with pytest.raises(HubRefused):
            hub.do([("B", "/root", "nowhere")])


def test_programs_start_with_nothing(hub: Hub, tmp_path: Path) -> None:
    """A program has its three streams, the filter, an empty environment, and no more; it has joined its groups."""
    group = tmp_path / "cgroup.procs"
    joined = os.open(group, os.O_WRONLY | os.O_CREAT)
    try:
        words = "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))), dict(os.environ), os.getcwd())"
        out, err = spawn(hub, ["/usr/bin/python3", "-I", "-S", "-c", words], joined)
    finally:
        os.close(joined)
    assert err == ""
    numbers, rest = out.split("]")
    assert {int(n) for n in numbers[1:].split(",")} - {3} == {0, 1, 2, 9}  # 3 is the listing's own
    assert rest.split() == ["{'LC_CTYPE':", "'C.UTF-8'}", "/"]  # python's own doing
    assert group.read_text() == "0"


def test_a_program_that_is_not_there(hub: Hub) -> None:
    """One that cannot be executed, or cannot join its groups, ends at once with words about it."""
    assert spawn(hub, ["/no/such/program", "x"])[1] == "/no/such/program could not be executed\n"
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        assert spawn(hub, ["/usr/bin/true", "x"], full)[1] == "a control group could not be joined\n"
    finally:
        os.close(full)


def test_too_large_a_request(hub: Hub) -> None:
    """A request beyond what one message holds is refused by its size, and the next is carried out."""
    with pytest.raises(SandboxError, match=r"\d{6} bytes is too long"):
        hub.do([("D", "x" * 400_000, "")])
    hub.do([("D", f"n{i}", "") for i in range(3000)])
    hub.clear([f"n{i}" for i in range(3000)])


def test_what_is_cleared_goes(hub: Hub) -> None:
    """Cleared folders are unmounted and removed, in the background."""
    hub.do([("D", "gone", ""), ("T", "gone", "size=1m"), ("D", "gone/inner", "")])
    hub.clear(["gone"])
    deadline = time.monotonic() + 10
    while True:
        try:
            hub.do([("D", "gone", "")])
            break
        except HubRefused as error:
            if error.number != errno.EEXIST or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def test_its_end(hub: Hub) -> None:
    """When it has been killed, each request says so at once; closing it is in order, twice as well."""
    os.kill(hub.pid, 9)
    start = time.monotonic()
    for _ in range(2):
        with pytest.raises(HubEnded, match="the hub has ended"):
            hub.do([("D", "x", "")])
        with pytest.raises(HubEnded, match="the hub has ended"):
            spawn(hub, ["/usr/bin/true", "x"])
    hub.clear(["x"])  # there is nothing left to clear
    assert time.monotonic() - start < 5
    pid, was = hub.pid, process_start(hub.pid)
    hub.close()
    hub.close()
    assert not hub.alive
    assert process_start(pid) is None or process_start(pid) != was


def test_one_that_only_starts_programs(cache: LayerCache) -> None:
    """Without stacks it enters no namespace, mounts nothing, and starts programs all the same."""
    hub = Hub(program_in(cache.root), cache.root, sandbox_user(), stacks=False)
    try:
        assert spawn(hub, ["/usr/bin/echo", "here"])[0] == "here\n"
        with pytest.raises(HubRefused):
            hub.do([("B", "/usr", str(cache.root / "hub"))])
    finally:
        hub.close()


def test_a_hub_that_cannot_be(cache: LayerCache) -> None:
    """A program that is missing, or a folder that is, is refused with a reason."""
    with pytest.raises(HubRefused, match="could not be started"):
        Hub(Path("/no/such/program"), cache.root, sandbox_user())
    with pytest.raises(HubRefused, match="refused"):
        Hub(program_in(cache.root), Path("/no/such/folder"), sandbox_user())
