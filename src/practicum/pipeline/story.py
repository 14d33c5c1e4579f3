"""Attempts told to a person: which ones are worth telling, and what happened in them turn by turn.

Owns: `Story`, `TurnStory`, `pick_stories`, `tell`.
Invariant: a story holds what the record says and nothing that was computed again; only long text is cut, and the
cut says how much is missing.
Must not know: how the story is laid out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from practicum.records.task import Task
from practicum.records.trajectory import Trajectory, Turn
from practicum.records.tree import unified_diff
from practicum.trajectories.store import TrajectoryStore

LONGEST = 6000  # characters of one observation or diff
PHASES = ("test", "validation", "rl")  # the policy's own attempts, best first; demonstrations are not its own


@dataclass(frozen=True, slots=True)
class TurnStory:
    """One turn. `text` is what the policy said, `arguments` what was understood of it."""

    number: int
    tool: str
    arguments: tuple[tuple[str, str], ...]
    text: str
    observation: str
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Story:
    """One attempt. `diff` has no context lines of files where the task is not at hand (`partial_diff`)."""

    title: str
    trajectory: Trajectory
    phase: str
    update: int
    instruction: str
    turns: tuple[TurnStory, ...]
    diff: str
    partial_diff: bool
    tests: tuple[tuple[str, str], ...]
    reason: str
    facts: tuple[tuple[str, str], ...]


def pick_stories(store: TrajectoryStore, tasks: Mapping[str, Task]) -> list[Story]:
    """One success and one failure, from the latest policy and the most telling split that have them."""
    ranked = sorted(
        (batch for batch in store.batches() if batch.phase.startswith(PHASES)),
        key=lambda b: (next(i for i, name in enumerate(PHASES) if b.phase.startswith(name)), -b.update, -b.index),
    )
    found: dict[bool, Story] = {}
    for batch in ranked:
        records = [t for t in store.load(batch) if t.fault is None and t.verdict and t.verdict.status == "valid"]
        for passed, title in ((True, "A success"), (False, "A failure")):
            wanted = [record for record in records if record.passed == passed and record.turns]
            if wanted and passed not in found:
                best = max(wanted, key=lambda t: min(len(t.turns), 3))  # more than one turn tells more
                found[passed] = tell(best, title, batch.phase, batch.update, tasks.get(best.task_id))
        if len(found) == 2:
            break
    return [found[passed] for passed in (True, False) if passed in found]


def tell(trajectory: Trajectory, title: str, phase: str, update: int, task: Task | None) -> Story:
    """The story of one attempt. Without `task`, changes are shown as whole files."""
    verdict, submission = trajectory.verdict, trajectory.submission
    facts = [("task", trajectory.task_id), ("task digest", trajectory.task_digest)]
    if task is not None:
        facts.append(("frozen tests", task.verification.digest))
        facts.append(("layer", str(task.layer)))
    if submission is not None:
        facts.append(("submission", submission.digest))
    if verdict is not None:
        facts.append(("verifier", verdict.verifier_version or "not recorded"))
        facts += [(key, str(value)) for key, value in verdict.evidence.items() if isinstance(value, (str, int, float))]
        facts += [(f"signal: {s.name}", f"{s.score:.3f}, weight {s.weight:g}") for s in verdict.signals]
        facts += [(f"finding: {f.kind}", f"{f.path}: {f.evidence}") for f in verdict.findings]
    facts += [("policy version", str(trajectory.policy_version)), ("seed", str(trajectory.seed)), ("id", trajectory.id)]
    return Story(
        title=title,
        trajectory=trajectory,
        phase=phase,
        update=update,
        instruction=cut(task.instruction) if task else "",
        turns=tuple(_turn(number, turn) for number, turn in enumerate(trajectory.turns, 1)),
        diff=cut(unified_diff(task.files if task else {}, submission.changes)) if submission else "",
        partial_diff=task is None,
        tests=tuple(sorted(verdict.tests.items())) if verdict else (),
        reason=_reason(trajectory),
        facts=tuple((name, cut(value, 400)) for name, value in facts),
    )


def cut(text: str, longest: int = LONGEST) -> str:
    """`text`, its middle left out where it is longer than `longest`."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def _turn(number: int, turn: Turn) -> TurnStory:
    return TurnStory(
        number=number,
        tool=turn.action.tool,
        arguments=tuple((name, cut(value)) for name, value in turn.action.arguments.items()),
        text=cut(turn.text),
        observation=cut(turn.observation),
        tokens=len(turn.sampled_ids),
        seconds=sum(turn.timing.values()),
    )


def _reason(trajectory: Trajectory) -> str:
    """Why the reward is what it is, in a sentence."""
    verdict = trajectory.verdict
    if verdict is None or verdict.outcome is None:
        return (verdict.reason if verdict else None) or "not judged"
    passed = sum(status == "passed" for status in verdict.tests.values())
    said = {
        "passed": f"all {len(verdict.tests)} frozen tests pass",
        "partial": f"{passed} of {len(verdict.tests)} frozen tests pass",
        "failed": f"{passed} of {len(verdict.tests)} frozen tests pass, which solves nothing or breaks what worked",
        "build_failed": "the build failed",
        "tampered": "acceptance files were tampered with",
    }[verdict.outcome]
    return said + (f" ({verdict.reason})" if verdict.reason else "")
