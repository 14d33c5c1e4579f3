"""One attempt's life in real boxes: verdicts for what the candidate did, faults for what the host did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from practicum.errors import PolicyError, PolicyRefused, VerifierError
from practicum.policies.scripted import ScriptedPolicy, noop_policy, oracle_policy, script_policy
from practicum.policies.speech import FENCE
from practicum.policies.text import ByteRenderer
from practicum.records.sample import samples_from
from practicum.records.task import Limits, RewardRule, Task
from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Submission, Verdict
from practicum.rollouts.attempt import AttemptSpec, Patience, run_attempt
from practicum.rollouts.harness import Harness
from practicum.rollouts.session import TEXT_BUDGETS, Budgets
from practicum.sandboxes.cgroups import CgroupsMissing, find_cgroups
from practicum.scheduling.retry import Backoff
from practicum.verification.contract import Verifier
from practicum.verification.judge import ExecutionVerifier

renderer = ByteRenderer()
QUICK = Backoff(tries=3, first_s=0.01)
PATIENCE = Patience(lives=2, lease=QUICK, policy=QUICK)
FIX = "<edit>calc.py:2<old>-<new>+</edit>"


class Judges:
    """A verifier that gives `answers` first and then judges for real; an exception among them is raised."""

    version = "judges/1"

    def __init__(self, real: Verifier, *answers: Verdict | Exception) -> None:
        self._real = real
        self._answers = list(answers)
        self.asked: list[Submission] = []

    async def verify(self, task: Task, submission: Submission) -> Verdict:
        self.asked.append(submission)
        if not self._answers:
            return await self._real.verify(task, submission)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Rollouts:
    """Makes attempts at `task` with real boxes."""

    def __init__(self, task: Task, with_boxes: Any) -> None:
        self.task = task
        self.with_boxes = with_boxes
        self.answers: list[Verdict | Exception] = []
        self.judges: Judges | None = None
        self.snapshots: Any = None

    def attempt(
        self,
        policy: Any,
        *,
        budgets: Budgets = TEXT_BUDGETS,
        limits: Limits | None = None,
        gold: bool = False,
        renderer: ByteRenderer = renderer,
    ) -> Trajectory:
        task = replace(self.task, limits=limits) if limits else self.task
        spec = AttemptSpec(task, "group/1", 3, seed=5, with_solution=gold, patience=PATIENCE)

        async def body(provider: Any) -> Trajectory:
            self.judges = Judges(ExecutionVerifier(provider), *self.answers)
            self.snapshots = provider.snapshots
            return await run_attempt(
                spec,
                provider=provider,
                verifier=self.judges,
                policy=policy,
                renderer=renderer,
                harness=Harness(budgets),
            )

        trajectory: Trajectory = self.with_boxes(body)
        return trajectory

    def says(self, *texts: str, **options: Any) -> Trajectory:
        return self.attempt(ScriptedPolicy(renderer, lambda _, turn: [*texts, None][min(turn, len(texts))]), **options)


@pytest.fixture
def rollouts(task: Task, with_boxes: Any) -> Rollouts:
    return Rollouts(task, with_boxes)


def masked(trajectory: Trajectory, kind: str) -> bool:
    assert trajectory.fault is not None
    assert trajectory.fault.kind == kind
    return trajectory.reward is None and trajectory.stop_reason == "fault" and not trajectory.passed


def test_the_gold_passes_and_doing_nothing_fails(rollouts: Rollouts, luck: Any) -> None:
    """Oracle 1.0, no-op −0.2, each judged in a box of its own that opens after the agent's is gone."""
    oracle = rollouts.attempt(oracle_policy(renderer), gold=True)
    assert (oracle.stop_reason, oracle.passed, oracle.reward, oracle.fault) == ("submitted", True, 1.0, None)
    noop = rollouts.attempt(noop_policy(renderer))
    assert (noop.passed, noop.reward) == (False, -0.2)
    assert luck.most_open == 1
    assert len(luck.created) >= 4
    assert oracle.id == "group/1/3"
    assert oracle.submission is not None
    assert [change.path for change in oracle.submission.changes] == ["calc.py"]


def test_a_pass_is_shaped_by_how_it_came_about(rollouts: Rollouts) -> None:
    """The same submission is worth less after failing commands and nonsense; a failure is worth what it was."""
    rule = RewardRule("default", 0.2, ("turns", "commands", "protocol"))
    rollouts.task = replace(rollouts.task, verification=replace(rollouts.task.verification, reward=rule))
    direct = rollouts.says(FIX)
    assert direct.reward == 1.0
    rollouts.answers = [Verdict("unscorable", None, None, reason="no box")]
    detour = rollouts.says("what?", "<bash>false</bash>", "<bash>exit 3</bash>", FIX)
    assert detour.verdict is not None
    scores = {signal.name: signal.score for signal in detour.verdict.signals}
    assert (scores["turns"], scores["commands"], scores["protocol"]) == (8 / 11, 1 / 3, 4 / 5)
    assert detour.reward == pytest.approx(0.8 + 0.2 * (8 / 11 + 1 / 3 + 4 / 5) / 3)
    failed = rollouts.says("what?", "<bash>false</bash>")
    assert failed.reward == -0.2
    assert failed.verdict is not None
    assert {signal.name for signal in failed.verdict.signals} == {"reliability"}


def test_the_cost_tells_where_time_and_tokens_went(rollouts: Rollouts) -> None:
    """Seconds by stage, ids and boxes are on the record."""
    cost = rollouts.says(FIX).cost
    stages = {"lease_s", "generate_s", "act_s", "snapshot_s", "collect_s", "close_s", "verify_s"}
    assert set(cost) == stages | {"prompt_tokens", "sampled_tokens", "boxes"}
    assert cost["sampled_tokens"] == len(FIX) + 1 + len("<submit>") + 1
    assert all(value >= 0 for value in cost.values())


def test_only_the_oracle_sees_the_solution(rollouts: Rollouts) -> None:
    """Without the flag there is no `/solution` in the box."""
    seen = rollouts.says("<bash>ls /solution</bash>").turns[0].observation
    assert "[exit 2]" in seen
    assert "solve.sh" not in seen


def test_turns_are_tied_to_the_workspace(rollouts: Rollouts) -> None:
    """Each turn starts from the snapshot the last one ended with; an edit keeps the file's mode."""
    trajectory = rollouts.says(
        "<bash>cat calc.py</bash>", FIX, "<edit>run.sh<old>hi<new>ho</edit>", "<bash>./run.sh</bash>"
    )
    turns = trajectory.turns
    assert [turn.action.tool for turn in turns] == ["bash", "edit", "edit", "bash", "submit"]
    assert [turn.observation for turn in turns[1:]] == ["[edited]", "[edited]", "ho", ""]
    assert all(turn.snapshot_after == later.snapshot_before for turn, later in pairwise(turns))
    assert turns[0].snapshot_before == turns[0].snapshot_after != turns[1].snapshot_after
    tree = rollouts.snapshots.get(turns[-1].snapshot_after)
    assert tree["calc.py"].data == b"def add(a, b):\n    return a + b\n"
    assert tree["run.sh"].mode == 0o755
    assert trajectory.passed


def test_a_real_attempt_trains_on_exactly_what_was_sampled(rollouts: Rollouts) -> None:
    """From the policy's words through boxes to the sample, no id is added, lost or changed."""
    texts = ["<bash>printf '\\377\\0<submit>'</bash>", "é\0 nonsense", FIX, "<submit>"]
    trajectory = rollouts.says(*texts)
    assert trajectory.passed
    (sample,) = samples_from(trajectory, 1.0)
    trained = [ident for ident, mask in zip(sample.input_ids, sample.loss_mask, strict=True) if mask]
    assert trained == [ident for text in texts for ident in [*text.encode(), *renderer.stop_ids]]


def test_nonsense_is_answered_and_costs_a_turn(rollouts: Rollouts) -> None:
    """NUL bytes, broken tags, bad paths and failing edits are observations."""
    trajectory = rollouts.says(
        "\0",
        "<bash>a\0b</bash>",
        "<edit>../../etc/passwd<old>a<new>b</edit>",
        "<edit>/etc/passwd<old>a<new>b</edit>",
        "<edit>calc.py:9<old>a<new>b</edit>",
        "<edit>new/deep.py<old><new>x = 1\n</edit>",
        "<edit>new<old><new>x</edit>",
        "<bash>ln -s /etc link; cat new/deep.py</bash>",
        "<edit>link/x<old><new>x</edit>",
        "<edit>link<old><new>x</edit>",
    )
    assert [turn.observation for turn in trajectory.turns[:8]] == [
        "[no action in the text]",
        "[the command holds a NUL byte]",
        "[edit: ../../etc/passwd is not a file in /app]",
        "[edit: /etc/passwd is not a file in /app]",
        "[edit: calc.py: there is no line 9: the file has 3 lines]",
        "[edited]",
        "[edit: new is not a regular file]",
        "x = 1",
    ]
    assert trajectory.turns[8].observation.startswith("[edit: cannot write")
    assert trajectory.turns[9].observation == "[edit: link is not a regular file]"
    worked = [index for index, turn in enumerate(trajectory.turns) if not turn.failed]
    assert worked == [5, 7, 10]
    assert trajectory.reward == -0.2


def test_a_command_that_hangs_is_an_observation(rollouts: Rollouts) -> None:
    """The policy is told, without a measured duration, and goes on."""
    limits = replace(rollouts.task.limits, command_s=0.3)
    trajectory = rollouts.says("<bash>echo before; sleep 60</bash>", FIX, limits=limits)
    assert trajectory.turns[0].observation == "before\n[timed out after 0.3s]"
    assert [turn.failed for turn in trajectory.turns] == [True, False, False]
    assert trajectory.passed


def test_an_attempt_that_uses_up_its_time_is_judged_as_it_stands(rollouts: Rollouts) -> None:
    """Truncation by time is valid: what the workspace holds is judged."""
    limits = replace(rollouts.task.limits, episode_s=0.4)
    trajectory = rollouts.says(FIX, "<bash>sleep 60</bash>", "<bash>rm calc.py</bash>", limits=limits)
    assert (trajectory.stop_reason, trajectory.fault, trajectory.passed) == ("time_limit", None, True)
    assert trajectory.turns[-1].observation == "[stopped: the time of this attempt is over]"


@pytest.mark.parametrize(
    ("budgets", "texts", "reason"),
    [
        (Budgets(1, 1000, 10_000), [FIX, "<submit>"], "turn_limit"),
        (Budgets(9, 1000, 160), [FIX, f"<bash>{'#' * 20}\ntrue</bash>", "<submit>"], "context_limit"),
    ],
)
def test_a_truncated_attempt_is_judged_as_it_stands(
    rollouts: Rollouts, budgets: Budgets, texts: list[str], reason: str
) -> None:
    """Out of turns or context, the work done so far counts."""
    trajectory = rollouts.says(*texts, budgets=budgets)
    assert (trajectory.stop_reason, trajectory.fault, trajectory.passed) == (reason, None, True)


def test_a_workspace_that_cannot_be_carried_out_is_a_failure(rollouts: Rollouts) -> None:
    """Burying the workspace under files is no way out of the verdict."""
    limits = replace(rollouts.task.limits, command_s=20.0)
    trajectory = rollouts.says(FIX, "<bash>mkdir d; cd d; seq 21000 | xargs touch</bash>", limits=limits)
    assert (trajectory.fault, trajectory.reward) == (None, -0.2)
    assert trajectory.submission is not None
    assert [finding.kind for finding in trajectory.submission.findings] == ["not_collected"]
    assert trajectory.turns[1].snapshot_after == ""


def test_driving_the_box_out_of_memory_is_a_failure(rollouts: Rollouts, luck: Any) -> None:
    """Ending one's own box is no way out: one life, a number, and the turn that did it on record."""
    try:
        find_cgroups("test-out-of-memory").remove()
    except CgroupsMissing as error:
        pytest.skip(f"a box as a whole has no memory limit here: {error}")
    limits = replace(rollouts.task.limits, memory_bytes=64 << 20, disk_bytes=256 << 20, output_bytes=32 << 20)
    # The output is kept by the box's first process, for which there is no room left once the file has taken all. It may
    # be lucky, and then the commands die instead.
    fill = "<bash>head -c 200000000 /dev/zero > /dev/shm/x; head -c 50000000 /dev/zero; sleep 0.2</bash>"
    for _ in range(10):
        luck.created.clear()
        trajectory = rollouts.says(FIX, *[fill] * 10, limits=limits)
        assert trajectory.fault is None
        if trajectory.stop_reason == "out_of_memory":
            break
    assert (trajectory.fault, trajectory.stop_reason, trajectory.reward) == (None, "out_of_memory", -0.2)
    assert trajectory.submission is not None
    assert [finding.kind for finding in trajectory.submission.findings] == ["out_of_memory"]
    assert trajectory.turns[-1].observation == "[out of memory: the box is gone]"
    assert trajectory.turns[-1].snapshot_after == ""
    assert sum(name.startswith("act-") for name in luck.created) == 1


def test_a_create_that_fails_is_asked_for_again_by_the_same_name(rollouts: Rollouts, luck: Any) -> None:
    """A passing shortage is waited out without a new identity."""
    luck.failing = 2
    trajectory = rollouts.says(FIX)
    assert trajectory.passed
    assert len(set(luck.created[:3])) == 1
    assert trajectory.cost["boxes"] == 1


def test_no_box_at_all_is_a_fault(rollouts: Rollouts, luck: Any) -> None:
    """After its tries the attempt is masked, and the other lives are not spent on it."""
    luck.failing = 99
    assert masked(rollouts.says(FIX), "CreateFailed")
    assert len(luck.created) == 3


def test_a_box_that_dies_is_replaced_by_one_that_goes_on(rollouts: Rollouts, luck: Any) -> None:
    """The next box, under another name, holds the workspace of the last turn; what was cut short counts once."""
    texts = [FIX, "<bash>echo a >> log; cat log</bash>", "<bash>echo b >> log; cat log calc.py</bash>"]
    unbroken = rollouts.says(*texts)
    luck.created.clear()
    luck.dying_at = luck.ran + 2
    trajectory = rollouts.says(*texts)
    assert trajectory.passed
    assert trajectory.turns[2].observation == "a\nb\ndef add(a, b):\n    return a + b"
    assert [turn.snapshot_after for turn in trajectory.turns] == [turn.snapshot_after for turn in unbroken.turns]
    assert [turn.prompt_ids for turn in trajectory.turns] == [turn.prompt_ids for turn in unbroken.turns]
    assert luck.created[0] != luck.created[1]
    assert (trajectory.cost["boxes"], trajectory.cost["boxes_lost"]) == (2, 1)


def test_a_workspace_with_more_than_files_is_not_gone_on_from(rollouts: Rollouts, luck: Any) -> None:
    """A link would be lost in a fresh box, and what it tells with it: the episode begins anew, and that is counted."""
    luck.dying_at = 2
    trajectory = rollouts.says("<bash>ln -s /etc/hostname link</bash>", "<bash>ls</bash>", FIX)
    assert (trajectory.turns[0].snapshot_after, trajectory.cost["restarts"], trajectory.passed) == ("", 1, True)
    assert trajectory.submission is not None
    assert [finding.kind for finding in trajectory.submission.findings] == ["irregular_file"]


def test_boxes_that_keep_dying_are_a_fault(rollouts: Rollouts, luck: Any) -> None:
    """The attempt is masked, with the turns it had, and nothing is judged."""
    luck.dying = 99
    trajectory = rollouts.says(FIX, "<bash>ls</bash>")
    assert masked(trajectory, "SandboxDied")
    assert (trajectory.submission, trajectory.verdict, len(trajectory.turns)) == (None, None, 1)
    assert rollouts.judges is not None
    assert rollouts.judges.asked == []


UNSCORABLE = Verdict("unscorable", None, None, reason="the host was out of memory")


@pytest.mark.parametrize("answer", [UNSCORABLE, VerifierError("broken")])
def test_a_judge_that_failed_once_judges_the_same_submission_again(
    rollouts: Rollouts, answer: Verdict | Exception
) -> None:
    """The rollout is not repeated for it."""
    rollouts.answers = [answer]
    trajectory = rollouts.says(FIX)
    assert (trajectory.passed, trajectory.fault, trajectory.cost["boxes"]) == (True, None, 1)
    assert rollouts.judges is not None
    assert len({submission.digest for submission in rollouts.judges.asked}) == 1


@pytest.mark.parametrize("answers", [[UNSCORABLE] * 2, [VerifierError("broken")] * 2])
def test_a_judge_that_cannot_decide_is_a_fault(rollouts: Rollouts, answers: list[Any]) -> None:
    """Without a verdict there is no reward, and the submission is kept for later."""
    rollouts.answers = answers
    trajectory = rollouts.says(FIX)
    assert masked(trajectory, "VerifierError")
    assert trajectory.submission is not None


def test_a_task_at_fault_is_no_fault_of_the_host(rollouts: Rollouts) -> None:
    """An `invalid` verdict stands as it is, without a number."""
    rollouts.answers = [Verdict("invalid", None, None, reason="the tests do not run")]
    trajectory = rollouts.says(FIX)
    assert (trajectory.fault, trajectory.reward, trajectory.stop_reason) == (None, None, "submitted")


@pytest.mark.parametrize("error", [PolicyError("the engine is gone"), PolicyRefused("too long")])
def test_a_policy_that_does_not_answer_is_a_fault(rollouts: Rollouts, error: Exception) -> None:
    """The attempt is masked; what was said before stays on record."""

    def script(_session: str, turn: int) -> str:
        if turn:
            raise error
        return FIX

    trajectory = rollouts.attempt(ScriptedPolicy(renderer, script))
    assert masked(trajectory, type(error).__name__)
    assert [turn.text for turn in trajectory.turns] == [FIX]


def test_a_whole_script_file_is_one_action(rollouts: Rollouts) -> None:
    """`script:FILE` runs as it is written."""
    trajectory = rollouts.attempt(script_policy(renderer, "set -e\nsed -i 's/-/+/' calc.py\necho done\n"))
    assert (trajectory.passed, trajectory.turns[0].observation) == (True, "done")


def test_a_cancelled_attempt_leaves_no_box(task: Task, with_boxes: Any, luck: Any) -> None:
    """Cancelled in the middle of a command, the box is closed before the cancellation goes on."""

    async def body(provider: Any) -> None:
        policy = ScriptedPolicy(renderer, lambda _s, _t: "<bash>sleep 60</bash>")
        long = replace(task, limits=replace(task.limits, command_s=60.0, episode_s=100.0))
        attempt = asyncio.create_task(
            run_attempt(
                AttemptSpec(long, "g"),
                provider=provider,
                verifier=ExecutionVerifier(provider),
                policy=policy,
                renderer=renderer,
                harness=Harness(TEXT_BUDGETS),
            )
        )
        async with asyncio.timeout(20):
            await luck.opened.wait()
        await asyncio.sleep(0.1)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt

    run: Callable[[Any], None] = with_boxes
    run(body)
    assert len(luck.created) == 1


class Engine(ScriptedPolicy):
    """Keeps a diary of its conversations."""

    def __init__(self, diary: list[str], texts: Sequence[str]) -> None:
        super().__init__(renderer, lambda _, turn: [*texts, None][min(turn, len(texts))])
        self._diary = diary

    @contextmanager
    def session(self, name: str) -> Iterator[None]:
        self._diary.append(f"open {name}")
        with super().session(name):
            yield
        self._diary.append("close")


def test_the_conversation_is_open_from_before_the_lease_to_the_last_turn(rollouts: Rollouts, luck: Any) -> None:
    """An engine that fills batches waits for an attempt only while it may still ask, and never for the judge."""
    trajectory = rollouts.attempt(Engine(luck.events, [FIX]))
    assert trajectory.passed
    assert luck.events[:4] == ["open group/1/3", "box", "close", "box gone"]


def test_the_same_attempt_gives_the_same_ids(rollouts: Rollouts) -> None:
    """Nothing that differs from run to run reaches what the policy is shown."""
    texts = ["<bash>ls -1; pwd; id -u; false</bash>", "<bash>python3 -c 'import calc; calc.add(None, 1)'</bash>"]
    first, second = rollouts.says(*texts), rollouts.says(*texts)
    assert [turn.prompt_ids for turn in first.turns] == [turn.prompt_ids for turn in second.turns]
    assert "[exit 1]" in first.turns[1].observation


def test_a_block_of_code_is_the_text_of_the_one_file(rollouts: Rollouts) -> None:
    """Where a task names the one file that may change, a fenced block replaces it; else nothing is guessed."""
    fenced = ByteRenderer(FENCE)
    text = "Here:\n```python\ndef add(a, b):\n    return a + b\n```"

    def said() -> ScriptedPolicy:
        return ScriptedPolicy(fenced, lambda _, turn: text if turn == 0 else None)

    def once() -> Trajectory:
        return rollouts.attempt(said(), renderer=fenced, budgets=replace(TEXT_BUDGETS, max_turns=1))

    anywhere = once()
    assert anywhere.turns[0].failed
    assert "not plain which file" in anywhere.turns[0].observation
    rollouts.task = replace(rollouts.task, editable=("calc.py",))
    aimed = once()
    assert (aimed.reward, aimed.stop_reason, aimed.turns[0].observation) == (1.0, "turn_limit", "[wrote calc.py]")
