"""Recipes become layers: the same from the same, made once, by commands that run in boxes only."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar
from zipfile import ZipFile

import pytest

from practicum.errors import CreateFailed
from practicum.records.recipe import Copy, Env, Recipe, Requirements, Run, Step, User, Workdir, read_lock
from practicum.records.tree import File
from practicum.sandboxes.contract import BoxSpec
from practicum.sandboxes.fake import FakeProvider
from practicum.sandboxes.layering.build import build_layer
from practicum.sandboxes.layering.running import BuildLimits
from practicum.sandboxes.layers import Layer, LayerCache
from practicum.sandboxes.provider import HostProvider, open_provider

T = TypeVar("T")


def dry(cache: LayerCache, *steps: Step, base: str = "python") -> Layer:
    """Build what takes no box: the provider could make none of this."""
    return asyncio.run(build_layer(cache, FakeProvider(), Recipe(base, steps)))


def sh(command: str) -> Run:
    return Run(("/bin/sh", "-c", command), where="Dockerfile line 3")


def with_boxes(cache: LayerCache, use: Callable[[HostProvider], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_provider(limits_by="cgroup-or-rlimit", cache=cache) as provider:
            return await use(provider)

    return asyncio.run(run())


def build(cache: LayerCache, *steps: Step, base: str = "python") -> Layer:
    return with_boxes(cache, lambda provider: build_layer(cache, provider, Recipe(base, steps)))


def say(cache: LayerCache, command: str, *steps: Step, base: str = "python") -> str:
    """What a command prints in a box of the layer that the steps make."""

    async def use(provider: HostProvider) -> str:
        recipe = Recipe(base, steps)
        await build_layer(cache, provider, recipe)
        async with provider.create(BoxSpec("say", recipe)) as box:  # type: ignore[arg-type,unused-ignore]
            result = await box.run(["/bin/sh", "-c", command], timeout_s=20)
            return (result.stdout + result.stderr).decode()

    return with_boxes(cache, use)


def steps_of(cache: LayerCache) -> set[str]:
    return {path.name for path in (cache.root / "layers").iterdir() if path.name.startswith(("step-", "."))}


def test_same_inputs_same_digest(cache: LayerCache, tmp_path: Path) -> None:
    """Another cache gives the same digests for the same recipe; any change gives another."""
    steps = (Workdir("/srv"), Copy({"f": File(b"1")}, "/srv"), Env((("A", "x$$y:${PATH}"),)), User("agent"))
    layer = dry(cache, *steps)
    root = Path(shutil.copytree(cache.root, cache.root.with_name(cache.root.name + "-2")))
    try:
        for entry in (root / "layers").glob("step-*"):
            shutil.rmtree(entry)
        again = dry(LayerCache(root), *steps)
    finally:
        shutil.rmtree(root)
    assert (again.digest, again.info) == (layer.digest, layer.info)
    assert layer.env["A"] == f"x$y:{cache.layer('python').env['PATH']}"
    assert (layer.info["workdir"], layer.info["user"]) == ("/srv", "agent")
    others = [steps[1:], (*steps[:1], Copy({"f": File(b"2")}, "/srv"), *steps[2:]), steps[:3]]
    assert len({layer.digest, *(dry(cache, *other).digest for other in others)}) == 4


def test_copies_go_where_docker_puts_them(cache: LayerCache) -> None:
    """Through links of the layer, into folders that exist, and as a new file or top folder where there is none."""
    one = {"f": File(b"1", 0o755)}
    layer = dry(
        cache, Copy(one, "/bin"), Copy(one, "/etc", alone=True), Copy(one, "/data/g", alone=True), Copy(one, "/top")
    )
    for path in ("/usr/bin/f", "/etc/f", "/data/g", "/top/f"):
        (found,) = layer.at(path)
        assert Path(found).read_bytes() == b"1"
        assert Path(found).stat().st_mode & 0o777 == 0o755
    assert layer.folders_at("/etc")[-1] == cache.layer("python").parts["/etc"][0]
    for target, words in {"/etc/passwd/x": "/etc/passwd is a file", "/tmp/x": "each box has its own"}.items():
        with pytest.raises(CreateFailed, match=words):
            dry(cache, Copy(one, target))
    with pytest.raises(CreateFailed, match="where the layer has a folder"):
        dry(cache, Copy({"alternatives": File(b"")}, "/etc"))


def test_a_base_that_is_not_there(cache: LayerCache) -> None:
    """A recipe upon an unknown layer is refused before anything is made, with the names of those there are."""
    before = steps_of(cache)
    with pytest.raises(CreateFailed, match=r"no layer named 'ubuntu:24.04'\n  fix: use one of host, python, scratch"):
        dry(cache, Workdir("/x"), base="ubuntu:24.04")
    assert steps_of(cache) == before


def test_commands_change_the_layer(cache: LayerCache) -> None:
    """What RUN writes, appends, replaces and removes is so in boxes of the layer, which cannot write it."""
    tool = "#!/bin/sh\necho tool\n"
    write = f"mkdir -p /opt/deep/er /usr/local/bin; printf '{tool}' > /usr/local/bin/tool; chmod +x /usr/local/bin/tool"
    first = "echo $WHO $ARG $(id -u) $(pwd) > said; rm a; echo x:x:7:7::/:/bin/sh >> /etc/passwd"
    steps = (
        Env((("WHO", "me"),)),
        Workdir("/srv/app"),
        Copy({"a": File(b"1"), "b": File(b"1")}, "/srv/app"),
        Run(("/bin/sh", "-c", first), (("ARG", "arg"),)),
        sh(write),
        User("agent"),
        sh("tool > /opt/deep/er/said; id -u >> /opt/deep/er/said; sed -i s/1/2/ b"),
    )
    shcache = "cat said b; echo; ls; tail -1 /etc/passwd; tool; cat /opt/deep/er/said; echo $ARG; touch /srv/app/x"
    said = say(cache, f"cd /srv/app; {shcache}; python3 -c 'import pytest'", *steps)
    expected = ["me arg 0 /srv/app", "2", "b", "said", "x:x:7:7::/:/bin/sh", "tool", "tool", "1000", ""]
    assert said.split("\n") == [*expected, "touch: cannot touch '/srv/app/x': Read-only file system", ""]


def test_a_failing_command_says_why(cache: LayerCache) -> None:
    """The error names line and exit code and shows the output; nothing of the step is kept."""
    before = steps_of(cache)
    with pytest.raises(CreateFailed) as caught:
        build(cache, sh("echo about to fail; echo badly >&2; exit 7"))
    assert re.search(r"Dockerfile line 3: the command failed with exit code 7\nabout to fail\nbadly", str(caught.value))
    with pytest.raises(CreateFailed, match=r"commands have no network"):
        build(cache, sh("python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 2)' # curl"))
    limits = BuildLimits(command_s=0.5)
    with pytest.raises(CreateFailed, match=r"did not end in time"):
        with_boxes(cache, lambda provider: build_layer(cache, provider, Recipe("python", (sh("sleep 60"),)), limits))
    assert steps_of(cache) == before


def test_built_once(cache: LayerCache) -> None:
    """Builds at the same time make each step once; a later one makes no box, and shares the steps it has in common."""

    async def use(provider: HostProvider) -> tuple[int, int, int]:
        first = (sh("echo 1 > /opt/one"), sh("echo 2 > /opt/two"))
        other = LayerCache(cache.root)
        await asyncio.gather(*(build_layer(cache, provider, Recipe("python", first)) for cache in (cache, cache)))
        together = provider.created
        await build_layer(other, provider, Recipe("python", first))
        later = provider.created
        await build_layer(cache, provider, Recipe("python", (first[0], sh("echo 3 > /opt/three"))))
        return together, later - together, provider.created - later

    assert with_boxes(cache, use) == (2, 0, 1)


def test_another_result_is_reported(cache: LayerCache) -> None:
    """When a step that was built before gives another result, the layer says so; a reproducible one says nothing."""
    noted: dict[str, list[str]] = {"same": [], "random": []}
    commands = {"same": "date > /dev/null; echo 1 > /opt/f", "random": "cat /proc/sys/kernel/random/uuid > /opt/f"}
    for name, command in commands.items():
        for _ in range(2):
            layer = build(LayerCache(cache.root), sh(command))
            noted[name].append(layer.info.get("note", ""))
            shutil.rmtree(cache.root / "layers" / f"step-{layer.digest[:16]}")
    assert noted["same"] == ["", ""]
    assert noted["random"][0] == ""
    assert "another result" in noted["random"][1]


def test_hostile_leftovers(cache: LayerCache, tmp_path: Path) -> None:
    """Links to the host, closed folders, pipes, sockets and removed places change nothing outside the layer."""
    outside = tmp_path / "secret"
    outside.write_text("host")
    outside.chmod(0o600)
    plant = sh(f"mkdir /opt/x; ln -s {outside} /opt/x/link; mkfifo /opt/x/pipe; mkdir -m 0 /opt/x/closed")
    wreck = sh("rm -rf /usr/local 2>/dev/null; chmod -R 777 /opt/x 2>/dev/null; rm -rf /opt/packages; true")
    said = say(cache, "ls -A /opt/x /usr/local; python3 -c 'import pytest' && cat /opt/x/link", plant, wreck)
    assert said.split("\n")[:5] == ["/opt/x:", "closed", "link", "", "/usr/local:"]
    assert "No such file" in said
    assert (outside.read_text(), outside.stat().st_mode & 0o777) == ("host", 0o600)
    assert "left out below /opt, since no box could use them: x/pipe" in build(cache, plant).info["note"]


def shell_image(oci: ModuleType, place: Path) -> Path:
    """An image with a shell and what that needs, and nothing else: no python."""
    listed = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout
    entries = [("bin/sh", Path("/bin/sh").resolve().read_bytes())]
    entries += [(path.lstrip("/"), Path(path).read_bytes()) for path in re.findall(r"(/\S+) \(0x", listed)]
    entries += [("etc/os-release", b"NAME=tiny\n"), ("var/lib/old", b"1")]
    archive: Path = oci.docker_archive(place, [oci.layer(*entries)], Env=["FROM_IMAGE=yes"], WorkingDir="/var/lib")
    return archive


def test_an_image_without_python(oci: ModuleType, cache: LayerCache, tmp_path: Path) -> None:
    """An image that holds a shell and no more is a layer, and a base of others."""
    cache.import_image(shell_image(oci, tmp_path / "image.tar"), "tiny:1")
    said = say(
        cache,
        "while read line; do echo $line; done < /var/lib/new; echo /var/lib/* $FROM_IMAGE; echo > /etc/os-release",
        sh("while read name; do echo got $name; done < /etc/os-release > new; echo 2 > old; echo 1 > /etc/more"),
        base="tiny:1",
    )
    assert said.split("\n")[:2] == ["got NAME=tiny", "/var/lib/new /var/lib/old yes"]
    assert "Read-only file system" in said
    with pytest.raises(CreateFailed, match="a lock needs a layer that comes from `python`"):
        dry(cache, Requirements(read_lock(f"a==1 --hash=sha256:{'0' * 64}", "lock")), base="tiny:1")


def test_locked_packages_in_a_box(cache: LayerCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A box of a layer with a lock imports its packages beside pytest, and runs their programs."""
    info = "hello-1.0.dist-info"
    path = tmp_path / "hello-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as file:
        file.writestr("hello.py", "def main():\n    print('hello', __file__)\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/entry_points.txt", "[console_scripts]\nhello = hello:main\n")
        file.writestr(f"{info}/RECORD", f"hello.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    lock = Requirements(read_lock(f"hello==1.0 --hash=sha256:{digest}", "lock"))
    said = say(cache, "hello; python3 -c 'import pytest; print(pytest.__version__)'; pytest --version", lock)
    assert said.startswith(
        f"hello {cache.layer('python').info['site']}/hello.py\n{cache.layer('python').info['pytest']}\n"
    )
