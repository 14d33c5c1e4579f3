"""What a way of making tasks from a project is, and what it is given to work with.

Owns: `Ground`, `Candidate`, `Trial`, `Refusal`, `Settings`, `Bench`, `Strategy`.
Invariant: proposing is pure and seeded; a candidate names all that is needed to propose it again.
Must not know: any strategy, how candidates are scheduled, the command line.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from practicum.curation.projects.project import Project
from practicum.curation.projects.suiterun import SuiteRun
from practicum.curation.projects.testbed import Testbed
from practicum.curation.synthesis.baseline import Baseline
from practicum.records.task import Task
from practicum.records.tree import digest_of

Changes = Mapping[str, bytes | None]
"""New content by path of the project; None removes the file."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A project and what its own tests were seen to do."""

    project: Project
    baseline: Baseline


@dataclass(frozen=True, slots=True)
class Candidate:
    """One piece of work that might become a task.

    `changes` turn the project into what the agent starts from; the project's own files at these paths are the gold.
    `reach` are the lines (1-based, of the project as it is) by path whose tests are worth running, `around` those whose
    tests must go on passing (where not given, `reach`). `provenance` is JSON-able and holds what the strategy needs to
    make the same again; `extra` is for the strategy's own use.
    """

    strategy: str
    kind: str
    changes: Changes
    reach: Mapping[str, frozenset[int]]
    provenance: Mapping[str, Any]
    around: Mapping[str, frozenset[int]] = field(default_factory=dict)
    extra: Any = None

    @property
    def key(self) -> str:
        """Digest of strategy and provenance: names the candidate within its project."""
        return digest_of([self.strategy, self.kind, dict(self.provenance)])


@dataclass(frozen=True, slots=True)
class Trial:
    """What the tests did on changed files. Ids are sorted.

    `failing` passed before and fail now; `passing` passed before, and either pass now or come nowhere near the change;
    `messages` say how the failing ones failed, for the few that were asked.
    """

    failing: tuple[str, ...]
    passing: tuple[str, ...]
    messages: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a candidate became no task. `reason` is one of few short phrases, so that refusals can be counted.

    `killed`: tests had told the change before it was refused.
    """

    reason: str
    detail: str = ""
    killed: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked of all tasks of a run. Seconds of test time as measured on the untouched project."""

    seed: int = 0
    visible: int = 0  # how many fail-to-pass tests the agent may see
    most_failing: float = 0.6  # share of the suite that may fail at most
    # A task is judged dozens of times before it trains, and each test several times in each; so not all are kept.
    fail_to_pass_s: float = 1.0  # time the frozen fail-to-pass tests may take, and
    pass_to_pass_s: float = 1.0  # the frozen pass-to-pass tests
    most_fail_to_pass: int = 20
    most_pass_to_pass: int = 20


class Bench(Protocol):
    """What a strategy tries its candidates with. All calls may be made at once from several candidates."""

    @property
    def ground(self) -> Ground: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def testbed(self) -> Testbed: ...

    async def run(
        self,
        changes: Changes,
        ids: Sequence[str],
        *,
        phase: str = "mutants",
        tests: Changes | None = None,
        explain: bool = False,
    ) -> SuiteRun:
        """Run tests on changed files, with a deadline that follows from their measured times.

        The seconds are counted under `phase`; `tests` are changes to the tests themselves; with `explain`, messages
        tell the values that were compared.
        """
        ...

    async def trial(
        self,
        changes: Changes,
        reach: Mapping[str, frozenset[int]],
        around: Mapping[str, frozenset[int]] | None = None,
    ) -> Trial | Refusal:
        """Try `changes`: the tests that reach `reach`, fastest first; once one fails, all that run a line `around`.

        Without `around`, it stops at the first sign of a failure.
        """
        ...

    async def repair(
        self,
        candidate: Candidate,
        instruction: Callable[[Trial, Sequence[str]], str | Refusal],
        *,
        domain: str,
        must: Sequence[str] = (),
    ) -> Task | Refusal:
        """The task to undo `candidate.changes`, its tests being those that the trial saw fail.

        `instruction` is given the trial and the names of the visible test files. Tests of `must` are among those that
        fail, and are kept.
        """
        ...


class Strategy(Protocol):
    """One way of making tasks. `version` changes whenever a candidate would come out differently."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def candidates(self, ground: Ground, rng: random.Random) -> Iterable[Candidate]:
        """Candidates in the order in which they are to be tried; drawn one by one. Pure; may be slow."""
        ...

    async def realise(self, bench: Bench, candidate: Candidate) -> Task | Refusal:
        """Make the candidate a task, or say why it cannot be one.

        Most are `return await bench.repair(candidate, lambda trial, visible: instruction, domain=...)`.
        """
        ...
