"""Images come in from local files, checked by digest, and mean the same in whatever form they came."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import ModuleType

import pytest

from practicum.errors import ConfigError, CreateFailed
from practicum.sandboxes.layering.flatten import Bounds
from practicum.sandboxes.layers import LayerCache

SETTINGS = {
    "Env": ["PATH=/x:/bin", "A=b=c"],
    "WorkingDir": "/srv",
    "User": "1000:1000",
    "Entrypoint": ["/init"],
    "Cmd": ["sh", "-c"],
}


def layers_of(oci: ModuleType) -> list[bytes]:
    lower = oci.layer(("bin/sh", b"shell"), ("etc/conf", b"1"), ("gone", b"x"), ("tmp/t", b"x"))
    return [lower, oci.layer((".wh.gone", b""), ("etc/conf", b"2"), ("lib", (oci.tarfile.SYMTYPE, "usr/lib")))]


@pytest.mark.parametrize("form", ["folder", "archive", "gzip", "zstd", "plain", "docker", "docker.gz"])
def test_every_form_is_the_same_layer(oci: ModuleType, own: LayerCache, tmp_path: Path, form: str) -> None:
    """One image has one digest and one content as folder, archive or `docker save`, whatever compressed it."""
    layers = layers_of(oci)
    if form.startswith("docker"):
        path = oci.docker_archive(tmp_path / "image.tar", layers, **SETTINGS)
        if form.endswith("gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
    else:
        layout = oci.Layout()
        layout.add(layers, pack=form if form in ("zstd", "plain") else "gzip", **SETTINGS)
        path = layout.folder(tmp_path / "image") if form == "folder" else layout.archive(tmp_path / "image.tar")
    layer = own.import_image(path, "org/tool:1.2")
    assert layer.digest == oci.sha(oci.config_of(layers, **SETTINGS))
    assert set(layer.parts) == {"/bin", "/etc"}
    assert layer.links == (("usr/lib", "/lib"),)
    assert Path(layer.parts["/etc"][0], "conf").read_text() == "2"
    assert (layer.env["PATH"], layer.env["A"]) == ("/x:/bin", "b=c")
    assert (layer.info["workdir"], layer.info["user"]) == ("/srv", "1000:1000")
    assert json.loads(layer.info["entrypoint"]) + json.loads(layer.info["command"]) == ["/init", "sh", "-c"]
    assert LayerCache(own.root).layer("org/tool:1.2") == layer


def damage(oci: ModuleType, kind: str, place: Path) -> Path:
    """An image in which one thing is wrong."""
    layers = layers_of(oci)
    layout = oci.Layout()
    if kind == "architecture":
        layout.add(layers, architecture="s390x")
    elif kind == "content":  # well packed, but not what the configuration says
        packed = [layout.blob(oci.packed_by("gzip", data)) for data in layers[::-1]]
        manifest = {"config": layout.blob(oci.config_of(layers)), "layers": packed}
        layout.entries.append(layout.blob(json.dumps(manifest).encode()))
    elif kind == "bomb":
        layout.add([oci.layer(("zero", b"\0" * (1 << 22)))])
    elif kind == "several":
        layout.add(layers, tag="one")
        layout.add(layers[:1], tag="two")
    else:
        layout.add(layers)
    folder: Path = layout.folder(place)
    largest = max((folder / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    packed_layers = [p for p in (folder / "blobs/sha256").iterdir() if p.read_bytes()[:2] == b"\x1f\x8b"]
    if kind == "digest":
        largest.write_bytes(largest.read_bytes()[:-1] + b"?")
    elif kind == "missing":
        packed_layers[0].unlink()
    elif kind == "json":
        (folder / "index.json").write_text("{")
    elif kind == "shape":
        (folder / "index.json").write_text('{"manifests": [{"digest": 7}]}')
    elif kind == "empty":
        (folder / "index.json").write_text('{"manifests": []}')
    elif kind == "escape":
        (folder / "index.json").write_text('{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}')
    elif kind == "nothing":
        (folder / "index.json").unlink()
    return folder


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("digest", ["damaged", "not what its digest says"]),
        ("missing", ["damaged", "missing"]),
        ("content", ["damaged", "not what the configuration says"]),
        ("json", ["index.json", "no JSON"]),
        ("shape", ["damaged"]),
        ("empty", ["is empty"]),
        ("escape", ["no sha256 digest"]),
        ("nothing", ["neither index.json nor manifest.json", "docker save"]),
        ("architecture", ["linux/s390x", "this machine is linux/", "--platform"]),
        ("bomb", ["more than 2000 bytes"]),
        ("several", ["holds 2 images", "one, two"]),
    ],
)
def test_what_cannot_come_in(oci: ModuleType, own: LayerCache, tmp_path: Path, kind: str, words: list[str]) -> None:
    """A damaged, foreign, ambiguous or exploding image is refused by name, and nothing of it is kept."""
    folder = damage(oci, kind, tmp_path / "image")
    with pytest.raises(ConfigError) as caught:
        own.import_image(folder, "tool", bounds=Bounds(1000, 100) if kind == "bomb" else None)
    assert all(word in str(caught.value) for word in words), caught.value
    assert list((own.root / "layers").iterdir()) == []
    with pytest.raises(CreateFailed, match="no layer named 'tool'"):
        own.layer("tool")


@pytest.mark.parametrize("data", [b"", b"\x1f\x8bnot gzip", b"\x28\xb5\x2f\xfdnot zstd", b"plain text" * 100])
def test_what_is_no_archive(own: LayerCache, tmp_path: Path, data: bytes) -> None:
    """A file that is no archive is refused as such, and so is a place where there is nothing."""
    path = tmp_path / "image.tar"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=r"damaged|neither"):
        own.import_image(path, "tool")
    with pytest.raises(ConfigError, match="there is no image at"):
        own.import_image(tmp_path / "gone", "tool")
    with pytest.raises(ConfigError, match="cannot be named 'python'"):
        own.import_image(path, "python")


def test_the_image_for_this_machine_is_chosen(oci: ModuleType, own: LayerCache, tmp_path: Path) -> None:
    """Of an index for several machines, this one's is taken; of several named images, the one that is asked for."""
    layout = oci.Layout()
    theirs = layout.add([oci.layer(("theirs", b""))], architecture="s390x")
    ours = layout.add([oci.layer(("ours/x", b""))])
    for entry, machine in ((theirs, "s390x"), (ours, oci.ARCHITECTURE)):
        entry["platform"] = {"os": "linux", "architecture": machine}
    inner = layout.blob(json.dumps({"manifests": [theirs, ours]}).encode())
    layout.entries = [inner]
    assert set(own.import_image(layout.folder(tmp_path / "a"), "tool").parts) == {"/ours"}
    named = oci.Layout()
    named.add([oci.layer(("one/x", b""))], tag="1")
    named.add([oci.layer(("two/x", b""))], tag="2")
    assert set(own.import_image(named.archive(tmp_path / "b"), "tool", tag="2").parts) == {"/two"}
    with pytest.raises(ConfigError, match="no image '3'"):
        own.import_image(tmp_path / "b", "tool", tag="3")


def test_names_can_be_given_anew_and_taken_away(oci: ModuleType, own: LayerCache, tmp_path: Path) -> None:
    """A name means what was imported last; one that was taken away is no layer, and the fix lists those that are."""
    for content in (b"1", b"2"):
        own.import_image(oci.docker_archive(tmp_path / "i.tar", [oci.layer(("d/f", content))]), "a/b:1")
        assert Path(own.layer("a/b:1").parts["/d"][0], "f").read_bytes() == content
    assert own.names() == ["host", "python", "scratch", "a/b:1"]
    own.forget_image("a/b:1")
    with pytest.raises(CreateFailed, match=r"no layer named 'a/b:1'\n  fix: use one of host, python, scratch"):
        own.layer("a/b:1")
