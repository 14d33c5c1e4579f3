"""Learning from rows or pairs that are there already: which of them a step takes, and the steps.

Owns: `Unit`, `Lesson`, `take_steps`, pairs and rows of stored attempts as units.
Invariant: what step n takes depends on the seed, n and the lesson alone, so that steps after an interruption are those
of an unbroken run; every unit is taken once before any is taken again.
Must not know: losses, where attempts come from.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from practicum.records.sample import Sample, samples_from
from practicum.records.trajectory import Trajectory
from practicum.training.losses import Loss
from practicum.training.trainer import Metrics, Trainer, mean_of

Unit = tuple[Sample, ...]
"""What a step takes or leaves as a whole: one row, or a chosen and a rejected one."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """`size` units; `draw` gives one by its place, varied by the generator where it may be."""

    size: int
    draw: Callable[[int, random.Random], Unit]

    @classmethod
    def of(cls, units: Sequence[Unit]) -> Lesson:
        """`units` as they are."""
        return cls(len(units), lambda place, _: units[place])


def places(size: int, step: int, *, batch_size: int, seed: int) -> list[int]:
    """The places of the units that `step` (from 0) takes, epoch after epoch in an order of its own."""
    found: list[int] = []
    position = step * batch_size
    while len(found) < batch_size:
        epoch, within = divmod(position + len(found), size)
        order = list(range(size))
        random.Random(f"lesson-{seed}-{epoch}").shuffle(order)
        found += order[within : within + batch_size - len(found)]
    return found


def take_steps(
    trainer: Trainer,
    lesson: Lesson,
    loss: Loss,
    *,
    steps: Iterable[int],
    batch_size: int,
    lr: Callable[[int], float],
    seed: int,
    temperature: float = 1.0,
) -> Metrics:
    """Optimiser steps number `steps` of `lesson` at the rates `lr`; the mean of what they report.

    `temperature` is the one that the rows were sampled at.
    """
    reports = []
    for step in steps:
        rng = random.Random(f"step-{seed}-{step}")
        taken = [lesson.draw(place, rng) for place in places(lesson.size, step, batch_size=batch_size, seed=seed)]
        samples = [sample for unit in taken for sample in unit]
        reports.append(trainer.step(samples, loss, lr=lr(step), temperature=temperature))
    return mean_of(reports)


def row_of(trajectory: Trajectory) -> Sample | None:
    """What was sampled in `trajectory` as one row, each sampled token of weight 1.

    None where it is not one: a turn whose prompt does not extend the last begins another.
    """
    rows = samples_from(trajectory, 1.0)
    return rows[0] if len(rows) == 1 else None


def pair_of(chosen: Trajectory, rejected: Trajectory) -> Unit | None:
    """The two as a unit; None where either is not one row."""
    better, worse = row_of(chosen), row_of(rejected)
    return None if better is None or worse is None else (better, worse)
