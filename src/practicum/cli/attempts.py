"""`practicum rollout`, `verify` and `eval`: attempts and judgements outside a training run.

Owns: the commands `rollout`, `verify`, `evaluate` (shown as `eval`).
Invariant: the exit code says what was decided: 0 passed, 1 not, 2 the input is at fault, 3 nothing could be decided.
Must not know: boxes, tests.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from practicum.cli.failure import BAD_INPUT, INFRASTRUCTURE
from practicum.cli.output import JsonOption, Progress, emit
from practicum.errors import ConfigError, PolicyError, PolicyRefused, SubmissionError

if TYPE_CHECKING:
    from practicum.config.sections import JudgeConfig
    from practicum.pipeline.agents import AgentChoice
    from practicum.records.task import Task
    from practicum.records.trajectory import Trajectory
    from practicum.records.verdict import Submission, Verdict

_SCRIPT_LINES = 20  # of what a script printed
_GIVE_UP_AFTER = 8  # attempts without a single answer: the policy is not there
_POLICY_FAULTS = {PolicyError.__name__, PolicyRefused.__name__}
_POLICY_FIX = "see that the policy is running, and that its address, model and key are right"

T = TypeVar("T")

TaskArgument = Annotated[Path, typer.Argument(metavar="TASK", help="A task directory.")]
PolicyOption = Annotated[
    T, typer.Option(metavar="POLICY", help="oracle, noop, script:FILE, an http address or a run folder.")
]
ModelOption = Annotated[str | None, typer.Option(metavar="NAME", help="Model to ask an http address for.")]
KeyOption = Annotated[
    str | None, typer.Option("--api-key-env", metavar="VAR", help="Environment variable that holds the address's key.")
]
TemperatureOption = Annotated[float | None, typer.Option(min=0.0, help="Sampling temperature of a model.")]
ApiOption = Annotated[
    str | None,
    typer.Option(metavar="API", help="How to ask an http address: chat (any), tokens (vLLM, practicum serve), sglang."),
]
TokenizerOption = Annotated[
    str | None, typer.Option(metavar="DIR|NAME", help="With token ids: the model's folder, or smollm2.")
]
SpeechOption = Annotated[
    str | None, typer.Option(metavar="WAY", help="How an http address's model acts: tags, hermes, llama or fence.")
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL|FILE", help="Model for the signal `judge`: an address, or a TOML file with a [judge] section."
    ),
]
ConcurrencyOption = Annotated[
    int | None, typer.Option(min=1, help="Attempts at once; twice the processors where not given.")
]


def rollout(
    task: TaskArgument,
    agent: Annotated[str, typer.Option(metavar="AGENT", help="oracle, noop, script:FILE or policy.")],
    policy: Annotated[
        str | None, typer.Option(metavar="URL|RUN_DIR", help="With --agent policy: who is asked.")
    ] = None,
    model: ModelOption = None,
    api_key_env: KeyOption = None,
    temperature: TemperatureOption = None,
    api: ApiOption = None,
    tokenizer: TokenizerOption = None,
    speech: SpeechOption = None,
    judge: JudgeOption = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: JsonOption = False,
) -> None:
    """One attempt at TASK in a box, judged in another; prints the verdict."""
    from practicum.cli.verdicts import exit_code_of, verdict_document, verdict_text
    from practicum.pipeline.agents import parse_agent
    from practicum.tasks.harbor import load_task

    if (agent == "policy") != (policy is not None):
        raise ConfigError("--agent policy and --policy go together", fix="--agent policy --policy URL|RUN_DIR")
    choice = parse_agent(
        policy or agent, model=model, api_key_env=api_key_env, temperature=temperature,
        api=api, tokenizer=tokenizer, speech=speech,
    )  # fmt: skip
    loaded = load_task(task)
    asked = _judge_of(judge, [loaded])
    attempt = asyncio.run(_attempt_all([loaded], choice, samples=1, seed=seed, concurrency=1, judge=asked))[0]
    document = verdict_document(loaded, attempt.verdict, attempt.fault)
    document["turns"] = [{"text": turn.text, "observation": turn.observation} for turn in attempt.turns]
    text = verdict_text(loaded, attempt.verdict, attempt.fault, attempt.submission)
    emit(document, "\n".join([*_seen_by_agent(choice, attempt), text]), as_json=as_json)
    raise typer.Exit(exit_code_of(attempt.verdict, attempt.fault))


def _seen_by_agent(choice: AgentChoice, attempt: Trajectory) -> list[str]:
    """What a person's own script printed, and how it ended."""
    from practicum.pipeline.wording import visible

    if choice.kind != "script":
        return []
    shown = [line for turn in attempt.turns for line in turn.observation.rstrip().splitlines()[-_SCRIPT_LINES:]]
    return [visible(f"script | {line}") for line in shown]


def verify(
    task: TaskArgument,
    patch: Annotated[Path | None, typer.Option(metavar="FILE", help="A unified diff.")] = None,
    workspace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The workspace as it is after the work.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, metavar="K", help="Judge K times; verdicts must agree.")] = 1,
    judge: JudgeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge a submission that already exists."""
    from practicum.cli.verdicts import exit_code_of, verdict_document, verdict_text
    from practicum.tasks.harbor import load_task

    if (patch is None) == (workspace is None):
        raise ConfigError("one of --patch and --workspace is needed", fix="--patch FILE or --workspace DIR")
    loaded = load_task(task)
    submission = _submission(loaded, patch, workspace)
    verdicts = asyncio.run(_verify(loaded, submission, repeat, _judge_of(judge, [loaded])))
    # of verdicts that disagree, the worst is shown
    worst = max(verdicts, key=lambda verdict: exit_code_of(verdict, None))
    document = verdict_document(loaded, worst, None)
    text = verdict_text(loaded, worst, None, submission)
    if repeat > 1:
        outcomes = [verdict.outcome or verdict.status for verdict in verdicts]
        document["repeat"] = {"k": repeat, "outcomes": outcomes, "agree": len(set(outcomes)) == 1}
        text += f"\njudged {repeat} times: {', '.join(outcomes)}"
    emit(document, text, as_json=as_json)
    raise typer.Exit(exit_code_of(worst, None))


def evaluate(
    taskset: Annotated[Path, typer.Argument(metavar="TASKSET", help="A task directory, or a folder of them.")],
    policy: PolicyOption[str],
    samples: Annotated[int, typer.Option(min=1, metavar="K", help="Attempts at each task.")] = 1,
    model: ModelOption = None,
    api_key_env: KeyOption = None,
    temperature: TemperatureOption = None,
    api: ApiOption = None,
    tokenizer: TokenizerOption = None,
    speech: SpeechOption = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    concurrency: ConcurrencyOption = None,
    judge: JudgeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Success rate of POLICY on TASKSET, with a 95 % interval and pass@K."""
    from practicum.evaluation.evaluate import pass_at, summarise
    from practicum.pipeline.agents import parse_agent
    from practicum.pipeline.signals import missing_rows
    from practicum.tasks.taskset import load_taskset

    choice = parse_agent(
        policy, model=model, api_key_env=api_key_env, temperature=temperature,
        api=api, tokenizer=tokenizer, speech=speech,
    )  # fmt: skip
    tasks = load_taskset(taskset)
    asked = _judge_of(judge, tasks)
    attempts = asyncio.run(
        _attempt_all(tasks, choice, samples=samples, seed=seed, concurrency=concurrency, judge=asked)
    )
    result = summarise(attempts)
    rewards = [attempt.reward for attempt in attempts if attempt.reward is not None]
    document = {**result.to_json(), "reward": sum(rewards) / len(rewards) if rewards else None}
    lines = [
        f"{result.passed} of {result.samples} attempts at {result.tasks} tasks passed: "
        f"{result.rate:.1%} (95 % interval {result.low:.1%} to {result.high:.1%})"
        if result.samples
        else f"none of {len(attempts)} attempts could be judged"
    ]
    if samples > 1 and result.samples == samples * result.tasks:
        lines.append(f"pass@{samples}: {pass_at(attempts, samples):.1%}")
    if rewards:
        lines.append(f"mean reward: {document['reward']:+.3f}")
    for row in missing_rows(attempts, update=0):
        lines.append(f"signal missing from {row['missing']} verdicts: {row['signal']}: {row['reason']}")
    if result.unscorable or result.invalid:
        lines.append(f"not counted: {result.unscorable} unscorable, {result.invalid} invalid")
    reasons = sorted({f"  {a.task_id}: {a.fault.kind}: {a.fault.message}" for a in attempts if a.fault})[:10]
    if as_json and reasons:
        print("\n".join(reasons), file=sys.stderr)
    emit(document, "\n".join([*lines, *reasons]), as_json=as_json)
    if result.unscorable:
        raise typer.Exit(INFRASTRUCTURE)
    if result.invalid:
        raise typer.Exit(BAD_INPUT)


async def _attempt_all(
    tasks: list[Task],
    choice: AgentChoice,
    *,
    samples: int,
    seed: int,
    concurrency: int | None,
    judge: JudgeConfig | None,
) -> list[Trajectory]:
    from practicum.pipeline.agents import open_agent
    from practicum.pipeline.execute import open_workshop
    from practicum.rollouts.workshop import run_specs, specs_for

    progress = Progress("attempts", len(tasks) * samples) if len(tasks) * samples > 1 else None
    done, passed, unanswered = 0, 0, 0

    def on_done(trajectory: Trajectory) -> None:
        nonlocal done, passed, unanswered
        done += 1
        passed += trajectory.passed
        fault = trajectory.fault
        if fault is not None and fault.kind in _POLICY_FAULTS and not trajectory.turns:
            unanswered += 1
            if unanswered == done == _GIVE_UP_AFTER:
                raise PolicyError(f"none of the first {done} attempts got an answer: {fault.message}", fix=_POLICY_FIX)
        if progress is not None:
            progress.advance(f"{passed} passed")

    async with open_agent(choice) as agent, open_workshop(concurrency, judge) as workshop:
        specs = specs_for(tasks, agent, samples=samples, seed=seed)
        return await run_specs(workshop, agent, specs, on_done=on_done)


def _judge_of(text: str | None, tasks: list[Task]) -> JudgeConfig | None:
    """The judge that `--judge` names. Raises `ConfigError` where it cannot be had, or no task would ask it."""
    if text is None:
        return None
    from practicum.pipeline.signals import check_judge, parse_judge

    judge = parse_judge(text)
    check_judge(judge, tasks)
    return judge


async def _verify(task: Task, submission: Submission, repeat: int, judge: JudgeConfig | None) -> list[Verdict]:
    from practicum.pipeline.execute import open_workshop

    async with open_workshop(judge=judge) as workshop:
        return [await workshop.verifier.verify(task, submission) for _ in range(repeat)]


def _submission(task: Task, patch: Path | None, workspace: Path | None) -> Submission:
    from practicum.pipeline.workspace import read_workspace
    from practicum.sandboxes.contract import Listing
    from practicum.verification.submission import collect, submission_from_patch

    if workspace is not None:
        listing = read_workspace(workspace, max_bytes=2 * task.limits.disk_bytes)
        # visible tests are laid into a box from tests/; a folder made by hand from the starting files has none
        laid = {name: task.files[name] for name in task.verification.visible if name not in listing.irregular}
        return collect(task, Listing({**laid, **listing.files}, listing.irregular))
    assert patch is not None
    try:
        return submission_from_patch(task, patch.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise SubmissionError(f"{patch} is not UTF-8 text: {error}", fix="give a unified diff of text files") from None
