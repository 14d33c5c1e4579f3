"""An image's layers become one folder, as a container would see it, and never touch anything outside it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from practicum.errors import ConfigError
from practicum.sandboxes.layering.flatten import Bounds, Flattener


def flatten(root: Path, *archives: bytes, bounds: Bounds | None = None) -> Flattener:
    root.mkdir()
    flat = Flattener(root, "the image", bounds or Bounds())
    for archive in archives:
        flat.apply(io.BytesIO(archive))
    flat.finish()
    return flat


def shown(root: Path) -> dict[str, str]:
    """Path → content, target or nothing, of all that is there."""
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        found[name] = f"-> {path.readlink()}" if path.is_symlink() else "/" if path.is_dir() else path.read_text()
    return found


def test_later_layers_win(oci: ModuleType, tmp_path: Path) -> None:
    """Files are replaced, folders merged, and a file may take a folder's place and the other way round."""
    lower = oci.layer(("a", None), ("a/x", b"1"), ("b", b"1"), ("c", None), ("c/y", b"1"), ("./d/e/f", b"deep"))
    upper = oci.layer(("a/x", b"2"), ("a/z", b"2"), ("b", None), ("b/in", b"2"), ("c", b"2"))
    flatten(tmp_path / "r", lower, upper)
    assert shown(tmp_path / "r") == {
        "a": "/",
        "a/x": "2",
        "a/z": "2",
        "b": "/",
        "b/in": "2",
        "c": "2",
        "d": "/",
        "d/e": "/",
        "d/e/f": "deep",
    }
    assert (tmp_path / "r" / "a" / "x").stat().st_mtime == 1_600_000_000


@pytest.mark.parametrize("first", [True, False])
def test_whiteouts_hide_what_is_below_only(oci: ModuleType, tmp_path: Path, first: bool) -> None:
    """A whiteout and an opaque folder remove what lower layers had, wherever they stand among the layer's entries."""
    lower = oci.layer(("a/x", b"1"), ("a/y", b"1"), ("a/sub/q", b"1"), ("b/deep/z", b"1"), ("c", b"1"), ("keep", b"1"))
    hides: list[tuple[str, bytes | None]] = [
        ("a/.wh..wh..opq", b""),
        (".wh.b", b""),
        (".wh.c", b""),
        (".wh..wh.plnk", b""),
    ]
    adds: list[tuple[str, bytes | None]] = [("a/y", b"2"), ("a/sub", None), ("c", b"2")]
    flatten(tmp_path / "r", lower, oci.layer(*(hides + adds if first else adds + hides)))
    assert shown(tmp_path / "r") == {"a": "/", "a/y": "2", "a/sub": "/", "c": "2", "keep": "1"}


def test_links_are_kept_and_never_followed_outwards(oci: ModuleType, tmp_path: Path) -> None:
    """Links lead where they say inside the image, whatever they say; nothing is written through one to the host."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("host")
    lower = oci.layer(
        ("lib", (tarfile.SYMTYPE, "usr/lib")),
        ("usr/lib", None),
        ("abs", (tarfile.SYMTYPE, str(outside))),
        ("up", (tarfile.SYMTYPE, "../../../../../../.." + str(outside))),
        ("f", (tarfile.SYMTYPE, str(outside / "f"))),
    )
    upper = oci.layer(("lib/so", b"1"), ("abs/f", b"evil"), ("up/f", b"evil"), ("f", b"plain"))
    flatten(tmp_path / "r", lower, upper)
    assert (outside / "f").read_text() == "host"
    root = tmp_path / "r"
    assert (root / "usr/lib/so").read_text() == "1"
    assert (root / "f").read_text() == "plain"
    assert (root / "lib").is_symlink()
    assert (root / str(outside).lstrip("/") / "f").read_text() == "evil"  # the place that the image itself means


def test_hard_links(oci: ModuleType, tmp_path: Path) -> None:
    """A hard link names a file of the image; replacing one name later leaves the other as it was."""
    lower = oci.layer(("a", b"1"), ("b", (tarfile.LNKTYPE, "a")), ("d/c", (tarfile.LNKTYPE, "./b")))
    flatten(tmp_path / "r", lower, oci.layer(("a", b"2")))
    assert shown(tmp_path / "r") == {"a": "2", "b": "1", "d": "/", "d/c": "1"}


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([("../x", b"")], ["'../x'", "leaves the image"]),
        ([("a/../../x", b"")], ["leaves the image"]),
        ([("x", (tarfile.LNKTYPE, "../../etc/passwd"))], ["hard link", "leaves the image"]),
        ([("x", (tarfile.LNKTYPE, "/etc/passwd"))], ["'x'", "not there"]),
        ([("l", (tarfile.SYMTYPE, "/etc")), ("x", (tarfile.LNKTYPE, "l/passwd"))], ["not there"]),
        ([("d", None), ("x", (tarfile.LNKTYPE, "d"))], ["hard link to the folder"]),
        ([("a", (tarfile.SYMTYPE, "b")), ("b", (tarfile.SYMTYPE, "a")), ("a/x", b"")], ["circle"]),
        ([("f", b""), ("f/x", b"")], ["through a file"]),
        ([(".wh...", b"")], ["hides what is no name"]),
    ],
)
def test_hostile_archives_are_refused(
    oci: ModuleType, tmp_path: Path, entries: list[tuple[str, object]], words: list[str]
) -> None:
    """A name or link that leads out of the image, or nowhere, ends the import and names itself."""
    before = Path("/etc/passwd").stat().st_nlink
    with pytest.raises(ConfigError) as caught:
        flatten(tmp_path / "r", oci.layer(*entries))
    assert all(word in str(caught.value) for word in words), caught.value
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert Path("/etc/passwd").stat().st_nlink == before


def test_devices_and_pipes_are_left_out(oci: ModuleType, tmp_path: Path) -> None:
    """No device, pipe or forged whiteout is made; what was left out is said."""
    flat = flatten(
        tmp_path / "r",
        oci.layer(
            ("dev/null", (tarfile.CHRTYPE, "")), ("p", (tarfile.FIFOTYPE, "")), ("b", (tarfile.BLKTYPE, "")), ("f", b"")
        ),
    )
    assert flat.left_out == ["/dev/null", "/p", "/b"]
    assert shown(tmp_path / "r") == {"dev": "/", "f": ""}


def test_bounds(oci: ModuleType, tmp_path: Path) -> None:
    """Bytes and entries are bounded, and so are headers that would fill the memory."""
    with pytest.raises(ConfigError, match="more than 10 bytes"):
        flatten(tmp_path / "a", oci.layer(("x", b"12345"), ("y", b"123456")), bounds=Bounds(10, 100))
    assert not (tmp_path / "a" / "y").exists()
    with pytest.raises(ConfigError, match="more than 3 entries"):
        flatten(tmp_path / "b", oci.layer(*((f"f{i}", b"") for i in range(4))), bounds=Bounds(10, 3))
    header = tarfile.TarInfo("long")
    header.type, header.size = tarfile.XHDTYPE, 1 << 26
    with pytest.raises(ConfigError, match="more than any image needs"):
        flatten(tmp_path / "c", header.tobuf() + b"\0" * 4096)


@pytest.mark.parametrize("cut", [100, 700, 1300])
def test_a_cut_archive_is_damaged(oci: ModuleType, tmp_path: Path, cut: int) -> None:
    """An archive that ends early is refused as damaged."""
    with pytest.raises(ConfigError, match="damaged"):
        flatten(tmp_path / "r", oci.layer(("x", b"1" * 600), ("y", b"2" * 600))[:cut])


def test_modes_are_plain(oci: ModuleType, tmp_path: Path) -> None:
    """Everything can be read by everybody, setuid is gone, and executables stay so."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, mode in (("secret", 0o600), ("su", 0o4711), ("run", 0o700)):
            info = tarfile.TarInfo(name)
            info.mode = mode
            tar.addfile(info, io.BytesIO())
    flatten(tmp_path / "r", out.getvalue())
    assert {p.name: p.stat().st_mode & 0o7777 for p in (tmp_path / "r").iterdir()} == {
        "secret": 0o644,
        "su": 0o755,
        "run": 0o755,
    }
