"""The ledger: every decision on a task, by whom, when, why and on what evidence.

Owns: `Ledger`, `Standing`, `refusal`, `record`, `stages`, `record_assessments`; `ledger.jsonl` beside a task set
(`ledger_path`).
Invariant: entries are only added, each in a chain of digests. What a person, a run or a rejection has put aside comes
back into use only by a person's decision, or as other content, which starts anew.
Must not know: how decisions are come by.

What an entry is about is named by `Task.content`: whatever changes a task, gold and origin included, makes another,
about which nothing has been decided yet. An actor is `kind:name`: `gate:leaks`, `run:ID`, `reviewer:NAME`; a
`reviewer` is a person.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from practicum.curation.assessments import FILE as ASSESSMENTS
from practicum.curation.assessments import Assessments, gates_digest
from practicum.errors import StoreError, TaskError
from practicum.records.assessment import Assessment, Stage
from practicum.records.tree import digest_of
from practicum.tasks.harbor import is_task
from practicum.trajectories import chain
from practicum.trajectories.durable import failed
from practicum.verification.judge import SCHEMA
from practicum.verification.sources import source_digest

FILE = "ledger.jsonl"
EVENT = "decision"
PERSON, GATE = "reviewer", "gate"
EVIDENCE_BYTES = 4096
"""Evidence of up to this size, as JSON, is kept in the entry itself; of more, the digest alone."""

_STAGES = get_args(Stage)
_ACTOR = re.compile(r"[a-z]+:\S(?:.{0,200}\S)?")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision that is to be recorded. `digest` is `Task.content`; `evidence` is what it rests on, as JSON."""

    actor: str
    task: str
    digest: str
    stage: Stage
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded decision. `evidence` is None where only its digest was kept; `time` is UTC, ISO 8601."""

    seq: int
    time: str
    actor: str
    task: str
    digest: str
    stage: Stage
    reason: str
    evidence_digest: str
    evidence: Mapping[str, Any] | None

    @property
    def by_person(self) -> bool:
        return _kind(self.actor) == PERSON


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one content stands: by which `entry`, and whether only a person may bring it back into use (`held`)."""

    stage: Stage
    entry: Entry
    held: bool = False


def taskset_folder(taskset: Path) -> Path:
    """The folder whose hidden `.practicum/` belongs to `taskset`: of a single task, the folder around it."""
    taskset = taskset.resolve()
    return taskset.parent if is_task(taskset) else taskset


def ledger_path(taskset: Path) -> Path:
    """Where the ledger of `taskset` stands."""
    return taskset_folder(taskset) / ".practicum" / FILE


def refusal(now: Standing | None, stage: Stage, actor: str) -> str | None:
    """Why `actor` may not move what stands at `now` to `stage`; None where it may. Pure."""
    if now is None or now.stage == stage or now.stage == "candidate":
        return None
    if stage == "candidate":
        return f"it is {now.stage} ({now.entry.reason}); only a task that was changed is a candidate again"
    if _kind(actor) == PERSON or stage == "retired":
        return None
    brings_back = stage == "admitted" or now.stage == "rejected"
    if now.held and brings_back:
        return f"it was {now.stage} by {now.entry.actor} ({now.entry.reason}); only a person may bring it back"
    return None


def after(now: Standing | None, entry: Entry) -> Standing:
    """Where a content stands after `entry`. Pure."""
    if entry.stage in ("candidate", "admitted"):
        return Standing(entry.stage, entry)
    held = entry.stage != "quarantined" or _kind(entry.actor) != GATE or (now is not None and now.held)
    return Standing(entry.stage, entry, held)


class Ledger:
    """A ledger that stays open: what others write meanwhile is read before each decision is checked and recorded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self._standings: dict[str, Standing] = {}
        self._gated: dict[str, Entry] = {}
        self._chain = chain.Chain(path)
        self.refresh()

    @property
    def head(self) -> str:
        """Digest of the last entry that was read."""
        return self._chain.head

    def refresh(self) -> None:
        """Read what was added. Raises `StoreError` where the chain is broken."""
        for raw in self._chain.news():
            entry = _entry(self.path, raw)
            self.entries.append(entry)
            self._standings[entry.digest] = after(self._standings.get(entry.digest), entry)
            if _kind(entry.actor) == GATE:
                self._gated[entry.digest] = entry

    def stages(self) -> dict[str, Standing]:
        """Where each content stands."""
        return dict(self._standings)

    def standing(self, digest: str) -> Standing | None:
        """Where the content `digest` stands; None where nothing was decided on it."""
        return self._standings.get(digest)

    def gated(self, digest: str) -> Entry | None:
        """What gates decided last on the content `digest`."""
        return self._gated.get(digest)

    def record(self, decided: Sequence[Decided]) -> dict[str, str]:
        """Record decisions in their order, all at once. Those not allowed are left out: content → why.

        Raises `TaskError` for a decision that says too little, `StoreError` where the file cannot be written.
        """
        for each in decided:
            _check(each)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failed(self.path, error) from error
        refused: dict[str, str] = {}
        with self._chain.writing():
            self.refresh()
            ahead = dict[str, Standing]()
            events: list[tuple[str, Mapping[str, Any]]] = []
            for each in decided:
                now = ahead.get(each.digest, self._standings.get(each.digest))
                problem = refusal(now, each.stage, each.actor)
                if problem:
                    refused[each.digest] = problem
                    continue
                data = _data(each)
                ahead[each.digest] = after(now, _entry(self.path, {"seq": -1, "time": "", "data": data}))
                events.append((EVENT, data))
            self._chain.append(events)
            self.refresh()
        return refused


def record(
    path: Path, *, actor: str, task_id: str, digest: str, stage: Stage, reason: str, evidence: Mapping[str, Any]
) -> None:
    """Record one decision in the ledger at `path`; for many, keep a `Ledger` open.

    Raises `TaskError` where the decision is not allowed, or says too little.
    """
    refused = Ledger(path).record([Decided(actor, task_id, digest, stage, reason, evidence)])
    if refused:
        raise TaskError(
            f"task {task_id!r} cannot become {stage}: {refused[digest]}",
            fix=f"practicum tasks decide TASKSET {task_id} {stage} --by NAME --reason TEXT",
        )


def stages(path: Path) -> dict[str, Standing]:
    """Where each content (`Task.content`) stands by the ledger at `path`; nothing where there is none."""
    return Ledger(path).stages()


def record_assessments(
    path: Path, found: Sequence[Assessment], *, actor: str = "gate:all", checks: str | None = None, again: bool = False
) -> dict[str, str]:
    """Record what gates decided, and keep beside the ledger at `path` what they found.

    Where the ledger stays at another stage than the gates', task → why: what was decided before stays where the host
    kept a gate from finding out, and what a person decided where no further gate speaks against it. What gates have
    already said is not written again, unless `again`. `checks` is the head of the results kept by `gates/cache.py`.
    """
    ledger, verifier = Ledger(path), f"{SCHEMA}+{source_digest()}"
    decided: list[Decided] = []
    fresh: list[Assessment] = []
    differs: dict[str, str] = {}
    for each in found:
        now, said = ledger.standing(each.content), ledger.gated(each.content)
        before = (said.evidence if said else None) or {}
        failing = sorted(name for name, result in each.gates.items() if not result.passed)
        evidence = {"gates": gates_digest(each), "failed": failing, "verifier": verifier, "checks": checks}
        known = before.get("gates") == evidence["gates"]
        why = None
        if now is not None and now.stage != each.decision:
            if _by_the_host(each):
                why = f"it stays {now.stage}, since the host kept gates from finding out"
            elif known or (now.entry.by_person and said is not None and set(failing) <= set(before.get("failed", ()))):
                why = f"it was {now.stage} by {now.entry.actor} since ({now.entry.reason})"
            else:
                why = refusal(now, each.decision, actor)
        if why is not None:
            differs[each.task] = why
        elif not known or again:
            reason = each.reason or f"all {len(each.gates)} gates passed"
            decided.append(Decided(actor, each.task, each.content, each.decision, reason, evidence))
            fresh.append(each)
    Assessments(path.with_name(ASSESSMENTS)).keep(fresh)
    refused = ledger.record(decided) if decided else {}
    return differs | {each.task: refused[each.content] for each in fresh if each.content in refused}


def _by_the_host(assessment: Assessment) -> bool:
    """Whether nothing but faults of the host speaks against the task."""
    against = [result for result in assessment.gates.values() if not result.passed]
    faults = any(result.evidence.get("fault") for result in against)
    return faults and not any(result.assessed for result in against)


def _check(decided: Decided) -> None:
    where = f"a decision on task {decided.task!r}"
    if not _ACTOR.fullmatch(decided.actor):
        raise TaskError(f"{where}: the actor {decided.actor!r} is not of the form kind:name", fix="reviewer:kim")
    if not decided.reason.strip():
        raise TaskError(f"{where} needs a reason")
    if decided.stage not in _STAGES:
        raise TaskError(f"{where}: there is no stage {decided.stage!r}", fix=f"use one of {', '.join(_STAGES)}")
    if not _DIGEST.fullmatch(decided.digest):
        raise TaskError(f"{where}: {decided.digest!r} is no digest")


def _data(decided: Decided) -> dict[str, Any]:
    evidence = json.loads(json.dumps(dict(decided.evidence), default=str))
    data: dict[str, Any] = {
        "actor": decided.actor,
        "task": decided.task,
        "digest": decided.digest,
        "stage": decided.stage,
        "reason": decided.reason,
        "evidence_digest": digest_of(evidence),
    }
    if len(json.dumps(evidence)) <= EVIDENCE_BYTES:
        data["evidence"] = evidence
    return data


def _entry(path: Path, raw: Mapping[str, Any]) -> Entry:
    try:
        data = raw["data"]
        stage = data["stage"]
        if stage not in _STAGES:
            raise ValueError(stage)
        return Entry(
            seq=raw["seq"],
            time=raw["time"],
            actor=data["actor"],
            task=data["task"],
            digest=data["digest"],
            stage=stage,
            reason=data["reason"],
            evidence_digest=data["evidence_digest"],
            evidence=data.get("evidence"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path}: entry {raw.get('seq')} is no decision: {error!r}") from error


def _kind(actor: str) -> str:
    return actor.partition(":")[0]
