"""Stacked folders read as the kernel would show them, and no link leads the host astray."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from practicum.errors import CreateFailed
from practicum.sandboxes.layering import stack
from practicum.sandboxes.layering.content import drop_unchanged, result_digest, settle


def lay(folder: Path, content: dict[str, object]) -> str:
    """Bytes make a file, text a link, None a folder, False a whiteout, True an opaque folder."""
    for name, value in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, bytes):
            path.write_bytes(value)
        elif isinstance(value, str):
            path.symlink_to(value)
        elif value is False:
            os.mknod(path, stat.S_IFCHR | 0o000, 0)
        else:
            path.mkdir(exist_ok=True)
            if value is True:
                stack.make_opaque(path)
    return str(folder)


@pytest.fixture
def three(tmp_path: Path) -> tuple[str, str, str]:
    """A stack, topmost first."""
    return (
        lay(tmp_path / "2", {"a/x": b"2", "gone": False, "open": True, "open/new": b"2", "was/folder": False}),
        lay(tmp_path / "1", {"a/y": b"1", "gone/z": b"1", "open/old": b"1", "was/folder/q": b"1", "link": "/etc"}),
        lay(tmp_path / "0", {"a/x": b"0", "a/z": b"0", "gone/w": b"0", "link/passwd": b"0", "file/x": b"0"}),
    )


def test_the_topmost_counts(three: tuple[str, str, str]) -> None:
    """A file is that of the topmost folder that has it; whiteouts and opaque folders end the search."""

    def content(path: str) -> bytes | None:
        found = stack.at(three, path)
        return Path(found[0]).read_bytes() if found else None

    assert [content(path) for path in ("a/x", "a/y", "a/z", "open/new")] == [b"2", b"1", b"0", b"2"]
    assert [content(path) for path in ("gone/z", "open/old", "was/folder/q", "nothing", "a/x/y")] == [None] * 5
    assert len(stack.at(three, "a")) == 3
    assert stack.at(three, "open") == (f"{three[0]}/open",)


def test_links_are_answers(three: tuple[str, str, str]) -> None:
    """A link is found as a link and hides what is below; nothing is looked up through it."""
    (link,) = stack.at(three, "link")
    assert Path(link).is_symlink()
    assert stack.at(three, "link/passwd") == ()


def test_merging_shows_the_same(three: tuple[str, str, str], tmp_path: Path) -> None:
    """A merged copy holds exactly what the stack shows."""
    target = tmp_path / "merged"
    target.mkdir()
    stack.merge(three, target)
    found = {path.relative_to(target).as_posix() for path in target.rglob("*")}
    assert found == {"a", "a/x", "a/y", "a/z", "open", "open/new", "was", "link", "file", "file/x"}
    assert (target / "a/x").read_bytes() == b"2"
    assert os.readlink(target / "link") == "/etc"  # noqa: PTH115


def test_links_of_a_layer_are_resolved_inside_it(tmp_path: Path) -> None:
    """Links at the top, within parts, relative and absolute ones lead to places of the layer; circles end."""
    usr = lay(tmp_path / "usr", {"lib/x": b"", "here": "lib/../lib", "abs": "/etc/there", "a": "b", "b": "a"})
    etc = lay(tmp_path / "etc", {"there/f": b""})
    parts, links = {"/usr": (usr,), "/etc": (etc,)}, {"/lib": "usr/lib", "/up": "../../usr/here"}
    for path, expected in {
        "/lib/x": "/usr/lib/x",
        "/up/x": "/usr/lib/x",
        "/usr/abs/f": "/etc/there/f",
        "/usr/new/deep": "/usr/new/deep",
        "/other": "/other",
        "/": "/",
    }.items():
        assert stack.resolve(parts, links, path) == expected
    with pytest.raises(CreateFailed, match="in a circle"):
        stack.resolve(parts, links, "/usr/a/x")


CONTENT: dict[str, object] = {"d/f": b"1", "l": "d", "h": False, "o": True}


@pytest.mark.parametrize(
    "other",
    [
        CONTENT | {"d/f": b"2"},
        CONTENT | {"l": "e"},
        CONTENT | {"o": None},
        CONTENT | {"h": b""},
        CONTENT | {"more": None},
        {name: value for name, value in CONTENT.items() if name != "h"},
    ],
    ids=range(6),
)
def test_results_are_told_apart(tmp_path: Path, other: dict[str, object]) -> None:
    """Content, targets, hidden and opaque places, and what is there at all, are each part of a result's digest."""
    same = [lay(tmp_path / name, CONTENT) for name in ("1", "2")]
    os.utime(tmp_path / "2" / "d" / "f", (1, 1))
    assert result_digest({"/x": same[0]}) == result_digest({"/x": same[1]})
    assert result_digest({"/x": same[0]}) != result_digest({"/x": lay(tmp_path / "3", other)})
    assert result_digest({"/x": same[0]}) != result_digest({"/y": same[0]})
    (tmp_path / "2" / "d" / "f").chmod(0o755)
    assert result_digest({"/x": same[0]}) != result_digest({"/x": same[1]})


def test_settling(tmp_path: Path) -> None:
    """Closed folders are opened, modes are plain, times fixed, links not followed; pipes go and are named."""
    outside = tmp_path / "outside"
    outside.write_text("")
    before = outside.stat()
    folder = Path(lay(tmp_path / "u", {"d/secret": b"", "l": str(outside), "h": False}))
    (folder / "d" / "secret").chmod(0o4711)
    os.mkfifo(folder / "d" / "pipe")
    (folder / "d").chmod(0o000)
    assert settle(str(folder)) == ["d/pipe"]
    assert (folder / "d").stat().st_mode & 0o7777 == 0o755
    assert (folder / "d" / "secret").stat().st_mode & 0o7777 == 0o755
    assert {int(path.lstat().st_mtime) for path in (folder, *folder.rglob("*"))} == {315532800}
    assert (outside.stat().st_mode, outside.stat().st_mtime) == (before.st_mode, before.st_mtime)


def test_only_differences_remain(tmp_path: Path) -> None:
    """What an upper folder repeats of those below is taken away; changes, new and hidden things stay."""
    below = (lay(tmp_path / "below", {"a/same": b"1", "a/old": b"1", "l": "x", "gone": b"1", "dir/f": b"1"}),)
    upper = lay(
        tmp_path / "upper",
        {"a/same": b"1", "a/old": b"2", "l": "x", "gone": False, "never": False, "dir/deep": None, "new": None},
    )
    assert not drop_unchanged(upper, below)
    found = {path.relative_to(upper).as_posix() for path in Path(upper).rglob("*")}
    assert found == {"a", "a/old", "gone", "dir", "dir/deep", "new"}
    assert drop_unchanged(lay(tmp_path / "again", {"a/same": b"1", "dir": None}), below)
