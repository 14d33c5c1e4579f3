"""One commit, tried: both sides are run, and what comes of it is a task or a reason.

Owns: `Dig`, `VERSION`.
Invariant: fail-to-pass and pass-to-pass tests were seen to be so, twice, the second time together as the judge runs
them; a test whose outcome changes in between is left out.
Must not know: how commits are walked, where tasks are written.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from practicum.curation.gates.requirements import unstated
from practicum.curation.mining.messages import cleaned
from practicum.curation.mining.prospects import Prospect, Refused, prospect_of
from practicum.curation.mining.quoting import test_source
from practicum.curation.mining.withholding import Withheld, text_of
from practicum.curation.mining.wording import instruction_of
from practicum.curation.projects.building import build_task, choose_passing
from practicum.curation.projects.programs import Programs
from practicum.curation.projects.reading import MAX_BYTES, MAX_FILE_BYTES, project_of
from practicum.curation.projects.suiterun import SuiteRun
from practicum.curation.projects.testbed import Testbed, open_testbed
from practicum.errors import TaskError
from practicum.records.recipe import Recipe
from practicum.records.task import Task
from practicum.records.tree import Change, File, Tree, matches
from practicum.records.verdict import Submission
from practicum.sandboxes.contract import SandboxProvider
from practicum.tasks.repositories import Commit, Repository
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.submission import judged_files
from practicum.verification.vetting import vet_sentinels

VERSION = "2"  # changes with whatever a task comes out differently by
SUITE_S = 120.0
_MOST_FAILING = 100
_DOMAIN = "repository-change"


@dataclass(slots=True)
class Dig:
    """Tries commits of one repository. `seconds` sums up wall time by phase over all that are tried at once."""

    repository: Repository
    provider: SandboxProvider
    programs: Programs
    name: str
    layer: str | Recipe = "python"
    allow_unlicensed: bool = False
    seed: int = 0
    suite_s: float = SUITE_S
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    async def try_out(self, commit: Commit) -> Task | Refused:
        """The task that `commit` makes, or why none. Raises `SandboxError` or `VerifierError` for the host's faults."""
        with self._phase("reading"):
            # Only git is waited for in a thread: Python 3.11 cannot parse sources in two at a time.
            trees = await asyncio.to_thread(self._trees, commit)
            prospect = trees if isinstance(trees, Refused) else self._prospect(commit, trees)
        if isinstance(prospect, Refused):
            return prospect
        async with open_testbed(self.provider, prospect.before, concurrent=1, programs=self.programs) as testbed:
            found = await self._sorted(testbed, prospect)
        if isinstance(found, Refused):
            return found
        with self._phase("judging"):
            return await self._vetted(found, prospect)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] += time.monotonic() - start

    def _trees(self, commit: Commit) -> list[tuple[Tree, Mapping[str, str]]] | Refused:
        shas = (commit.parents[0], commit.sha)
        try:
            return [self.repository.tree(sha, max_bytes=MAX_BYTES, max_file_bytes=MAX_FILE_BYTES) for sha in shas]
        except TaskError as error:
            return Refused("its project cannot be read", error.message)

    def _prospect(self, commit: Commit, trees: Sequence[tuple[Tree, Mapping[str, str]]]) -> Prospect | Refused:
        sides = []
        for sha, (tree, odd) in zip((commit.parents[0], commit.sha), trees, strict=True):
            try:
                sides.append(
                    project_of(
                        tree,
                        odd,
                        {"kind": "git", "commit": sha},
                        where=sha[:12],
                        fallback=self.name,
                        allow_unlicensed=self.allow_unlicensed,
                        layer=self.layer,
                    )
                )
            except TaskError as error:
                return Refused("its project cannot be read", error.message)
        return prospect_of(commit, *sides)

    async def _sorted(self, testbed: Testbed, prospect: Prospect) -> Task | Refused:
        """The task as far as the testbed tells."""
        gold = prospect.gold
        with self._phase("changed tests"):
            after = await testbed.run(gold, files=prospect.touched, timeout_s=self.suite_s)
            if not after.passed:
                why = next(iter(after.messages.values()), after.log[-200:])
                return Refused("the commit's own tests do not pass here", why.strip()[:300])
            before = await testbed.run(files=prospect.touched, timeout_s=self.suite_s)
        if (cut := _cut_off(before) or _cut_off(after)) is not None:
            return cut
        failing = sorted(after.passed - before.passed)
        if not failing:
            return Refused("no test tells the two sides apart")
        if len(failing) > _MOST_FAILING:  # as where a file cannot be imported: those written for the work are kept
            failing = sorted(failing, key=lambda name: (not is_fresh(name, prospect), after.seconds.get(name, 0.0)))
            failing = sorted(failing[:_MOST_FAILING])
        passing: tuple[str, ...] = ()
        with self._phase("whole suite"):
            if not before.uncollected:  # with such a file, the judge sees no test pass
                passing = await self._passing(testbed, prospect, failing, after, before)
        with self._phase("confirming"):
            confirmed = await self._confirmed(testbed, gold, tuple(failing), passing)
        if isinstance(confirmed, Refused):
            return confirmed
        kept_failing, kept_passing, messages, seconds = confirmed
        return self._task(prospect, kept_failing, kept_passing, messages, seconds)

    async def _passing(
        self, testbed: Testbed, prospect: Prospect, failing: list[str], after: SuiteRun, before: SuiteRun
    ) -> tuple[str, ...]:
        """Tests worth keeping that pass with the work; whether they did before is seen when all are run together."""
        near = after.passed & before.passed
        rest = [name for name in prospect.before.test_files if name not in prospect.touched]
        others = await testbed.run(prospect.gold, files=rest, timeout_s=self.suite_s) if rest else after
        fine = near | {name for name in others.passed if name.partition("::")[0] not in prospect.touched}
        return choose_passing(fine, failing, seconds={**others.seconds, **after.seconds}, near=near)

    async def _confirmed(
        self, testbed: Testbed, gold: Mapping[str, bytes | None], failing: tuple[str, ...], passing: tuple[str, ...]
    ) -> Refused | tuple[tuple[str, ...], tuple[str, ...], Mapping[str, str], Mapping[str, float]]:
        ids = (*failing, *passing)
        hash_seed = self.seed % 4294967295 + 1
        after = await testbed.run(gold, ids=ids, timeout_s=self.suite_s, order="reversed", hash_seed=hash_seed)
        before = await testbed.run(ids=ids, timeout_s=self.suite_s, explain=True)
        kept = tuple(name for name in failing if name in after.passed and name not in before.passed)
        steady = tuple(name for name in passing if name in after.passed and name in before.passed)
        if not kept:
            return Refused("its tests are not steady", next(iter(after.messages.values()), "")[:300])
        return kept, steady, before.messages, after.seconds

    def _task(
        self,
        prospect: Prospect,
        failing: tuple[str, ...],
        passing: tuple[str, ...],
        messages: Mapping[str, str],
        seconds: Mapping[str, float],
    ) -> Task | Refused:
        commit, before = prospect.commit, prospect.before
        withheld = Withheld.of(before.files, prospect.gold)
        title, text = cleaned(commit.subject, commit.body, withheld)
        places = tuple(sorted({*before.editable, *_new_places(prospect)}))
        instruction = instruction_of(
            title,
            text,
            failing=failing,
            messages=messages,
            tests=before.tests,
            fresh=[name for name in failing if is_fresh(name, prospect)],
            places=places,
            withheld=withheld,
        )
        try:
            task = build_task(
                before,
                id=f"{before.name}-{commit.sha[:10]}",
                files=before.files,
                gold=prospect.gold,
                fail_to_pass=failing,
                pass_to_pass=passing,
                instruction=instruction,
                seconds=seconds,
                editable=places,
                domain=_DOMAIN,
                provenance={
                    "generator": "mine",
                    "generator_version": VERSION,
                    "seed": self.seed,
                    "repository": self.name,
                    "commit": commit.sha,
                    "parent_commit": commit.parents[0],
                    "date": commit.authored,
                },
            )
        except TaskError as error:
            return Refused("no task can be made of it", error.message)
        gold = judged_files(task, _submission(prospect))
        names = sorted({each.what for each in unstated(task, gold) if each.kind in ("name", "file", "exception")})
        if names:
            listed = ", ".join(f"`{name}`" for name in names)
            task = replace(
                task, instruction=f"{task.instruction}\nNames that must be as the tests use them: {listed}.\n"
            )
        return task

    async def _vetted(self, task: Task, prospect: Prospect) -> Task | Refused:
        """The task, with those of its tests named that bear no sentinels; refused where the judge disagrees."""
        verifier = ExecutionVerifier(self.provider, drivers=self.programs.drivers)
        right = _submission(prospect)
        verdict = await verifier.verify(task, right)
        if verdict.status == "unscorable":
            verdict = await verifier.verify(task, right)
        spoilt = await vet_sentinels(self.provider, task, right, verdict, drivers=self.programs.drivers)
        if spoilt:
            unguarded = tuple(sorted({*task.verification.unguarded, *spoilt}))
            task = replace(task, verification=replace(task.verification, unguarded=unguarded))
            verdict = await verifier.verify(task, right)
        if not verdict.passed:
            wrong = [name for name, status in verdict.tests.items() if status != "passed"]
            return Refused("the judge does not pass the commit's own work", f"{verdict.reason or ', '.join(wrong[:3])}")
        return task


def is_fresh(name: str, prospect: Prospect) -> bool:
    """Whether a test was written, or changed, for the work."""
    file = name.partition("::")[0]
    earlier = prospect.earlier.get(file, File(b"")).data
    return test_source(name, prospect.before.tests) not in text_of(earlier)


def _cut_off(run: SuiteRun) -> Refused | None:
    if run.ended == "done":
        return None
    reasons = {"timeout": "its tests do not end in time", "oom": "its tests use up their memory"}
    return Refused(reasons.get(run.ended, "its tests end early"), run.hung)


def _new_places(prospect: Prospect) -> Iterator[str]:
    """Files that the gold adds where nothing is editable yet."""
    for path, data in prospect.gold.items():
        if data is not None and not matches(path, prospect.before.editable):
            yield path


def _submission(prospect: Prospect) -> Submission:
    """The gold as what an attempt would leave."""
    files, changes = prospect.before.files, []
    for path, data in sorted(prospect.gold.items()):
        if data is None:
            changes.append(Change(path, "delete"))
        elif path in files:
            changes.append(Change(path, "edit", File(data, files[path].mode)))
        else:
            changes.append(Change(path, "add", File(data)))
    return Submission(tuple(changes))
