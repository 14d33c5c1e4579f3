"""`practicum runs branch`: other continuations of a stored trajectory, from one of its turns on.

Owns: the command `branch` of `runs`, and the tree that it prints.
Invariant: branches are added to the run folder, and nothing in it is changed.
Must not know: how branches are made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from practicum.cli.attempts import (
    ApiOption,
    KeyOption,
    ModelOption,
    PolicyOption,
    SpeechOption,
    TemperatureOption,
    TokenizerOption,
)
from practicum.cli.output import JsonOption, emit

if TYPE_CHECKING:
    from practicum.records.trajectory import Trajectory


def branch(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")],
    trajectory: Annotated[str, typer.Argument(metavar="TRAJECTORY", help="Id of the trunk.")],
    turn: Annotated[int, typer.Option(min=0, metavar="K", help="First turn that is sampled anew, counted from 0.")],
    count: Annotated[int, typer.Option(min=1, metavar="N", help="How many continuations.")] = 4,
    policy: PolicyOption[str | None] = None,
    model: ModelOption = None,
    api_key_env: KeyOption = None,
    temperature: TemperatureOption = None,
    api: ApiOption = None,
    tokenizer: TokenizerOption = None,
    speech: SpeechOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on from turn K of TRAJECTORY N times more, in boxes forked from the workspace of that turn, and judge each.

    Who goes on is POLICY, or the run's own model where none is given. Kept in the run folder as the phase `branch`.
    Shows what each is worth against the mean of all that pass there.
    """
    from practicum.pipeline.agents import parse_agent
    from practicum.pipeline.branching import branch as make_branches
    from practicum.rollouts.branching import tree_of
    from practicum.training.advantages import branch_advantages

    choice = parse_agent(
        policy or str(run), model=model, api_key_env=api_key_env, temperature=temperature,
        api=api, tokenizer=tokenizer, speech=speech,
    )  # fmt: skip
    trunk, branches = asyncio.run(make_branches(run, trajectory, turn, count, choice))
    credits = branch_advantages(*tree_of(trunk, branches))
    document = {
        "trunk": _node(trunk, turn, credits),
        "turn": turn,
        "group": branches[0].group_id,
        "branches": [_node(each, turn, credits) for each in branches],
    }
    emit(document, _tree(document, trunk), as_json=as_json)
    if all(each.fault is not None for each in branches):
        raise typer.Exit(3)


def _node(trajectory: Trajectory, turn: int, credits: Mapping[str, float | None]) -> dict[str, Any]:
    verdict, fault = trajectory.verdict, trajectory.fault
    return {
        "id": trajectory.id,
        "turns": len(trajectory.turns),
        "new_turns": [{"text": each.text, "observation": each.observation} for each in trajectory.turns[turn:]],
        "policy_version": trajectory.turns[turn].policy_version if len(trajectory.turns) > turn else None,
        "stop_reason": trajectory.stop_reason,
        "outcome": verdict.outcome if verdict else None,
        "reward": trajectory.reward,
        "credit": credits[trajectory.id],
        "seed": trajectory.seed,
        "fault": {"kind": fault.kind, "message": fault.message} if fault else None,
    }


def _tree(document: Mapping[str, Any], trunk: Trajectory) -> str:
    from practicum.pipeline.wording import visible

    turn = document["turn"]
    lines = [f"{trunk.id}: task {trunk.task_id}"]
    for each in trunk.turns[:turn]:
        lines.append(f"│ {each.index}  {_first_line(each.text)}")
    nodes = [document["trunk"], *document["branches"]]
    for number, node in enumerate(nodes):
        reward = "masked" if node["reward"] is None else f"{node['reward']:+.2f}"
        credit = "" if node["credit"] is None else f"  credit {node['credit']:+.2f}"
        outcome = node["outcome"] or (node["fault"] or {}).get("kind") or node["stop_reason"]
        what = "the trunk" if number == 0 else node["id"].removeprefix(trunk.id)
        branch = "└─" if number + 1 == len(nodes) else "├─"
        new = len(node["new_turns"])
        lines.append(f"{branch} {what:<12} {new} more {'turn' if new == 1 else 'turns'}  {outcome}  {reward}{credit}")
    return visible("\n".join(lines))


def _first_line(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= 60 else f"{line[:59]}…"
