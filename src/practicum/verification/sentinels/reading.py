"""What the variants reported, read against what they asked.

Owns: `read_answers`, `Answers`, `Bits`, `repeated`.
Invariant: a test has passed when each of its variants ran to its end, and each question held under its author's
alternative, every time it was asked. Two alternatives that hold for one question at the same point of the test are a
contradiction, and so is a test that ended as passed without its assertions. Pure.
Must not know: how tests are run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from practicum.records.verdict import TestStatus
from practicum.verification.sentinels.guard import Guarded
from practicum.verification.sentinels.probes import Asked, Probe

UNREACHED, RAISED = -1, -2  # in the place of the number of times
MANY = 2  # wrong answers that hold: more than an accident
OFFERED = 0.4  # of the failed questions: so often does only a guesser give an answer that was on offer
Point = tuple[str, int, int]  # test, number of the assertion in it, how many times it had been asked before


@dataclass(frozen=True, slots=True)
class Bits:
    """One assertion in one run: for the first times it was asked, `held` has a 1 where it held, a 0 where it failed and
    an x where another exception came out of it; then how often it held, of how many times."""

    held: str
    passed: int
    total: int
    why: str = ""


@dataclass(slots=True)
class Answers:
    """What came of the tests, by the task's own ids.

    `contradictions` say what spoke for each. `held` are the points at which one alternative held alone, with its text;
    `wrong` those of them at which it was not the author's. `strong` are the points whose alternatives nobody can tell,
    `many` those where nobody hits one by accident. `choices` are what could be picked from, by test.
    """

    statuses: dict[str, TestStatus] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    contradictions: dict[Point, str] = field(default_factory=dict)
    held: dict[Point, str] = field(default_factory=dict)
    wrong: set[Point] = field(default_factory=set)
    strong: set[Point] = field(default_factory=set)
    many: set[Point] = field(default_factory=set)
    choices: dict[str, Mapping[tuple[str, ...], int]] = field(default_factory=dict)

    @property
    def suspicious(self) -> bool:
        """Whether another judgement has to tell: a contradiction, or wrong answers of which many were on offer."""
        failed = [point for point in self.many if point not in self.held or point in self.wrong]
        hits = len(self.many & self.wrong)
        return bool(self.contradictions) or (hits >= MANY and hits >= OFFERED * len(failed))


def read_answers(
    guarded: Guarded, statuses: Mapping[str, TestStatus], bits: Mapping[str, Mapping[str, Bits]]
) -> Answers:
    """Answers from the statuses of ids in the box and, by id and tag, what their assertions reported."""
    answers = Answers({name: statuses[name] for name in guarded.without if name in statuses})
    for name, probe in guarded.probes.items():
        reported = [statuses.get(one) for one in probe.ids]
        if not any(reported):
            continue
        answers.choices[name] = probe.choices
        ended = all(status == "passed" for status in reported)
        reasons = []
        for number, asked in enumerate(probe.asked):
            told = [bits.get(one, {}).get(tag) for one, tag in zip(probe.ids, asked.tags, strict=True)]
            why = _why(asked, told)
            if why is not None:
                reasons.append(f"line {asked.line}: {why}")
            for at, holding in enumerate(_holding(told)):
                _note(answers, (name, number, at), asked, holding)
        if not ended:
            reasons.append("did not run to its end")
        _note_impossible(answers, name, probe, statuses, bits)
        answers.statuses[name] = "failed" if reasons else "passed"
        if reasons:
            answers.details[name] = reasons[0]
    return answers


def _why(asked: Asked, told: Sequence[Bits | None]) -> str | None:
    """Why the assertion as its author wrote it did not hold; None where it did, or was rightly passed by."""
    for option, bit in zip(asked.options, told, strict=True):
        if option == 0 and bit is None and asked.sure:
            return "it was not reached"
        if option == 0 and bit is not None and bit.passed != bit.total:
            return bit.why or "it did not hold"
    return None


def _holding(told: Sequence[Bits | None]) -> Iterator[list[int]]:
    """For each time that the assertion was asked, the variants in which it held."""
    for at in range(max((len(bit.held) for bit in told if bit is not None), default=0)):
        yield [variant for variant, bit in enumerate(told) if bit is not None and bit.held[at : at + 1] == "1"]


def _note(answers: Answers, point: Point, asked: Asked, holding: list[int]) -> None:
    if asked.strong:
        answers.strong.add(point)
    if asked.many:
        answers.many.add(point)
    options = {asked.options[variant] for variant in holding}
    texts = sorted({asked.texts[variant] for variant in holding})
    if len(options) > 1:
        answers.contradictions[point] = f"line {asked.line}: all of these held: " + " | ".join(texts)[:300]
    elif options:
        answers.held[point] = texts[0]
        if options != {0}:
            answers.wrong.add(point)


def _note_impossible(
    answers: Answers,
    name: str,
    probe: Probe,
    statuses: Mapping[str, TestStatus],
    bits: Mapping[str, Mapping[str, Bits]],
) -> None:
    """A test that ended as passed has come by its assertions, and no exception has come out of one."""
    for number, asked in enumerate(probe.asked):
        for one, tag in zip(probe.ids, asked.tags, strict=True):
            bit = bits.get(one, {}).get(tag)
            if statuses.get(one) != "passed":
                continue
            if bit is None and asked.sure:
                what, at = "without coming by it", UNREACHED
            elif bit is not None and "x" in bit.held:
                what, at = f"though it raised {bit.why}", RAISED
            else:
                continue
            answers.contradictions[name, number, at] = f"line {asked.line}: the test ended as passed {what}"
            answers.strong.add((name, number, at))


def repeated(first: Answers, second: Answers) -> dict[Point, str]:
    """What two judgements together prove, with its evidence.

    Contradictions that came again at the same point; or, at several points, one alternative that held the first time
    and another the second.
    """
    again = {point: why for point, why in first.contradictions.items() if point in second.contradictions}
    changed = {
        point: f"held first: {first.held[point]}; then: {second.held[point]}"[:400]
        for point in first.many & first.held.keys() & second.held.keys()
        if first.held[point] != second.held[point] and (point in first.wrong or point in second.wrong)
    }
    return again | (changed if len(changed) >= MANY else {})
