"""What the gold changes, read without running it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from practicum.cli.template import template_task
from practicum.curation.similarity.facets import facets_of
from practicum.curation.similarity.fingerprint import fingerprint
from practicum.curation.similarity.gold import gold_edits
from practicum.records.task import Task
from practicum.records.tree import File

MODULE = """\
def one(a):
    return a


def two(b):
    return b - 1


class Three:
    x = 1

    def four(self):
        return 4
"""
FIXED = MODULE.replace("b - 1", "b + 1")
PATCH = "--- a/pkg/mod.py\n+++ b/pkg/mod.py\n@@ -6 +6 @@\n-    return b - 1\n+    return b + 1\n"


def task(script: str, **solution: str) -> Task:
    files = {"pkg/mod.py": File(MODULE.encode()), "pkg/old.py": File(b"x = 1\n"), "mod.txt": File(b"")}
    gold = {name.replace("__", "/").replace("_py", ".py"): File(text.encode()) for name, text in solution.items()}
    return replace(template_task("t"), files=files, solution={"solve.sh": File(script.encode(), 0o755), **gold})


@pytest.mark.parametrize(
    ("script", "solution"),
    [
        ("cp /solution/any.py /app/pkg/mod.py\n", {"any_py": FIXED}),
        ("cd /app\ncp -- '/solution/gold/pkg/mod.py' pkg/mod.py\n", {"gold__pkg__mod_py": FIXED}),
        ("cp -r /solution/files/. /app/\n", {"files__pkg__mod_py": FIXED}),
        ("cp /solution/mod.py pkg/\n", {"mod_py": FIXED}),
        ("python3 /solution/apply.py\n", {"mod_py": FIXED}),
        (f"cat > pkg/mod.py <<'END'\n{FIXED}END\n", {}),
        (f"cat <<END > /app/pkg/mod.py\n{FIXED}END\n", {}),
        ("git apply /solution/gold.patch\n", {"gold.patch": PATCH}),
    ],
)
def test_ways_to_state_a_gold(script: str, solution: dict[str, str]) -> None:
    """Copied files, whole folders, here-documents and patches are all read as the edit that they make."""
    edits = {edit.path: edit for edit in gold_edits(task(script, **solution))}
    assert edits["pkg/mod.py"].removed() == ["    return b - 1"]
    assert edits["pkg/mod.py"].added() == ["    return b + 1"]
    assert edits.keys() == {"pkg/mod.py"}


def test_removed_files_are_edits() -> None:
    """A file that the gold removes is part of what it does."""
    (edit,) = gold_edits(task("rm -- pkg/old.py\n"))
    assert (edit.path, edit.after) == ("pkg/old.py", None)


def test_a_patch_that_does_not_apply_still_says_what_it_changes() -> None:
    """Lines of a patch for another state, or one that is applied in reverse, are compared all the same."""
    for script, sign in (("git apply /solution/x.patch\n", 1), ("git apply -R /solution/x.patch\n", -1)):
        odd = task(script, **{"x.patch": PATCH.replace("b - 1", "c - 1")})
        lines = facets_of(odd).patch.split("\n")
        assert lines == ["    return c - 1", "    return b + 1"][::sign]


def test_a_gold_that_is_a_program_is_taken_as_text() -> None:
    """A script that edits in place is compared as the text that it is; no solution gives no edits."""
    (edit,) = gold_edits(task("sed -i 's/b - 1/b + 1/' pkg/mod.py\n"))
    assert edit.path == "solve.sh"
    assert gold_edits(replace(task(""), solution={})) == []


def test_code_is_the_definition_that_changes() -> None:
    """Of a changed file only the function with the change is compared, so tasks of one file do not look alike."""
    assert facets_of(task("cp /solution/mod.py pkg/mod.py\n", mod_py=FIXED)).code == "def two(b):\n    return b + 1"
    other = MODULE.replace("return 4", "return 5")
    assert (
        facets_of(task("cp /solution/mod.py pkg/mod.py\n", mod_py=other)).code.strip()
        == "def four(self):\n        return 5"
    )


def test_bytes_are_no_text() -> None:
    """A binary file neither fails nor counts."""
    odd = task("cp /solution/mod.py pkg/mod.py\n", mod_py="\0\1")
    assert facets_of(odd).code == ""


def test_a_program_is_compared_as_the_python_that_it_is() -> None:
    """What a script hands to an interpreter is known under other names and in other words of the shell."""
    program = "import pathlib\npath = pathlib.Path('pkg/mod.py')\npath.write_text(path.read_text().replace('-', '+'))\n"
    renamed = program.replace("path =", "place =").replace("path.", "place.").replace("place.Path", "pathlib.Path")
    one = task(f"cd /app\npython3 - <<'EOF'\n{program}EOF\n")
    other = task(f"set -e\npython <<END # now\n{renamed}END\n")
    single = task(f'python3 -c "{program}"\n')
    texts = [facets_of(each).code for each in (one, other, single)]
    assert len({fingerprint(text) for text in texts}) == 1
    assert [edit.path for edit in gold_edits(one)] == ["solve.sh:1.py"]
    (shell,) = gold_edits(task("sed -i s/-/+/ pkg/mod.py\n"))
    assert (shell.path, shell.after) == ("solve.sh", "sed -i s/-/+/ pkg/mod.py\n")
