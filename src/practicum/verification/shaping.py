"""Auxiliary signals around a verifier: gathered after the verdict, and only where a task asks for them.

Owns: `SIGNALS`, `Source`, `completed`, `ShapingVerifier`, `with_signals`.
Invariant: a signal is asked for once the outcome stands and cannot change it; what a source cannot say is missing from
the verdict, is named there with the reason, and changes no number. A name that can never be a signal is refused.
Must not know: where a source gets its opinion.

A verifier sees a submission and no turns, and a verdict may be reused among equal submissions. So what depends on how
an attempt came to its submission is missing from the verifier's verdict, and `completed` fills it in for one attempt.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from practicum.records.task import Task
from practicum.records.verdict import Missing, Signal, Submission, Verdict
from practicum.sandboxes.contract import SandboxProvider
from practicum.verification.contract import Verifier
from practicum.verification.fusion import shaped
from practicum.verification.process import CHANGE, CONDUCT, UNKNOWN_TURNS, Measured
from practicum.verification.statics import STYLE, TYPES, Security, Tool

JUDGE = "judge"  # the signal of a model judge
SIGNALS = ("security", "style", "types", *CHANGE, *CONDUCT, JUDGE)
MISSING = "signals_missing"  # in a verdict's evidence: names, with reasons
_UNSOURCED = {**dict.fromkeys(CONDUCT, UNKNOWN_TURNS), JUDGE: Missing("no model judge is configured")}
_NO_SOURCE = Missing("nothing here gives it")


class Source(Protocol):
    """Gives one signal, under its own name, or says why it has none. It does not raise for a candidate."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Names what stands outside practicum and gives the signal, such as a model; "" for none."""
        ...

    async def signal(self, task: Task, submission: Submission, verdict: Verdict) -> Signal | Missing: ...


def completed(task: Task, verdict: Verdict, known: Mapping[str, Signal | Missing]) -> Verdict:
    """`verdict` with those of `known` that its task names and it does not have, and with the reward they give. Pure.

    Only a pass is shaped. Completing twice, in any order, is completing once with both.
    """
    have = {signal.name for signal in verdict.signals}
    wanted = {name: known[name] for name in task.verification.reward.signals if name in known and name not in have}
    if not verdict.passed or not wanted:
        return verdict
    signals = [said for said in wanted.values() if isinstance(said, Signal)]
    missing = {name: reason for name, reason in verdict.evidence.get(MISSING, {}).items() if name not in wanted}
    missing |= {name: said.reason for name, said in wanted.items() if isinstance(said, Missing)}
    evidence = {name: value for name, value in verdict.evidence.items() if name != MISSING}
    return replace(shaped(task, verdict, signals), evidence=evidence | ({MISSING: missing} if missing else {}))


class ShapingVerifier:
    """A `Verifier` before another, with the sources that tasks may name in `[practicum.reward] signals`."""

    def __init__(self, inner: Verifier, sources: Sequence[Source]) -> None:
        self._inner = inner
        self._sources: Mapping[str, Source] = {source.name: source for source in sources}
        if len(self._sources) != len(sources):
            raise ValueError("two sources have one name")

    @property
    def version(self) -> str:
        """The inner verifier's, and what from outside stands beside it."""
        others = [source.version for _, source in sorted(self._sources.items()) if source.version]
        return "+".join([self._inner.version, *others])

    async def verify(self, task: Task, submission: Submission) -> Verdict:
        """The inner verdict; for a pass with the signals that its task names, and the reward they give."""
        names = task.verification.reward.signals
        if (problem := self._problem(names)) is not None:
            return Verdict("invalid", None, None, reason=problem, verifier_version=self.version)
        verdict = replace(await self._inner.verify(task, submission), verifier_version=self.version)
        if not verdict.passed:
            return verdict
        said: dict[str, Signal | Missing] = {}
        for name in names:
            source = self._sources.get(name)
            if source is None:
                said[name] = _UNSOURCED.get(name, _NO_SOURCE)
            else:
                said[name] = await source.signal(task, submission, verdict)
        return completed(task, verdict, said)

    def _problem(self, names: Sequence[str]) -> str | None:
        """Which name can never be a signal, or None."""
        known = sorted({*SIGNALS, *self._sources})
        for name in names:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                said = f"did you mean {close[0]!r}?" if close else f"use some of {', '.join(known)}"
                return f"there is no signal {name!r}: {said}"
        return None


def with_signals(provider: SandboxProvider, verifier: Verifier, *others: Source) -> ShapingVerifier:
    """`verifier` with the signals that need nothing but boxes and the submission, and `others`."""
    tools = (Tool(provider, "style", STYLE), Tool(provider, "types", TYPES))
    return ShapingVerifier(verifier, (Security(), *tools, *map(Measured, CHANGE), *others))
