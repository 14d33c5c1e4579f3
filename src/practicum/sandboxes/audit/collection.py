"""Probes of what the host takes out of a box and puts into it: whatever is in a box is hostile.

Invariant: each plants something by a command of the box and then uses the contract as a run does; refused means
`BoxPathError`, promptly, and never the content behind a link.
Must not know: providers, how files are collected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

from practicum.errors import BoxPathError, SandboxError, SandboxTimeout
from practicum.sandboxes.audit.bench import Bench
from practicum.sandboxes.audit.inside.registry import Finding, blocked, opened, probe, unclear
from practicum.sandboxes.contract import Listing, Sandbox

_GROUP = "collection"
_THREAT = "a box's files attack the host that collects them"
_MOST = 1 << 20
_SECRET = b"behind-the-link"
_PLANT = f"mkdir -p /tmp/away && printf {_SECRET.decode()} > /tmp/away/secret"


async def _shell(box: Sandbox, text: str) -> None:
    done = await box.run(["sh", "-c", text], timeout_s=20)
    if done.exit_code:
        raise SandboxError(f"could not plant: {done.stderr.decode(errors='replace')}")


async def _refused(call: Awaitable[object], what: str) -> Finding:
    """`BoxPathError` is a refusal; an answer is not."""
    try:
        answer = await call
    except BoxPathError as error:
        return blocked(error.message.rsplit(": ", 1)[-1])
    except SandboxTimeout as error:
        return opened(f"{what}: {error.message}")
    size = len(answer) if isinstance(answer, bytes) else len(answer.files) if isinstance(answer, Listing) else 0
    return opened(f"{what} worked" + (f" ({size} bytes or files)" if size else ""))


def _worst(findings: list[Finding]) -> Finding:
    for status in ("open", "unclear"):
        for finding in findings:
            if finding.status == status:
                return finding
    return blocked("; ".join(dict.fromkeys(finding.observed for finding in findings)))


@probe("P89", _GROUP, "read through a link, and through a linked folder", "refused", threat=_THREAT, where="host")
async def read_link(bench: Bench) -> Finding:
    async with bench.box() as box:
        await _shell(box, f"{_PLANT}; ln -s /tmp/away/secret file; ln -s /tmp/away folder; ln -s /proc/1/root root")
        collector = bench.collector(box)
        paths = ("file", "folder/secret", "root/etc/passwd")
        return _worst([await _refused(collector.read(f"/app/{p}", max_bytes=_MOST), p) for p in paths])


@probe(
    "P90",
    _GROUP,
    "write through a link, and through a linked folder",
    "the target is untouched",
    threat=_THREAT,
    where="host",
)
async def write_link(bench: Bench) -> Finding:
    async with bench.box() as box:
        await _shell(box, f"{_PLANT}; ln -s /tmp/away/secret file; ln -s /tmp/away folder")
        collector, seen = bench.collector(box), []
        for path in ("file", "folder/new", "folder/secret"):
            try:
                await collector.write(f"/app/{path}", b"written")
                seen.append(f"{path}: replaced")
            except BoxPathError as error:
                seen.append(f"{path}: {error.message.rsplit(': ', 1)[-1]}")
        done = await box.run(["sh", "-c", "cat /tmp/away/secret; ls /tmp/away"], timeout_s=10)
        untouched = done.stdout == _SECRET + b"secret\n"
        return blocked("; ".join(seen)) if untouched else opened("the target of a link was changed")


@probe(
    "P91",
    _GROUP,
    "leave pipes, sockets and devices where files are read",
    "refused at once",
    threat=_THREAT,
    where="host",
)
async def special_files(bench: Bench) -> Finding:
    make = "import os, socket; os.mkfifo('pipe'); s = socket.socket(socket.AF_UNIX); s.bind('socket')"
    async with bench.box() as box:
        await _shell(box, f'python3 -I -S -c "{make}"; ln -s /dev/zero zero')
        collector = bench.collector(box)
        found = [await _refused(collector.read(f"/app/{p}", max_bytes=_MOST), p) for p in ("pipe", "socket", "zero")]
        try:
            async with asyncio.timeout(10):
                listing = await collector.list_tree("/app", max_bytes=_MOST)
        except (SandboxTimeout, TimeoutError) as error:
            return opened(f"list: {error}")
        if listing.files or set(listing.irregular) != {"pipe", "socket", "zero"}:
            return opened(f"listed as files: {sorted(listing.files)}")
        return _worst(found)


_SWAP = """
import os, sys
os.chdir('/app')
os.makedirs('real', exist_ok=True)
open('real/secret', 'w').write('harmless')
open('plain', 'w').write('harmless')
for at in range(10 ** 9):
    os.symlink('/tmp/away', f'l{at}'); os.rename('real', 'kept'); os.rename(f'l{at}', 'real')
    os.symlink('/tmp/away/secret', f'm{at}'); os.rename(f'm{at}', 'plain')
    if at == 0:
        open('/tmp/swapping', 'w').close()
    os.unlink('real'); os.rename('kept', 'real')
    open('n', 'w').write('harmless'); os.rename('n', 'plain')
"""


async def _swapping(bench: Bench, box: Sandbox) -> None:
    """Start a process, out of reach of its command's end, that swaps a file and a folder for links all the time."""
    await box.write("/tmp/swap.py", _SWAP.encode())
    await _shell(
        box,
        f"{_PLANT}; setsid timeout 10 python3 -I -S /tmp/swap.py >/dev/null 2>&1 </dev/null &"
        " until [ -e /tmp/swapping ]; do :; done",
    )


@probe(
    "P92",
    _GROUP,
    "swap a file for a link while it is read",
    "never the content behind the link",
    threat=_THREAT,
    where="host",
)
async def swap_while_reading(bench: Bench) -> Finding:
    tries, reads, refusals = (40 if bench.setting.naive else 300), 0, 0
    async with bench.box() as box:
        await _swapping(bench, box)
        collector = bench.collector(box)
        for at in range(tries):
            try:
                content = await collector.read("/app/plain" if at % 2 else "/app/real/secret", max_bytes=_MOST)
            except BoxPathError:
                refusals += 1
                continue
            reads += 1
            if _SECRET in content:
                return opened(f"after {at} reads, one gave what is behind the link")
    if not refusals:
        return unclear(f"{reads} reads, none of which met the link")
    return blocked(f"{reads} reads of the file, {refusals} refusals, never the target")


@probe(
    "P93",
    _GROUP,
    "swap a folder for a link while a tree is listed",
    "never the content behind the link",
    threat=_THREAT,
    where="host",
)
async def swap_while_listing(bench: Bench) -> Finding:
    tries, whole, refusals, met = (30 if bench.setting.naive else 200), 0, 0, 0
    async with bench.box() as box:
        await _swapping(bench, box)
        collector = bench.collector(box)
        for at in range(tries):
            try:
                listing = await collector.list_tree("/app", max_bytes=_MOST)
            except BoxPathError:
                refusals += 1
                continue
            whole += 1
            if any(_SECRET in file.data for file in listing.files.values()):
                return opened(f"after {at} listings, one held what is behind the link")
            met += bool({"real", "plain"} & listing.irregular.keys())
    if not met and not refusals:
        return unclear(f"{whole} listings, none of which met a link")
    return blocked(f"{whole} listings, {met} met a link, {refusals} refusals, never the target")


@probe(
    "P94", _GROUP, "put more entries into a folder than a collector can hold", "refused", threat=_THREAT, where="host"
)
async def many_files(bench: Bench) -> Finding:
    code = "import os; os.mkdir('m'); f = os.open('m', 0); [os.mknod(f'n{i}', dir_fd=f) for i in range(25_000)]"
    async with bench.box() as box:
        await _shell(box, f'python3 -I -S -c "{code}"')
        return await _refused(bench.collector(box).list_tree("/app", max_bytes=_MOST), "listing 25000 files")


@probe(
    "P95",
    _GROUP,
    "leave a file that is far larger than it looks",
    "bounded by apparent size",
    threat=_THREAT,
    where="host",
)
async def sparse_file(bench: Bench) -> Finding:
    async with bench.box() as box:
        await _shell(box, "truncate -s 60M hole")
        collector = bench.collector(box)
        return _worst(
            [
                await _refused(collector.read("/app/hole", max_bytes=10_000), "reading a hole of 60 MiB"),
                await _refused(collector.list_tree("/app", max_bytes=_MOST), "listing a hole of 60 MiB"),
            ]
        )


_DEEP = """
import os
for name in (b'new\\nline', b'-rf', b'\\xff\\xfe', b' ', b'x' * 255, b'~', b'$(touch ran)'):
    open(b'/tmp/odd/' + name, 'w').close()
for _ in range(400):
    os.mkdir('d'); os.chdir('d')
"""


@probe(
    "P96",
    _GROUP,
    "use odd names and folders 400 deep",
    "names come back as they are; depth is refused",
    threat=_THREAT,
    where="host",
)
async def odd_names(bench: Bench) -> Finding:
    names = {"new\nline", "-rf", "\udcff\udcfe", " ", "x" * 255, "~", "$(touch ran)"}
    async with bench.box() as box:
        await box.write("/tmp/deep.py", _DEEP.encode())
        await _shell(box, "mkdir /tmp/odd && python3 -I -S /tmp/deep.py")
        listing = await box.list_tree("/tmp/odd", max_bytes=_MOST)
        if set(listing.files) != names or listing.irregular:
            return opened(f"names came back as {sorted(listing.files)}")
        return await _refused(bench.collector(box).list_tree("/app", max_bytes=_MOST), "listing 400 folders")


@probe("P97", _GROUP, "name a path by `..` to leave a folder", "refused", threat=_THREAT, where="host")
async def paths_out(bench: Bench) -> Finding:
    paths = ("/app/../etc/passwd", "../etc/passwd", "/app/./../etc/passwd")
    async with bench.box() as box:
        collector = bench.collector(box)
        found = [await _refused(collector.read(path, max_bytes=_MOST), path) for path in paths]
        found.append(await _refused(collector.write("/app/../tmp/x", b""), "write"))
        return _worst(found)


_HOOKS = {
    ".git/config": "[core]\n\tfsmonitor = touch {mark}\n\tpager = touch {mark}\n",
    ".git/hooks/post-checkout": "#!/bin/sh\ntouch {mark}\n",
    "conftest.py": "open({mark!r}, 'w')\n",
    "sitecustomize.py": "open({mark!r}, 'w')\n",
    "setup.py": "open({mark!r}, 'w')\n",
    "start.pth": "import os; open({mark!r}, 'w')\n",
    ".envrc": "touch {mark}\n",
    "$(touch {mark})".replace("/", "_"): "x",
}


@probe(
    "P98",
    _GROUP,
    "leave hooks of git, python and shells for the host",
    "none of them is run",
    threat=_THREAT,
    where="host",
)
async def hooks(bench: Bench) -> Finding:
    """Collects, saves and forks as a run does. The mark is a path that the host could write and the box cannot."""
    mark = Path(bench.facts["folder"], "ran")
    async with bench.box() as box:
        for name, text in _HOOKS.items():
            await box.write(f"/app/{name}", text.format(mark=str(mark)).encode(), mode=0o755)
        listing = await box.list_tree("/app", max_bytes=_MOST)
        await box.save()
    if mark.exists():
        return opened("the host ran one of them")
    return blocked(f"{len(listing.files)} files collected and saved, none run")
