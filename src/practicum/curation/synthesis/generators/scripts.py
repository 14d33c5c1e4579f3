"""Texts of the small programs around a solution: what an agent may run, and what a judge runs.

Owns: the templates. Invariant: pure text; each is whole once its fields are filled in.
Must not know: families, forms.
"""

CHECK_PLAIN = '''"""Tries {function} on the case in example/."""

import json
import pathlib

from {module} import {function}


def text(path):
    return pathlib.Path(path).read_bytes().decode()


def folder(path):
    root = pathlib.Path(path)
    return {{str(p.relative_to(root)): text(p) for p in sorted(root.rglob("*")) if p.is_file()}}


want = json.loads(text("example/expected.json"))
got = {function}({loads})
if got != want:
    print("FAIL")
    print("want", json.dumps(want))
    print("got ", repr(got))
    raise SystemExit(1)
print("ok")
'''

GENERATE = """

if __name__ == "__main__":
    import json
    import random
    import sys

    rng = random.Random(int(sys.argv[1]))
    for number in range({fresh}):
        args = make(rng)
        asked = json.dumps(args)
        print(json.dumps({{"id": f"fresh_{{number}}", "args": json.loads(asked), "expected": solve(*args)}}))
"""

CHECK_FOLDER = '''"""Tries {function} on a copy of example/before; example/after is what it should become."""

import pathlib
import shutil
import tempfile

from {module} import {function}


def tree(root):
    return {{str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}}


with tempfile.TemporaryDirectory() as place:
    work = pathlib.Path(place) / "work"
    shutil.copytree("example/before", work)
    {function}(str(work))
    got = tree(work)
want = tree(pathlib.Path("example/after"))
if got != want:
    print("FAIL")
    for name in sorted(want.keys() | got.keys()):
        if want.get(name) != got.get(name):
            print(f"{{name}}: want {{want.get(name)}}, got {{got.get(name)}}")
    raise SystemExit(1)
print("ok")
'''

FOLDER = """

def {function}(folder):
    before = {{}}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            with open(path, encoding="utf-8", newline="") as file:
                before[os.path.relpath(path, folder)] = file.read()
    after = changed(before)
    for path in before:
        if path not in after:
            os.remove(os.path.join(folder, path))
    for path, text in after.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8", newline="") as file:
            file.write(text)
"""

_TREES = '''
import os
import stat
import tempfile

MOST = 1 << 20


def lay(root, files):
    for path, text in files.items():
        target = os.path.join(root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8", newline="") as file:
            file.write(text)


def taken(root):
    """The folder's files as text; a link, a device or a huge file is no answer."""
    found = {{}}
    for base, folders, names in os.walk(root):
        for name in [*folders, *names]:
            path = os.path.join(base, name)
            about = os.lstat(path)
            if stat.S_ISDIR(about.st_mode):
                continue
            assert stat.S_ISREG(about.st_mode) and about.st_size <= MOST, name
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                found[os.path.relpath(path, root)] = file.read(MOST).decode("utf-8", "replace")
    return found


def tried(before, after):
    root = tempfile.mkdtemp()
    os.rmdir(root)
    lay(root, before)
    remote("{entry}")(root)
    got = taken(root)
    for name in sorted(after.keys() | got.keys()):
        assert got.get(name) == after.get(name), name
'''

FOLDER_CASE = _TREES + "\n\ntried({before!r}, {after!r})\n"

FOLDER_FRESH = (
    _TREES
    + """

import hashlib
import random

with open("{path}", "rb") as program:
    seed = hashlib.sha256(program.read(MOST)).hexdigest()
rng = random.Random(seed)
for number in range({fresh}):
    before = make(rng)[0]
    tried(before, solve(dict(before)))
"""
)
