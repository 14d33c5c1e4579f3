"""Signals on their way through a run: from its configuration to the reward, and to what is said of those missing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from practicum.cli.template import template_task
from practicum.config.sections import JudgeConfig
from practicum.errors import ConfigError
from practicum.pipeline.execute import open_workshop
from practicum.pipeline.rescoring import _judged
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.signals import check_judge, missing_rows, parse_judge, recorded
from practicum.records.task import RewardRule, Task, Verification
from practicum.records.trajectory import Trajectory
from practicum.records.verdict import Missing, Signal, Submission, Verdict
from practicum.rollouts.agents import oracle_agent
from practicum.rollouts.workshop import run_specs, specs_for
from practicum.tasks.harbor import save_task
from practicum.tasks.quickstart import FamilySpec, generate_family
from practicum.verification.shaping import MISSING

if TYPE_CHECKING:
    from conftest import ModelEndpoint
    from pipeline.conftest import Lab


def naming(task: Task, *signals: str) -> Task:
    return replace(task, verification=replace(task.verification, reward=RewardRule("default", 0.2, signals)))


TASK = naming(Task("t", "do", {}, Verification("plain", {})), "judge", "turns")


def attempt(verdict: Verdict) -> Trajectory:
    return Trajectory("g/0", "g", "t", TASK.digest, (), "submitted", None, Submission(()), verdict)


def oracle(task: Task, judge: JudgeConfig | None) -> Trajectory:
    """The gold of `task`, done in real boxes and judged."""

    async def run() -> Trajectory:
        async with open_workshop(1, judge) as workshop:
            (trajectory,) = await run_specs(workshop, oracle_agent(), specs_for([task], oracle_agent()))
            return trajectory

    return asyncio.run(run())


def test_a_judge_is_an_address_or_a_file(tmp_path: Path) -> None:
    """An address is a judge with defaults; a file gives its whole section; what is neither is refused."""
    assert parse_judge("http://host:8000/v1") == JudgeConfig(url="http://host:8000/v1")
    file = tmp_path / "judge.toml"
    file.write_text('[judge]\nurl = "http://h/v1"\nmodel = "m"\nweight = 2.0\n')
    assert parse_judge(str(file)) == JudgeConfig(url="http://h/v1", model="m", weight=2.0)
    for text, said in (("http://h:99999/v1", "not an http address"), ("quickstart", r"no \[judge\] section")):
        with pytest.raises(ConfigError, match=said):
            parse_judge(text)


def test_a_judge_nobody_asks_is_refused_and_one_that_is_not_there_is_told() -> None:
    """A setting without effect is an error; a task set may ask for a judge that is not at hand."""
    judge = JudgeConfig(url="http://h/v1")
    assert check_judge(judge, [TASK, template_task("x")]) is None
    assert check_judge(None, [template_task("x")]) is None
    assert "1 of 2 tasks" in str(check_judge(None, [TASK, template_task("x")]))
    with pytest.raises(ConfigError, match="never be asked"):
        check_judge(judge, [template_task("x")])


def test_what_is_missing_is_counted_by_name_and_reason() -> None:
    """One row for each; verdicts that lack nothing, and attempts without a verdict, give none."""
    passed = Verdict("valid", "passed", 1.0)
    lacking = [replace(passed, evidence={MISSING: {"judge": why, "turns": "unknown"}}) for why in ("down", "down", "x")]
    lost = replace(attempt(passed), verdict=None)
    rows = missing_rows([*map(attempt, [*lacking, passed]), lost], update=3)
    assert [(row["signal"], row["reason"], row["missing"]) for row in rows] == [
        ("judge", "down", 2),
        ("judge", "x", 1),
        ("turns", "unknown", 3),
    ]
    assert all((row["kind"], row["update"]) == ("signal", 3) for row in rows)


def test_judging_again_keeps_the_opinion_there_was() -> None:
    """An opinion is part of the record: the same reward without asking, and none is made up where there was none."""
    bare = Verdict("valid", "passed", 1.0, evidence={MISSING: {"judge": "none", "turns": "none"}})
    opinion = Signal("judge", 0.5, 1.0, 0.5)
    before = attempt(replace(bare, reward=0.9, signals=(opinion,), evidence={}))
    after = _judged(TASK, before, bare).verdict
    assert after is not None
    assert (after.reward, after.signals) == (0.9, (opinion,))
    assert list(after.evidence[MISSING]) == ["turns"]
    silent = recorded(TASK, attempt(bare))["judge"]
    assert silent == Missing("no opinion was recorded, and judging again asks no model")


def test_an_attempt_is_shaped_by_its_turns_and_by_a_model(model_endpoint: ModelEndpoint) -> None:
    """Both reach the reward of an attempt in real boxes; judged again from its record alone, it is the same."""
    task = naming(template_task("mine"), "turns", "commands", "protocol", "size", "judge")
    done = oracle(task, JudgeConfig(url=model_endpoint.url, model="m", weight=2.0))
    assert done.verdict is not None
    scores = {signal.name: signal.score for signal in done.verdict.signals}
    assert (scores["turns"], scores["commands"], scores["protocol"], scores["judge"]) == (1.0, 1.0, 1.0, 0.5)
    assert MISSING not in done.verdict.evidence
    assert done.verdict.verifier_version.endswith("+judge:m")
    assert done.reward == pytest.approx(1 - 0.2 * (1 - (3 + scores["size"] + 0.5) / 5))
    assert [body["model"] for body in model_endpoint.asked] == ["m"]

    async def again() -> Verdict:
        async with open_workshop(1) as workshop:
            assert done.submission is not None
            return await workshop.verifier.verify(task, done.submission)

    bare = asyncio.run(again())
    assert set(bare.evidence[MISSING]) == {"turns", "commands", "protocol", "judge"}
    rescored = _judged(task, done, bare)
    assert rescored.reward == done.reward
    assert len(model_endpoint.asked) == 1


def test_an_outage_is_a_missing_signal(model_endpoint: ModelEndpoint) -> None:
    """A judge that is down takes nothing off, and the verdict says why; it is asked only by tasks that list it."""
    model_endpoint.status = 503
    judge = JudgeConfig(url=model_endpoint.url, tries=1)
    done = oracle(naming(template_task("mine"), "judge"), judge)
    assert done.verdict is not None
    assert (done.reward, done.fault) == (1.0, None)
    assert "status 503" in done.verdict.evidence[MISSING]["judge"]
    asked = len(model_endpoint.asked)
    assert oracle(naming(template_task("mine"), "turns"), judge).reward == 1.0
    assert len(model_endpoint.asked) == asked == 1


def test_the_key_comes_from_the_environment(model_endpoint: ModelEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent, and a run whose variable is not set does not begin."""
    monkeypatch.setenv("JUDGE_KEY", "sesame")
    judge = JudgeConfig(url=model_endpoint.url, api_key_env="JUDGE_KEY")
    task = naming(template_task("mine"), "judge")
    assert oracle(task, judge).reward == pytest.approx(0.9)
    assert model_endpoint.keys == ["Bearer sesame"]
    monkeypatch.delenv("JUDGE_KEY")
    with pytest.raises(ConfigError, match="JUDGE_KEY"):
        oracle(task, judge)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_run_with_signals(lab: Lab, model_endpoint: ModelEndpoint) -> None:
    """Conduct and a judge shape a run's rewards; canaries see no change in that; when the judge goes down the run goes
    on, and counts it; re-scoring decides nothing otherwise and asks nobody."""
    family = generate_family(FamilySpec(seed=0, train=4, validation=2, test=2))
    for task in family:
        save_task(naming(task, "turns", "commands", "size", "judge"), lab.root / "mine" / task.id)
    model_endpoint.good = 20
    section = f'[judge]\nurl = "{model_endpoint.url}"\nmodel = "m"\ntries = 1\n[evaluation]'
    lab.configure(("[evaluation]", section), ('family = "quickstart"', f'path = "{lab.root}/mine"'))
    summary = lab.train(str(lab.config))
    folder = lab.run_folder()
    with RunFolder.open(folder) as run:
        verdicts = [t.verdict for t in run.store.read() if t.verdict is not None and t.verdict.passed]
        rows = [row for row in run.metrics() if row["kind"] == "signal"]
        assert all(not row["deviations"] for row in run.metrics() if row["kind"] == "canary")
    assert all({s.name for s in v.signals} >= {"turns", "commands", "size"} for v in verdicts)
    judged = ["judge" in {s.name for s in v.signals} for v in verdicts]
    assert {True, False} == set(judged)
    assert {row["signal"] for row in rows} == {"judge"}
    assert all("status 503" in row["reason"] for row in rows)
    assert sum(row["missing"] for row in rows) == judged.count(False) == summary["signals_missing"]["judge"]
    assert summary["faults"] == {}
    assert summary["provenance"]["verifier"].endswith("+judge:m")
    assert "lack the signal judge" in (folder / "report.html").read_text()

    asked = len(model_endpoint.asked)
    report = rescore(lab, folder)
    assert (report["changed"], len(model_endpoint.asked)) == (0, asked)


def rescore(lab: Lab, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "practicum", "verifier", "rescore", str(folder), "--json"]
    done = subprocess.run(command, cwd=lab.root, env=lab.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    document: dict[str, Any] = json.loads(done.stdout)
    return document
