"""What a submission is asked in one box, and what that box is made of.

Owns: `Trial`, `Trials`, `tests_s`, `box_spec`, `warm_driver`.
Invariant: whatever could tell the right answers stays out of the box. Must not know: how a box is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from practicum.records.task import MIB, Task, Verification
from practicum.records.tree import Tree
from practicum.sandboxes.contract import BoxSpec
from practicum.verification.cases import Case
from practicum.verification.runners.drivers import JUDGE
from practicum.verification.runners.harbor import LOGS
from practicum.verification.runners.report import PYTEST_INI, PYTHON, PYTHON_WITH_SITE, TESTS, judge_spec
from practicum.verification.runners.scripts import scripts_mount
from practicum.verification.runners.suites import suite_s
from practicum.verification.runners.variants import variants_s
from practicum.verification.sentinels.guard import Guarded, guard

_WARM_BYTES = 256 * MIB  # a warm process takes some 40 MiB of what the box may have


@dataclass(frozen=True, slots=True)
class Trial:
    """Frozen and fresh cases of a plain task; the files of a suite, with sentinels."""

    frozen: Sequence[Case] = ()
    fresh: Sequence[Case] = ()
    guarded: Guarded | None = None


class Trials:
    """Makes trials, and keeps the files of the last `most`: rewriting tests takes longer than running many of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[tuple[object, ...], tuple[Tree, Guarded]] = {}

    def of(self, task: Task, cases: tuple[Sequence[Case], Sequence[Case]], nonce: str, turn: int) -> Trial:
        """The trial with these cases, or with the lots that `nonce` and `turn` decide."""
        check = task.verification
        return Trial(*cases, self._guarded(check, nonce, turn) if check.runner in ("pytest", "unittest") else None)

    def _guarded(self, check: Verification, nonce: str, turn: int) -> Guarded:
        if not self._most:
            return guard(check, nonce, turn)
        # By identity of the files, which are kept beside it: comparing them would take as long as it saves.
        asked = (check.runner, check.files, check.fail_to_pass, check.pass_to_pass, check.unguarded)
        key = (id(check.tests), asked, nonce, turn)
        if key not in self._kept:
            if len(self._kept) == self._most:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = check.tests, guard(check, nonce, turn)
        return self._kept[key][1]


def tests_s(task: Task, trial: Trial) -> float:
    """How long the tests may take, in seconds."""
    if task.verification.runner == "variants":
        return variants_s(task)
    return task.verification.timeout_s if trial.guarded is None else suite_s(task, trial.guarded)


def warm_driver(task: Task) -> tuple[str, ...]:
    """The argv of a process of which the task's driver can be a copy; none where there is no gain in it."""
    check = task.verification
    if check.runner == "harbor" or task.limits.memory_bytes < _WARM_BYTES:
        return ()
    if check.runner in ("pytest", "unittest", "variants"):
        framework = "unittest" if check.runner == "unittest" else "pytest"
        folder = task.workspace if check.runner == "variants" else TESTS
        return (*PYTHON_WITH_SITE, f"{JUDGE}/warm.pyc", "suites", "--", framework, PYTEST_INI, folder)
    if check.runner == "command" and not any(name.endswith(".py") for name in check.files):
        return ()
    return (*PYTHON, f"{JUDGE}/warm.pyc", "plain" if check.runner == "plain" else "scripts", "--")


def box_spec(task: Task, files: Tree, drivers: Mapping[str, Tree], trial: Trial) -> BoxSpec:
    """A box with `files` to judge and no more of the frozen ones than its runner needs on disk."""
    check = task.verification
    readonly = dict(drivers)
    if trial.guarded is not None:
        readonly[TESTS] = trial.guarded.tests
    elif check.runner == "harbor" or (check.runner == "command" and scripts_mount(task)):
        readonly[TESTS] = check.tests
    spec = judge_spec(task, files, readonly)
    return replace(spec, scratch=(LOGS,)) if check.runner == "harbor" else spec
