"""A recipe is named by what it makes; a lock names exact versions by hash and nothing else."""

from __future__ import annotations

import pytest

from practicum.errors import TaskError
from practicum.records.recipe import Copy, Env, Recipe, Requirements, Run, User, Workdir, read_lock
from practicum.records.tree import File

HASH = "sha256:" + "a" * 64
STEPS = (Workdir("/srv"), Copy({"a": File(b"1")}, "/srv"), Run(("make",), (("X", "1"),)), User("agent"))
RECIPE = Recipe("python", STEPS)


@pytest.mark.parametrize(
    "other",
    [
        Recipe("host", STEPS),
        Recipe("python", STEPS[::-1]),
        Recipe("python", (Workdir("/srw"), *STEPS[1:])),
        Recipe("python", (STEPS[0], Copy({"a": File(b"2")}, "/srv"), *STEPS[2:])),
        Recipe("python", (STEPS[0], Copy({"a": File(b"1", 0o755)}, "/srv"), *STEPS[2:])),
        Recipe("python", (STEPS[0], Copy({"a": File(b"1")}, "/srv", alone=True), *STEPS[2:])),
        Recipe("python", (*STEPS[:2], Run(("make",), (("X", "2"),)), STEPS[3])),
        Recipe("python", (*STEPS[:3], Env((("A", "1"),)))),
        Recipe("python", (*STEPS, Requirements(read_lock(f"a==1 --hash={HASH}", "lock")))),
    ],
    ids=range(9),
)
def test_whatever_makes_the_layer_changes_the_digest(other: Recipe) -> None:
    """Base, order, content, modes and variables are each part of a recipe's name."""
    assert other != RECIPE
    assert other.digest != RECIPE.digest


def test_what_does_not_make_the_layer_does_not() -> None:
    """The text a recipe was read from, and where in it a step stood, leave its name alone."""
    moved = (
        STEPS[0],
        Copy({"a": File(b"1")}, "/srv", where="line 9"),
        Run(("make",), (("X", "1"),), "line 8"),
        STEPS[3],
    )
    same = Recipe("python", moved, source="FROM python", context={"a": File(b"1")})
    assert (same, hash(same), same.digest) == (RECIPE, hash(RECIPE), RECIPE.digest)


def test_a_lock_is_read_as_pip_reads_it() -> None:
    """Comments, continued lines, extras, markers and several hashes are understood."""
    text = f"""
# made by hand
Ruamel_Yaml[jinja]==0.18.1 ; python_version < "3.14" \\
    --hash={HASH} \\
    --hash=sha256:{"b" * 64}  # via nobody
idna==3.20 --hash={HASH}
"""
    first, second = read_lock(text, "lock")
    assert (first.name, first.version, first.marker) == ("ruamel-yaml", "0.18.1", 'python_version < "3.14"')
    assert len(first.hashes) == 2
    assert (second.name, second.version, second.marker) == ("idna", "3.20", "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("idna==3.20", ["line 2", "idna==3.20", "no hash", "--generate-hashes"]),
        (f"idna>=3 --hash={HASH}", ["line 2", "idna>=3", "exact version"]),
        (f"idna --hash={HASH}", ["exact version"]),
        (f"https://example.org/idna.whl --hash={HASH}", ["https://example.org/idna.whl", "exact version"]),
        ("-e .", ["the option `-e .`"]),
        ("--index-url https://example.org", ["--index-url"]),
        ("-r other.txt", ["-r other.txt"]),
        ("idna==3.20 --hash=md5:abc", ["md5:abc", "is not a hash"]),
        ("# nothing", ["names no requirement"]),
    ],
)
def test_what_a_lock_must_not_hold(line: str, words: list[str]) -> None:
    """A requirement without hash or exact version, an option and an address are refused by line and name."""
    with pytest.raises(TaskError) as caught:
        read_lock(f"# lock\n{line}\n", "lock")
    assert all(word in str(caught.value) for word in words), caught.value
