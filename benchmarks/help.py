"""`practicum --help` beside a bare start of the same interpreter: medians of wall seconds, and their ratio."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 15


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    commands = {"python": [sys.executable, "-c", "pass"], "help": [sys.executable, "-m", "practicum", "--help"]}
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(RUNS):  # in turn, so that a drifting machine drifts for both
        for name, command in commands.items():
            taken[name].append(seconds(command))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    print(
        f"python {medians['python']:.3f} s, --help {medians['help']:.3f} s: {medians['help'] / medians['python']:.1f} ×"
    )


if __name__ == "__main__":
    main()
