"""Episodes a cpu-second of practicum's trainer beside TRL's `GRPOTrainer` with its `environment_factory`.

    pip install -c constraints.txt -r requirements/trl.txt '.[train]'
    python benchmarks/trl.py [--folder DIR] [--updates 8] [--tasks 10] [--group 8] [--minibatches 4] [--rounds 2]

Both train the model of `quickstart`, from the same warm start and on the same groups in the same order: several turns,
in practicum's boxes and before practicum's judge. Group size, turns, tokens, temperature, optimiser, rates, clipping
and the number of steps are the same, and each side has one thread. What differs is how each makes and trains tokens:
`trl_sides/ours.py` runs `practicum train` as it is, records and checkpoints included; `trl_sides/theirs.py` runs
`GRPOTrainer` in float32 with key/value caches, a minibatch in one pass, no gradient checkpointing, and writes nothing.

Left as each has them: TRL divides by the standard deviation of a sample, which makes advantages 6 % smaller in groups
of eight, and trains on groups without signal too, whose advantages are 0.

Counted are cpu-seconds of the processes that generate and train, from the first batch asked for to the last step, and
apart from them those of the boxes, which are the same programs on both sides. A ratio is that of the sums over all
rounds. `--folder` keeps the warm start and what was measured, and goes on from there. Everything is printed with what
it consists of, since a ratio without its reason is worth nothing.

With `--minibatches 1` an update is one step, and TRL need not compute again the log-probabilities that it sampled by.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

_SIDES = Path(__file__).resolve().parent / "trl_sides"
Found = dict[str, Any]


def run(side: str, *arguments: object) -> None:
    """One side, in a process of its own, with one thread."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    # Not imported: beside this file `import trl` would find this file.
    subprocess.run([sys.executable, str(_SIDES / f"{side}.py"), *map(str, arguments)], env=env, check=True)


def warm_settings(given: argparse.Namespace) -> list[str]:
    """The configuration of `quickstart` in which both sides do the same work."""
    return [
        f"tasks.train={given.train}",
        "tasks.validation=1",
        "tasks.test=1",
        f"sft.demonstrations={given.demonstrations}",
        f"sft.steps={given.warm_steps}",
        "rollout.max_staleness=0",  # TRL samples from the weights that it then trains
        "curriculum.explore=1.0",  # TRL does not choose its tasks by what came of them
        "curriculum.solved_after=100000",
        "curriculum.failed_after=100000",
        "verification.canary_every=0",
        "verification.canary_tasks=0",
    ]


def settings(given: argparse.Namespace, number: int) -> list[str]:
    """What is said of the updates of one round; one warm start serves all."""
    return [
        f"seed={number}",
        f"rl.updates={given.updates}",
        f"rl.minibatches={given.minibatches}",
        f"rollout.tasks_per_update={given.tasks}",
        f"rollout.group_size={given.group}",
    ]


def measured(out: Path, side: str, before: Sequence[object], after: Sequence[object]) -> Found:
    """What `side` found, from the file of an earlier call where there is one."""
    if not out.exists():
        load = os.getloadavg()[0]
        run(side, *before, out, *after)
        out.write_text(json.dumps({**json.loads(out.read_text()), "load": [load, os.getloadavg()[0]]}))
    found: Found = json.loads(out.read_text())
    return found


def both(folder: Path, given: argparse.Namespace, number: int) -> tuple[Found, Found]:
    """A round: practicum, then TRL on the groups that practicum drew."""
    name = f"{given.updates}x{given.tasks}x{given.group}-{given.minibatches}-{number}"
    said, drawn = settings(given, number), folder / f"ours-{name}.json"
    ours = measured(drawn, "ours", ["learn", folder], said)
    theirs = measured(folder / f"theirs-{name}.json", "theirs", [folder, drawn], said)
    if tasks_of(ours) != tasks_of(theirs):
        raise RuntimeError(f"round {number}: the sides did not train on the same groups")
    return ours, theirs


def tasks_of(found: Found) -> list[list[str]]:
    return [[task for task, _ in batch] for batch in found["groups"]]


def success(found: Found) -> list[float]:
    """Share of the attempts of each update that passed."""
    return [statistics.mean(passed for _, group in batch for passed in group) for batch in found["groups"]]


def policy_seconds(found: Found) -> float:
    """Cpu-seconds of the processes that generate and train, the boxes' client included."""
    return float(sum(found.get(name, 0.0) for name in ("trainer", "worker", "client")))


def consists_of(found: Found) -> dict[str, float]:
    """Milliseconds of cpu an episode, by part; `rest` holds what no clock was on.

    The boxes' client has a thread of its own at TRL; in practicum's worker it is most of the rest.
    """
    parts = {**found["parts"], **({"boxes' client": found["client"]} if "client" in found else {})}
    parts["rest"] = policy_seconds(found) - sum(parts.values())
    parts["boxes"] = found["boxes"]
    return {name: 1000 * seconds / found["episodes"] for name, seconds in parts.items() if seconds}


def show(name: str, found: Found) -> None:
    cpu, episodes = policy_seconds(found), found["episodes"]
    print(
        f"{name:16} {episodes} episodes, {found['turns']} turns, {found['sampled']} tokens sampled; "
        f"{cpu:.1f} cpu-seconds and {found['boxes']:.1f} of boxes in {found['wall']:.0f} s of wall clock; "
        f"load {found['load'][0]:.1f} to {found['load'][1]:.1f}"
    )
    print("    success, % " + " ".join(f"{100 * each:.0f}" for each in success(found)))
    print("    groups with signal, % " + " ".join(f"{100 * each:.0f}" for each in found["signal"]))
    parts = ", ".join(f"{part} {ms:.1f}" for part, ms in consists_of(found).items())
    print(f"    ms of cpu an episode: {parts}", flush=True)


def curves(rounds: Sequence[tuple[Found, Found]]) -> None:
    """Success of each update over all rounds, side by side, and how far the sides are apart.

    A pair is what both sides came to in one group, so its task takes no part in the noise. Groups of a run share its
    weights, which the interval cannot see: it is the least that two runs of even one trainer would be apart.
    """
    ours, theirs = (
        [statistics.mean(each) for each in zip(*map(success, side), strict=True)] for side in zip(*rounds, strict=True)
    )
    for name, curve in (("practicum", ours), ("trl", theirs)):
        print(f"{name:10} success by update, %: {' '.join(f'{100 * mean:4.0f}' for mean in curve)}")
    by_round = [differences(*each) for each in rounds]
    mean, margin = interval([apart for each in by_round for apart in each])
    within = "equal within noise" if abs(mean) <= margin else "not equal within noise"
    print(
        f"difference of mean success, paired by group: {100 * mean:+.1f} points "
        f"(95 %: {100 * (mean - margin):+.1f} to {100 * (mean + margin):+.1f}; {sum(map(len, by_round))} groups; "
        f"by round {', '.join(f'{100 * statistics.mean(each):+.1f}' for each in by_round)}): {within}"
    )


def differences(ours: Found, theirs: Found) -> list[float]:
    """Practicum's success less TRL's, of each group in which both sides have attempts that could be judged."""
    pairs = zip(chain(*ours["groups"]), chain(*theirs["groups"]), strict=True)
    return [statistics.mean(a) - statistics.mean(b) for (_, a), (_, b) in pairs if a and b]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and half of its interval of 95 %."""
    return statistics.mean(values), 1.96 * statistics.stdev(values) / len(values) ** 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--updates", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=10, help="groups of an update")
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--minibatches", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--train", type=int, default=120, help="tasks to draw from")
    parser.add_argument("--demonstrations", type=int, default=640)
    parser.add_argument("--warm-steps", type=int, default=320)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="trl-"))
    if not (folder / "model").exists():
        run("ours", "warm", folder, *warm_settings(given))
    rounds = []
    for number in range(given.rounds):
        rounds.append(both(folder, given, number))
        for name, found in zip(("practicum", "trl"), rounds[-1], strict=True):
            show(f"{name}, round {number}", found)
    curves(rounds)
    rates = []
    for name, each in zip(("practicum", "trl"), zip(*rounds, strict=True), strict=True):
        episodes, cpu = sum(found["episodes"] for found in each), sum(map(policy_seconds, each))
        boxes = sum(found["boxes"] for found in each)
        rates.append((episodes / cpu, episodes / (cpu + boxes)))
        print(f"{name:10} {episodes / cpu:.2f} episodes a cpu-second, {rates[-1][1]:.2f} with the boxes' own")
    without, with_boxes = (ours / theirs for ours, theirs in zip(*rates, strict=True))
    print(f"ratio: {without:.2f}; with the boxes' own cpu on both sides: {with_boxes:.2f}")


if __name__ == "__main__":
    main()
