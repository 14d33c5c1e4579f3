"""Runner `harbor`: the task's own tests/test.sh, which leaves a reward under /logs/verifier.

Owns: `run_harbor`, `read_reward`. Invariant: the folder of the reward is made empty for this run, and only what is
there when the script has ended counts. The script and the submission share the box, so what the task's author
trusts is trusted here too. Must not know: outcomes.
"""

from __future__ import annotations

import json
import math
import sys

from practicum.errors import BoxPathError
from practicum.records.task import Task
from practicum.records.verdict import TestStatus
from practicum.sandboxes.contract import Sandbox
from practicum.verification.runners.report import TESTS, Report, ended, text_tail

LOGS = "/logs"
REWARD = "reward"
_MAX_BYTES = 1 << 16
_SCRIPT = 'if command -v bash >/dev/null; then exec bash "$0"; else exec sh "$0"; fi'


async def run_harbor(box: Sandbox, task: Task) -> Report:
    """Run tests/test.sh and read its reward.

    A reward that is missing, malformed or not finite may be the task's fault or the submission's: `undecided`.
    """
    await box.run(["mkdir", "-p", f"{LOGS}/verifier"], timeout_s=10.0)
    result = await box.run(["/bin/sh", "-c", _SCRIPT, f"{TESTS}/test.sh"], timeout_s=task.verification.timeout_s)
    evidence = {"script": ended(result) | {"stdout": text_tail(result.stdout)}}
    if result.timed_out:
        return Report({REWARD: "failed"}, {REWARD: "tests/test.sh did not end in time"}, evidence=evidence, score=0.0)
    for name in ("reward.json", "reward.txt"):
        try:
            data = await box.read(f"{LOGS}/verifier/{name}", max_bytes=_MAX_BYTES)
        except BoxPathError:
            continue
        try:
            score, parts = read_reward(data)
        except ValueError as error:
            return Report(evidence=evidence, undecided=f"{name}: {error}")
        evidence["reward"] = {name: parts}
        status: TestStatus = "passed" if score >= 1 else "failed"
        return Report({REWARD: status}, evidence=evidence, score=score)
    return Report(evidence=evidence, undecided="tests/test.sh left no reward.json and no reward.txt")


def read_reward(data: bytes) -> tuple[float, dict[str, float]]:
    """The score and its parts: one finite number, or an object of them; `ValueError` for anything else.

    Of several, the score is 1 where each is at least 1, and otherwise their mean, each clipped to [0, 1).
    """
    try:
        parsed = json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    parts = parsed if isinstance(parsed, dict) else {REWARD: parsed}
    if not parts:
        raise ValueError("there is no number in it")
    for name, value in parts.items():
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            raise ValueError(f"{name[:50]!r} is not a finite number")
    numbers = [float(value) for value in parts.values()]
    if all(number >= 1 for number in numbers):
        return 1.0, {name: float(value) for name, value in parts.items()}
    mean = sum(min(max(number, 0.0), 1.0) for number in numbers) / len(numbers)
    return min(mean, math.nextafter(1.0, 0.0)), {name: float(value) for name, value in parts.items()}
