"""The frozen files of one judgement, with sentinels.

Owns: `guard`, `Guarded`.
Invariant: where any test of a file is asked something, the box holds the rewritten file and not the original; the way
back from ids in the box to the task's own ids exists on the host only. Pure but for its lots.
Must not know: boxes, reports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from practicum.records.task import Verification
from practicum.records.tree import File, Tree
from practicum.verification.sentinels.probes import Lot, Place, Probe
from practicum.verification.sentinels.pruning import apart
from practicum.verification.sentinels.rewrite import rewrite


@dataclass(frozen=True, slots=True)
class Guarded:
    """What to lay into the box and run there.

    `run` are the ids to run, `probes` what stands for a test that is asked something (by its own id); a test without a
    probe runs under its own id. `without` says why it has none.
    """

    tests: Tree
    run: tuple[str, ...]
    module: str
    probes: Mapping[str, Probe] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def stretch(self) -> float:
        """How many times as many tests are run as the task has: at least 1."""
        tests = len(self.probes) + len(self.without)
        return max(1.0, max((len(probe.ids) for probe in self.probes.values()), default=1)) if tests else 1.0


def guard(check: Verification, nonce: str, turn: int = 0) -> Guarded:
    """The frozen files of `check` for the judgement that `nonce` and `turn` decide.

    `check.unguarded` are patterns of ids whose tests are left as they are.
    """
    expected = [*check.fail_to_pass, *check.pass_to_pass]
    lot = Lot(nonce, turn, f"checks_{Lot(nonce, turn, '').chance('module').getrandbits(40):010x}")
    called = {_called(name) for name in expected}
    without = {name: "unguarded by the task" for name in expected if _matches(name, check.unguarded)}
    probes: dict[str, Probe] = {}
    tests = dict(check.tests)
    for file in check.files:
        places = {
            name: place
            for name in expected
            if name not in without and (place := _place(check.runner, file, name)) is not None
        }
        if not places:
            continue
        try:
            text, names = check.tests[file].data.decode("utf-8"), called if apart(file, check.tests) else None
            source, found = rewrite(text, file, places, lot, check.fail_to_pass, names)
        except (SyntaxError, ValueError, RecursionError) as error:
            without |= dict.fromkeys(places, f"{file} cannot be rewritten: {type(error).__name__}")
            continue
        if found:
            tests[file] = File(source.encode(), check.tests[file].mode)
            probes |= found
    for name in expected:
        if name not in probes:
            without.setdefault(name, "no assertion in it has another answer")
    run = [one for name in expected for one in (probes[name].ids if name in probes else (name,))]
    return Guarded(tests, tuple(dict.fromkeys(run)), lot.module, probes, without)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def _called(name: str) -> str:
    """The name of the function in a test's id."""
    return re.split(r"::|\.", name.partition("[")[0])[-1]


def _place(runner: str, file: str, name: str) -> Place | None:
    """Where in `file` the test `name` stands, or None where it is of another file."""
    if runner == "pytest":
        if not name.startswith(f"{file}::"):
            return None
        inner, bracket, tail = name.removeprefix(f"{file}::").partition("[")
        path, tail = inner.split("::"), bracket + tail
    else:
        module = file.removesuffix(".py").replace("/", ".")
        if not name.startswith(f"{module}."):
            return None
        path, tail = name.removeprefix(f"{module}.").split("."), ""
    if not all(re.fullmatch(r"[^\W\d]\w*", part) for part in path):
        return None
    return Place(tuple(path), name[: len(name) - len(tail) - len(path[-1])], tail)
