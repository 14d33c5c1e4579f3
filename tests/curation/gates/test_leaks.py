"""Answers hidden in every way an author, or an accident, could leave them are found; what is honest is not."""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import io
import lzma
import py_compile
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.gates.leaks.kept import Kept, kept_of, nothing_hidden
from practicum.curation.gates.leaks.readings import MOST, readings
from practicum.curation.gates.overlap import plain, windows
from practicum.records.recipe import Env, Recipe, Run, Step
from practicum.records.task import Limits, Task, Verification
from practicum.records.tree import Change, File
from practicum.records.verdict import Submission

if TYPE_CHECKING:
    from curation.gates.conftest import Assess

START = b'''"""Small statistics."""


def mean(values):
    return sum(values) / (len(values) + 1)


def largest(values):
    return max(values)
'''
GOLD = b'''"""Small statistics."""


def mean(values):
    total = 0.0
    count = 0
    for each in values:
        total += each
        count += 1
    if count == 0:
        raise ValueError("the mean of nothing is not defined here")
    return total / count


def largest(values):
    return max(values)
'''
FROZEN = b"""import pytest

from stats import largest, mean


@pytest.mark.parametrize(("values", "expected"), [([1, 3], 2), ([5], 5), ([-1, 0, 3, 5], 1.75)])
def test_mean(values, expected):
    assert mean(values) == expected


def test_mean_of_nothing():
    with pytest.raises(ValueError):
        mean([])


def test_largest():
    assert largest([2, 9, 4]) == 9
"""
SHOWN = b"from stats import mean\n\n\ndef test_mean_of_two():\n    assert mean([2, 6]) == 4\n"
HELPERS = b'"""Helpers."""\n\n\ndef double(x):\n    return x * 2\n'
RENAMED = GOLD.replace(b"total", b"t").replace(b"count", b"c").replace(b"mean(values)", b"avg(v)")
RENAMED = RENAMED.replace(b"in values", b"in v").replace(b"each", b"e")
CASES = ("test_mean[values0-2]", "test_mean[values1-5]", "test_mean[values2-1.75]", "test_mean_of_nothing")


def make(*, shown: bytes = SHOWN, **planted: bytes) -> Task:
    """`mean` divides by one too many. `planted` are files by name, `__` for a dot and `_S_` for a slash."""
    files = {name.replace("_S_", "/").replace("__", "."): File(data) for name, data in planted.items()}
    return Task(
        id="stats",
        instruction="`mean` in stats.py must return the mean, and raise ValueError for an empty list.",
        files={"stats.py": File(START), "helpers.py": File(HELPERS), "test_shown.py": File(shown)} | files,
        verification=Verification(
            runner="pytest",
            tests={"test_frozen.py": File(FROZEN), "test_shown.py": File(shown)},
            files=("test_frozen.py",),
            visible=("test_shown.py",),
            fail_to_pass=tuple(f"test_frozen.py::{name}" for name in CASES),
            pass_to_pass=("test_frozen.py::test_largest",),
        ),
        editable=("stats.py",),
        limits=Limits(command_s=10.0),
        solution={"solve.sh": File(b"cp /solution/stats.py stats.py\n", 0o755), "stats.py": File(GOLD)},
    )


def kept(task: Task) -> Kept:
    return kept_of(task, Submission((Change("stats.py", "edit", File(GOLD)),)))


def marked(data: bytes, mark: bytes) -> bytes:
    return b"".join(mark + line + b"\n" for line in data.split(b"\n"))


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.txt", data)
    return out.getvalue()


def tarred(data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("b.txt")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda data: data,
    "comments": lambda data: HELPERS + marked(data, b"# "),
    "comments of C": lambda data: marked(data, b"// "),
    "a quotation": lambda data: b"See:\n" + marked(data, b"> "),
    "a patch": lambda data: marked(data, b"+"),
    "a docstring": lambda data: b"def f():\n    '''Like this:\n" + marked(data, b"    ") + b"    '''\n",
    "base64": base64.b64encode,
    "base64 in lines": base64.encodebytes,
    "base64 in a string": lambda data: b'X = """' + base64.b64encode(data) + b'"""\n',
    "hex": lambda data: data.hex().encode(),
    "escapes": lambda data: "".join(f"\\x{byte:02x}" for byte in data).encode(),
    "zlib": zlib.compress,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
    "tar": tarred,
    "zlib in base64": lambda data: base64.b64encode(zlib.compress(data)),
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "UTF-16, no mark": lambda data: data.decode().encode("utf-16-be"),
    "a large file": lambda data: b"x " * (2 << 20) + data + b"y " * (1 << 20),
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_every_way_of_writing_it_is_read(way: str) -> None:
    """The gold and the frozen tests are found in a file in whatever way they are written there."""
    secrets = kept(make())
    gold, tests = (secrets.told("notes", WAYS[way](data)) for data in (GOLD, FROZEN))
    assert gold is not None
    assert gold["what"] == "the gold"
    assert tests is not None
    assert tests["what"] == "the frozen tests"
    assert secrets.told("notes", WAYS[way](HELPERS + START + SHOWN)) is None


def test_a_renamed_gold_is_found() -> None:
    """Other names make no other code, in a file, in comments or in prose; another function is no such code."""
    secrets = kept(make())
    for text in (RENAMED, marked(RENAMED, b"# "), b"Try this:\n\n" + marked(RENAMED, b"    ") + b"\nor that."):
        found = secrets.told("helpers2.py", text)
        assert found is not None
        assert "avg" in found["how"]
    other = RENAMED.replace(b"t += e", b"t -= e")
    assert secrets.told("helpers2.py", other) is None


def test_the_file_under_repair_is_read_too() -> None:
    """Its code may be what it is; in its comments and strings neither gold nor tests may stand."""
    for aside in (marked(GOLD, b"# "), b"NOTE = '''\n" + GOLD.replace(b'"""', b"") + b"'''\n", marked(RENAMED, b"# ")):
        task = make(stats__py=START + b"\n\n" + aside)
        found = kept(task).told_by_own("stats.py", task.files["stats.py"].data)
        assert found is not None
        assert found["what"] == "the gold"
    hidden = b"KEY = '" + base64.b64encode(GOLD) + b"'\n"
    assert kept(make(stats__py=START + hidden)).told_by_own("stats.py", START + hidden) is not None
    with_tests = START + marked(FROZEN, b"# ")
    found = kept(make(stats__py=with_tests)).told_by_own("stats.py", with_tests)
    assert found is not None
    assert found["what"] == "the frozen tests"
    assert kept(make()).told_by_own("stats.py", START + b"# divides the sum of values by their number\n") is None


def test_a_gold_in_pieces_is_found() -> None:
    """Two halves in two files are the whole; one half and something else are not."""
    lines = GOLD.splitlines(keepends=True)
    halves = [b"".join(lines[:8]), b"".join(lines[8:13])]
    secrets = kept(make())
    assert [secrets.told(name, half) for name, half in zip("ab", halves, strict=True)] == [None, None]
    found = secrets.in_pieces()
    assert found is not None
    assert found["where"] == "a and b"
    secrets = kept(make())
    assert [secrets.told(name, half) for name, half in zip("ab", (halves[0], HELPERS), strict=True)] == [None, None]
    assert secrets.in_pieces() is None


def test_bytecode_is_judged_by_its_names(tmp_path: Path) -> None:
    """Bytecode of the gold is found under any name; that of a file which lies beside it is not held against it."""
    for data, name in ((GOLD, "gold"), (HELPERS, "helpers")):
        (tmp_path / f"{name}.py").write_bytes(data)
        py_compile.compile(str(tmp_path / f"{name}.py"), cfile=str(tmp_path / f"{name}.pyc"), doraise=True)
    task, place = make(), "__pycache__/helpers.cpython-312.pyc"
    names = kept(task).names
    assert names.found_in(place, (tmp_path / "gold.pyc").read_bytes(), task.files) is not None
    assert names.found_in(place, (tmp_path / "helpers.pyc").read_bytes(), task.files) is None


def test_tests_that_are_shown_are_not_hidden() -> None:
    """A visible file that is the frozen one, or has all that decides, leaves nothing hidden; a part does."""
    assert nothing_hidden(make()) is None
    assert nothing_hidden(make(shown=FROZEN)) == "test_shown.py, which is shown, is the same as test_frozen.py"
    more = FROZEN + b"\n\ndef test_more():\n    assert mean([1]) == 1\n"
    assert nothing_hidden(make(shown=more)) == "all tests of fail_to_pass stand in tests that are shown"
    assert nothing_hidden(make(shown=FROZEN.replace(b"1.75", b"1.5"))) is None


def test_what_is_packed_is_bounded() -> None:
    """Of a small file that unpacks to a large one a bounded part is read, and that there is more is told."""
    read = list(readings(gzip.compress(bytes(MOST + 1))))
    assert read[-1] == ("packed", None)
    assert sum(len(data) for _, data in read[1:] if data is not None) <= MOST


@given(
    st.binary(max_size=2000),
    st.sampled_from([b"\x1f\x8b", b"x\x9c", b"BZh", b"\xfd7zXZ\0", b"PK\3\4", b"\xff\xfe", b""]),
)
def test_anything_can_be_read(data: bytes, head: bytes) -> None:
    """Whatever the bytes are, reading them ends, and starts with the bytes themselves."""
    assert next(iter(list(readings(head + data)))) == ("", head + data)


@given(st.lists(st.text("abc =()", max_size=12), max_size=20), st.sampled_from(["# ", "+", "> ", "//", " * "]))
def test_marks_do_not_count(lines: list[str], mark: str) -> None:
    """A text has the runs of tokens that it has when commented out."""
    text = "\n".join(lines)
    assert windows("\n".join(f"{mark}{line}" for line in lines)) == windows(text)
    assert plain(plain(text)) == plain(text)


def git_object(kind: str, body: bytes) -> tuple[str, bytes]:
    whole = b"%s %d\0" % (kind.encode(), len(body)) + body
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    return f".git/objects/{name[:2]}/{name[2:]}", zlib.compress(whole)


COMMIT = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\n"
TAG = b"object 4b825dc642cb6eb9a060e54bf8d69288fbee4904\ntype tree\ntag v1\ntagger a <a@b> 1 +0000\n\n"


def test_the_gate_looks_everywhere(assess: Assess) -> None:
    """Commits, tags, the instruction, visible tests, what a recipe says and what it adds: each rejects the task."""
    clean = make()
    write = f"echo {base64.b64encode(GOLD).decode()} | base64 -d > /opt/notes.txt"
    recipes: dict[str, tuple[Step, ...]] = {
        "/opt/notes.txt": (Run(("/bin/sh", "-c", write)),),
        "ENV HINT": (Env((("HINT", "first count == 0 is looked at, then total += each"),)),),
    }
    wrong = {
        "an object of git": make(**dict([git_object("commit", COMMIT + GOLD)])),
        "git tag": make(**dict([git_object("tag", TAG + marked(GOLD, b"    "))])),
        "instruction.md": replace(clean, instruction=f"{clean.instruction}\n\n```\n{GOLD.decode()}```\n"),
        "test_shown.py": make(shown=SHOWN + marked(GOLD, b"# ")),
        **{name: replace(clean, layer=Recipe("python", steps)) for name, steps in recipes.items()},
    }
    tasks = [replace(task, id=f"t{at}") for at, task in enumerate(wrong.values())]
    for name, found in zip(wrong, assess(*tasks, gates=["leaks"]), strict=True):
        leaks = found.gates["leaks"]
        assert (leaks.passed, leaks.assessed, found.decision) == (False, True, "rejected"), name
        assert name.removeprefix("git tag") in leaks.reason
    honest = replace(clean, layer=Recipe("python", (Run(("/bin/sh", "-c", "echo hello > /opt/notes.txt")),)))
    shown = replace(make(shown=FROZEN), id="shown")
    found_of = {found.task: found for found in assess(clean, replace(honest, id="built"), shown, gates=["leaks"])}
    fine, built, told = (found_of[name] for name in ("stats", "built", "shown"))
    assert fine.gates["leaks"].passed, fine.gates["leaks"].reason
    assert built.gates["leaks"].passed, built.gates["leaks"].reason
    assert built.gates["leaks"].evidence["added_by_the_recipe"] == 1
    assert (told.gates["leaks"].passed, told.decision) == (False, "quarantined")
