"""What a box is given: refused by name before anything exists, or there as it was specified."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from practicum.errors import CreateFailed, UnsupportedControl
from practicum.records.task import MIB, Limits
from practicum.records.tree import File
from practicum.sandboxes.contract import BoxSpec, Sandbox
from practicum.sandboxes.layers import Layer, LayerCache
from practicum.sandboxes.ownership import Record
from practicum.sandboxes.provider import HostProvider, open_provider


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the sandbox's user can enter, with a name that is awkward among options and paths."""
    outer = Path(tempfile.mkdtemp(prefix="practicum-test-furnish-"))
    outer.chmod(0o755)
    inner = outer / "od,d:na\\me 'x'"
    inner.mkdir()
    yield inner
    shutil.rmtree(outer)


@asynccontextmanager
async def boxes(cache: LayerCache, **options: Any) -> AsyncIterator[HostProvider]:
    async with open_provider(limits_by="cgroup-or-rlimit", cache=cache, **options) as provider:
        yield provider


async def said(box: Sandbox, script: str) -> str:
    done = await box.run(["sh", "-c", script], timeout_s=20)
    assert done.exit_code == 0, done.stderr
    return done.stdout.decode()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"layer": "no-such-layer"}, "'no-such-layer'"),
    ({"limits": Limits(memory_bytes=1000)}, "limits.memory_bytes = 1000"),
    ({"limits": Limits(pids=0)}, "limits.pids = 0"),
    ({"limits": Limits(disk_bytes=0)}, "limits.disk_bytes = 0"),  # which the kernel takes for no limit
    ({"limits": Limits(disk_bytes=-1)}, "limits.disk_bytes = -1"),
    ({"limits": Limits(cpus=0.0)}, "limits.cpus = 0"),
    ({"limits": Limits(cpus=float("nan"))}, "limits.cpus = nan"),
    ({"limits": Limits(output_bytes=-1)}, "limits.output_bytes = -1"),
    ({"user": "nobody"}, "'nobody'"),
    ({"workdir": "/app/../etc"}, "/app/../etc"),
    ({"workdir": "app"}, "'app'"),
    ({"scratch": ("/usr/share/x",)}, "/usr/share/x"),
    ({"readonly": {"/proc/x": {"f": File(b"")}}}, "/proc/x"),
    ({"readonly": {"/app/inner": {"f": File(b"")}}}, "/app/inner"),
    ({"scratch": ("/a", "/a/b")}, "/a/b"),
    ({"sockets": {"/run/s": "/etc/passwd"}}, "/etc/passwd"),
    ({"sockets": {"/run/s": "/no/such/socket"}}, "/no/such/socket"),
    ({"keep": {"/kept": "/no/such/folder"}}, "/no/such/folder"),
    ({"keep": {"/kept": "/usr"}}, "'/usr'"),
    ({"files": {"../outside": File(b"")}}, "files"),
]


@pytest.mark.parametrize(("fields", "named"), BAD, ids=[named for _, named in BAD])
def test_what_cannot_be_had_is_named(cache: LayerCache, fields: dict[str, Any], named: str) -> None:
    """A layer that is missing, a limit below what a box needs, a place outside: an error that names it."""

    async def use() -> None:
        async with boxes(cache) as provider:
            with pytest.raises((UnsupportedControl, CreateFailed)) as refused:
                async with provider.create(BoxSpec("bad", **fields)):
                    pass
            assert named in refused.value.message
            assert provider.live == 0
            if named != "files":  # those take a box to be refused by
                record = Record(provider.host.owner.path)
                assert record.boxes == {}
                assert b'"box":"bad","expires"' not in record.path.read_bytes()

    asyncio.run(use())


def test_the_least_that_is_accepted(cache: LayerCache) -> None:
    """A box with the least of everything runs a command."""

    async def use() -> None:
        async with boxes(cache) as provider:
            least = Limits(cpus=0.01, memory_bytes=4 * MIB, pids=1, disk_bytes=1 << 16, output_bytes=0)
            async with provider.create(BoxSpec("least", limits=least)) as box:
                if "memory-limit" in provider.capabilities:
                    assert (await box.run(["true"], timeout_s=20)).exit_code == 0
                assert (await box.status()).state == "idle"

    asyncio.run(use())


def test_a_stack_of_folders(cache: LayerCache, folder: Path) -> None:
    """A part of a layer that is several folders shows all of their files, the topmost ones where they share a name."""
    for name in ("top", "mid,dle", "bot:tom"):
        (folder / name).mkdir()
        (folder / name / f"only-{name[:3]}").write_text(name)
        (folder / name / "shared").write_text(name)
    base = cache.layer("python")
    stack = tuple(str(folder / name) for name in ("top", "mid,dle", "bot:tom"))
    layer = Layer("stacked", f"stacked-{folder}", {**base.parts, "/data": stack}, base.links, base.env, {})

    async def use() -> None:
        with cache.lend(layer) as name:
            async with boxes(cache) as provider:
                async with provider.create(BoxSpec("reads", layer=name)) as box:
                    assert await said(box, "cat /data/shared; ls /data") == "toponly-bot\nonly-mid\nonly-top\nshared\n"
                    assert (await box.run(["sh", "-c", "echo x > /data/new"], timeout_s=10)).exit_code != 0
                async with provider.create(BoxSpec("writes", layer=name, workdir="/data")) as box:
                    assert await said(box, "rm only-mid; echo x > new; ls") == "new\nonly-bot\nonly-top\nshared\n"
                    snapshot = await box.snapshot()
                    await box.reset()
                    assert await said(box, "ls") == "only-bot\nonly-mid\nonly-top\nshared\n"
                async with provider.fork(snapshot, BoxSpec("fork", layer=name, workdir="/data")) as box:
                    assert await said(box, "ls") == "new\nonly-bot\nonly-top\nshared\n"
                provider.release(snapshot)
            async with boxes(cache, stacks=False) as provider:
                with pytest.raises(UnsupportedControl, match="stack"):
                    async with provider.create(BoxSpec("copies", layer=name)):
                        pass
        assert (folder / "mid,dle" / "only-mid").exists()

    asyncio.run(use())


def test_a_socket_is_the_one_way_out(cache: LayerCache, folder: Path) -> None:
    """A program in the box talks to the host through a bound socket, before and after a reset; the network is none."""
    path = folder.parent / "socket"
    ask = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/model.sock'); s.sendall(b'box');"
        "s.shutdown(socket.SHUT_WR); print(s.recv(100))"
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello " + await reader.read())
        writer.close()

    async def use() -> None:
        server = await asyncio.start_unix_server(answer, path)
        path.chmod(0o666)
        async with server, boxes(cache) as provider:
            async with provider.create(BoxSpec("talks", sockets={"/run/model.sock": str(path)})) as box:
                for _ in range(2):
                    done = await box.run(["python3", "-c", ask], timeout_s=20)
                    assert done.stdout == b"b'hello box'\n", done.stderr
                    await box.reset()
            async with provider.create(BoxSpec("mute")) as box:
                done = await box.run(["python3", "-c", ask], timeout_s=20)
                assert done.exit_code == 1

    asyncio.run(use())


def test_what_is_kept(cache: LayerCache, folder: Path) -> None:
    """What a box changes at a kept place is in the host's folder afterwards, and only that."""

    async def use() -> None:
        async with boxes(cache) as provider:
            if "copy-on-write" not in provider.capabilities:
                pytest.skip("files cannot be stacked here")
            if os.geteuid() == 0:
                os.chown(folder, provider.host.user, provider.host.user)
            async with provider.create(BoxSpec("builds", keep={"/built": str(folder)}, user="root")) as box:
                await said(
                    box, "cd /built; mkdir d; echo x > d/f; ln -s d/f link; echo not > /app/kept; echo not > /tmp/x"
                )
            found = {str(path.relative_to(folder / "upper")) for path in (folder / "upper").rglob("*")}
            assert found == {"d", "d/f", "link"}
            assert (folder / "upper" / "d" / "f").read_text() == "x\n"
            with pytest.raises(UnsupportedControl, match="not an empty folder"):
                async with provider.create(BoxSpec("again", keep={"/built": str(folder)})):
                    pass

    asyncio.run(use())


def test_an_awkward_cache(folder: Path) -> None:
    """A cache whose path holds commas, colons, quotes, blanks and backslashes serves as well as any."""

    async def use() -> None:
        async with boxes(LayerCache(folder / "cache")) as provider:
            spec = BoxSpec("odd", files={"a": File(b"1")}, readonly={"/given": {"f": File(b"g")}}, scratch=("/logs",))
            async with provider.create(spec) as box:
                assert await said(box, "cat a /given/f; echo 2 > b; python3 -c 'import pytest'") == "1g"
                snapshot = await box.snapshot()
                await box.reset()
                async with provider.fork(snapshot, BoxSpec("fork", readonly=spec.readonly, scratch=("/logs",))) as fork:
                    assert await said(fork, "cat a b") == "12\n"

    asyncio.run(use())


def test_large_specifications(cache: LayerCache) -> None:
    """Hundreds of kilobytes of environment and thousands of files fit; too many places are refused by their number."""

    async def use() -> None:
        async with boxes(cache) as provider:
            if "copy-on-write" not in provider.capabilities:
                pytest.skip("the number of places is not limited here")
            env = {f"V{i}": "x" * 1000 for i in range(300)}
            files = {f"d{i % 50}/f{i}": File(b"x") for i in range(3000)}
            async with provider.create(BoxSpec("large", env=env, files=files)) as box:
                assert await said(box, "ls d*/f* | wc -l; env | grep -c ^V") == "3000\n300\n"
            many = {f"/given/{i}": {"f": File(b"x")} for i in range(3000)}
            with pytest.raises(UnsupportedControl, match="300"):
                async with provider.create(BoxSpec("many", readonly=many)):
                    pass

    asyncio.run(use())
