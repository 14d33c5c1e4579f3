"""Prints what runs came to, as the tables of docs/results.md: `python benchmarks/curves.py runs/<id> …`."""

from __future__ import annotations

import sys
from pathlib import Path

from practicum.pipeline.runfolder import RunFolder


def row(path: Path) -> str:
    """One line of the table of outcomes."""
    with RunFolder.open(path) as run:
        summary = run.summary() or {}
    held_out, boxes = summary["held_out"], summary["boxes"]
    before, after, gain = held_out["before"], held_out["after"], held_out["difference"]
    return (
        f"| {summary['seed']} | {before['rate']:.0%} ({before['low']:.0%}–{before['high']:.0%}) "
        f"| {after['rate']:.0%} ({after['low']:.0%}–{after['high']:.0%}) "
        f"| {100 * gain['mean']:+.0f} ({100 * gain['low']:+.0f} to {100 * gain['high']:+.0f}) "
        f"| {summary['chosen_update']} of {summary['updates']} | {summary['episodes']:,} | {boxes['created']:,} "
        f"| {boxes['leaked']} | {summary['wall_s']:.0f} |"
    )


def curve(path: Path) -> str:
    """Success on training attempts of every four updates, and on the validation tasks, in percent."""
    with RunFolder.open(path) as run:
        rows = run.metrics()
        seed = run.config.seed
    train = [r["success"] for r in rows if r["kind"] == "update"]
    watched = [(r["update"], r["rate"]) for r in rows if r["kind"] == "evaluation" and r["split"] == "validation"]
    means = [train[i : i + 4] for i in range(0, len(train), 4)]
    return (
        f"seed {seed}\n  train, means of 4 updates: {' '.join(f'{100 * sum(m) / len(m):.0f}' for m in means)}\n"
        f"  validation: {' '.join(f'{update}:{100 * rate:.0f}' for update, rate in watched)}"
    )


def main(paths: list[str]) -> None:
    print("| seed | before | after | gain, points | version | episodes | boxes | leaked | wall s |")
    print("|--|--|--|--|--|--|--|--|--|")
    for path in paths:
        print(row(Path(path)))
    for path in paths:
        print(curve(Path(path)))


if __name__ == "__main__":
    main(sys.argv[1:])
