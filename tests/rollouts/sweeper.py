"""A small run that is killed at every step of its journal, and resumed by another process; the sweep's test starts it.

Environment: CACHE (of layers), WORK (a folder for what is left by each). Two steps a record of the journal: the process
is killed before it is written (of every other record, when half of it is), and as soon as it is; the last step comes
before the journal is compacted. Processes are forked, a few at a time. Prints JSON lines: pid, step and exit status of
each process, and how many steps one took that lived.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from practicum.policies.scripted import ScriptedPolicy
from practicum.policies.text import ByteRenderer
from practicum.records.task import Limits, PlainCheck, Task, Verification
from practicum.records.trajectory import Trajectory
from practicum.records.tree import File
from practicum.rollouts.attempt import AttemptSpec, Rolled, judge_rolled, roll_out
from practicum.rollouts.harness import Harness
from practicum.rollouts.journalling import recalled
from practicum.rollouts.session import Budgets
from practicum.sandboxes.layers import LayerCache
from practicum.sandboxes.provider import open_provider
from practicum.sandboxes.snapshots import DirectorySnapshots
from practicum.trajectories.journal import Journal
from practicum.verification.judge import ExecutionVerifier
from practicum.verification.sources import source_digest

AT_ONCE = 3
DEADLINE_S = 400
CASES = b'{"id": "two", "args": [1, 1], "expected": 2}\n'
TASK = Task(
    id="calc",
    instruction="add(a, b) in calc.py must return the sum of its arguments.",
    files={"calc.py": File(b"def add(a, b):\n    return a - b\n")},
    verification=Verification(
        runner="plain",
        tests={"cases.jsonl": File(CASES)},
        fail_to_pass=("two",),
        plain=PlainCheck(entry="calc:add", cases="cases.jsonl"),
    ),
    editable=("*.py", "*.txt"),
    limits=Limits(command_s=30.0, episode_s=80.0),
)
TURNS = (
    "<bash>echo first >> log.txt; cat log.txt</bash>",
    "<edit>calc.py:2<old>-<new>+</edit>",  # there is no such text once it was made
    "<bash>echo {session} >> log.txt; cat log.txt; sed -i 's/$/ # seen/' calc.py; cat calc.py</bash>",
)
SPECS = [AttemptSpec(TASK, f"group-{group}", index, seed=10 * group + index) for group in (0, 1) for index in (0, 1)]


class Mortal(Journal):
    """Ends its process at step `stop_at`."""

    stop_at: ClassVar[int] = 0
    step: ClassVar[int] = 0

    def _append(self, unit: str, kind: str, data: Any) -> None:
        Mortal.step += 2
        if Mortal.step == Mortal.stop_at:
            if Mortal.step % 4 == 0:
                before = self.path.stat().st_size
                super()._append(unit, kind, data)
                os.truncate(self.path, before + (self.path.stat().st_size - before) // 2)
            end()
        super()._append(unit, kind, data)
        if Mortal.step + 1 == Mortal.stop_at:
            end()

    async def compact(self) -> int:
        Mortal.step += 2
        if Mortal.step == Mortal.stop_at:
            end()
        return await super().compact()


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def say(**facts: object) -> None:
    os.write(1, json.dumps(facts).encode() + b"\n")


async def collect(folder: Path) -> None:
    """Make all attempts that were not reported, and report each: a file by its name, which must not be there yet."""
    policy = ScriptedPolicy(ByteRenderer(), lambda session, turn: TURNS[turn].format(session=session))
    cache, snapshots = LayerCache(Path(os.environ["CACHE"])), DirectorySnapshots(folder / "snapshots")
    harness = Harness(Budgets(3, 1000, 100_000))
    with Mortal.open(folder / "journal") as journal:
        flights = journal.in_flight()
        async with (
            asyncio.timeout(DEADLINE_S - 10),
            open_provider(limits_by="cgroup-or-rlimit", cache=cache, snapshots=snapshots) as provider,
        ):
            judge = ExecutionVerifier(provider)

            async def attempt(spec: AttemptSpec) -> None:
                if not (report := folder / spec.id.replace("/", "-")).exists():
                    left = recalled(flights[spec.id], spec) if spec.id in flights else spec
                    if isinstance(left, AttemptSpec):
                        left = await roll_out(
                            left,
                            provider=provider,
                            policy=policy,
                            renderer=ByteRenderer(),
                            harness=harness,
                            journal=journal,
                        )
                    trajectory = await judge_rolled(left, judge, journal) if isinstance(left, Rolled) else left
                    write(report, trajectory)
                journal.handed([spec.id])

            async with asyncio.TaskGroup() as group:
                for spec in SPECS:
                    group.create_task(attempt(spec))
        await journal.compact()
        assert journal.path.stat().st_size == 0


def write(report: Path, trajectory: Trajectory) -> None:
    new = report.with_suffix(".new")
    new.write_text(json.dumps(essence(trajectory)))
    os.link(new, report)  # fails where it was reported before
    new.unlink()


def essence(trajectory: Trajectory) -> Mapping[str, Any]:
    """What must not depend on a kill: all but seconds and costs."""
    found = dataclasses.asdict(trajectory)
    for turn in found["turns"]:
        del turn["timing"]
    found["restarts"] = trajectory.cost.get("restarts", 0)
    del found["cost"], found["verdict"]["evidence"]
    found["submission"] = trajectory.submission.digest if trajectory.submission else None
    return found


def fork(number: int, *, stop_at: int) -> int:
    """A process that works on folder `number`, and dies at step `stop_at` where that is not 0."""
    folder = Path(os.environ["WORK"], f"{number:04d}")
    folder.mkdir(exist_ok=True)
    pid = os.fork()
    if pid == 0:
        signal.alarm(DEADLINE_S)  # a hang is a death by another signal
        Mortal.stop_at = stop_at
        asyncio.run(collect(folder))
        say(number=number, steps=Mortal.step)
        os._exit(0)
    return pid


def main() -> None:
    LayerCache(Path(os.environ["CACHE"])).layer("python")
    source_digest()  # named in verdicts; once, so that a source which is being worked on is no difference
    os.waitpid(fork(0, stop_at=0), 0)  # the unbroken run
    # Of an unbroken run: begun, two a turn, ended, judged, handed; and the end.
    last = 2 * (len(SPECS) * (4 + 2 * len(TURNS)) + 1)
    todo = [(number, number) for number in range(last, 1, -1)]
    living: dict[int, tuple[int, int]] = {}
    while todo or living:
        while todo and len(living) < AT_ONCE:
            number, stop_at = todo.pop()
            living[fork(number, stop_at=stop_at)] = (number, stop_at)
        pid, status = os.wait()
        number, stop_at = living.pop(pid)
        say(pid=pid, number=number, stop_at=stop_at, status=os.waitstatus_to_exitcode(status))
        if stop_at:
            todo.append((number, 0))


if __name__ == "__main__":
    main()
