"""Process metrics: what an attempt did on its way to a pass, as signals.

Owns: `CHANGE` and `CONDUCT` (each metric by name), `Measured` (a source of the first), `conduct` (all of the second).
Invariant: a score in [0, 1] that is 1 for an attempt that did no more than it had to, from the task, the submission and
the recorded turns alone, so that a stored attempt has the same score whenever it is asked for; what a record does not
say is `Missing`. Pure.
Must not know: boxes, how turns are made, rewards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from practicum.records.task import Task
from practicum.records.trajectory import Turn
from practicum.records.tree import Change
from practicum.records.verdict import Missing, Signal, Submission, Verdict

# What costs nothing, and how much more halves the score.
_TURNS = (2, 8)  # one to act, one to submit
_FILES = (1, 4)
_LINES = (2, 40)  # one line replaced
UNKNOWN_TURNS = Missing("the attempt's turns are not known")


def _falling(amount: int, free_and_half: tuple[int, int]) -> float:
    free, half = free_and_half
    return half / (half + max(0, amount - free))


def _files(task: Task, submission: Submission) -> float:
    """Fewer files touched are better."""
    return _falling(len(submission.changes), _FILES)


def _size(task: Task, submission: Submission) -> float:
    """Fewer lines added and removed are better. A line that only moved within its file is neither."""
    return _falling(sum(_changed_lines(task, change) for change in submission.changes), _LINES)


def _changed_lines(task: Task, change: Change) -> int:
    old = task.files.get(change.path)
    before = Counter(old.data.splitlines()) if old is not None else Counter[bytes]()
    after = Counter(change.file.data.splitlines()) if change.file is not None else Counter[bytes]()
    return ((before - after) + (after - before)).total()


def _turns(task: Task, turns: Sequence[Turn]) -> float:
    """Fewer turns are better."""
    return _falling(len(turns), _TURNS)


def _commands(task: Task, turns: Sequence[Turn]) -> float | Missing:
    """The share of commands and edits that did what they were to do."""
    acts = [turn for turn in turns if turn.action.tool not in ("submit", "invalid")]
    if not acts:
        return Missing("the attempt ran no command")
    if any(turn.failed is None for turn in acts):
        return Missing("whether commands failed was not recorded")
    return sum(not turn.failed for turn in acts) / len(acts)


def _protocol(task: Task, turns: Sequence[Turn]) -> float:
    """The share of turns in which the policy said something that is an action."""
    return sum(turn.action.tool != "invalid" for turn in turns) / len(turns)


def _seconds(task: Task, turns: Sequence[Turn]) -> float | Missing:
    """What is left of the episode's time; only actions use it. Depends on the host, unlike the others."""
    if any("act" not in turn.timing for turn in turns):
        return Missing("how long actions took was not recorded")
    return max(0.0, 1.0 - sum(turn.timing["act"] for turn in turns) / task.limits.episode_s)


CHANGE: Mapping[str, Callable[[Task, Submission], float]] = {"files": _files, "size": _size}
CONDUCT: Mapping[str, Callable[[Task, Sequence[Turn]], float | Missing]] = {
    "turns": _turns,
    "commands": _commands,
    "protocol": _protocol,
    "seconds": _seconds,
}


class Measured:
    """The source of one metric of `CHANGE`: known wherever there is a submission."""

    version = ""

    def __init__(self, name: str) -> None:
        self.name = name

    async def signal(self, task: Task, submission: Submission, verdict: Verdict) -> Signal | Missing:
        """The metric of this submission."""
        return Signal(self.name, CHANGE[self.name](task, submission))


def conduct(task: Task, turns: Sequence[Turn]) -> dict[str, Signal | Missing]:
    """Every metric of `CONDUCT`. An attempt without a turn is one of which nothing was recorded."""
    if not turns:
        return dict.fromkeys(CONDUCT, UNKNOWN_TURNS)
    scores = {name: measure(task, turns) for name, measure in CONDUCT.items()}
    return {name: score if isinstance(score, Missing) else Signal(name, score) for name, score in scores.items()}
