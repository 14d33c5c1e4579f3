"""The strict models that a run's configuration is made of.

Owns: `RunConfig` and its sections, beside those of `learning`: every key, its default, its meaning and its bounds.
Invariant: a key that nobody reads, a value of the wrong type or a combination that cannot be run is refused.
Must not know: files, overrides, which classes implement what.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from practicum.config.learning import PolicyConfig, RewardConfig, RlConfig, SftConfig, StudyConfig, TrainerConfig
from practicum.config.section import Section


class TasksConfig(Section):
    path: str | None = Field(default=None, min_length=1)
    """Folder of task directories; leave it out to generate tasks of `family`."""
    family: Literal["quickstart", "single-turn", "functions"] | None = None
    """Generated family; `quickstart` where neither this nor `path` is set, `single-turn` shows what is to repair."""
    train: int = Field(default=360, ge=1)
    """Tasks to train on; with `path`, the first so many of that split; with `functions`, at most so many."""
    validation: int = Field(default=48, ge=1)
    """Tasks watched during the run, which choose the checkpoint; with `functions`, functions of two tasks each."""
    test: int = Field(default=100, ge=1)
    """Held-out tasks, touched before and after and never chosen on; with `functions`, functions of two tasks each."""
    seed: int = Field(default=0, ge=0)
    """Seed of the generator, apart from the run's so that seeds of a run share their tasks."""

    @model_validator(mode="before")
    @classmethod
    def _one_source(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        path, family = given.get("path"), given.get("family")
        if path is not None and family is not None:
            raise ValueError("`path` and `family` are both set, and a run has one source of tasks: remove one")
        return {**given, "family": "quickstart"} if path is None and family is None else given


class SandboxConfig(Section):
    provider: Literal["bubblewrap"] = "bubblewrap"
    """What makes the boxes."""
    limits_by: Literal["cgroup-or-rlimit", "cgroup", "rlimit"] = "cgroup-or-rlimit"
    """How memory and processes are limited; `cgroup` refuses to start where there is no writable cgroup."""
    max_concurrent: int = Field(default=96, ge=1)
    """Most agents' boxes alive at once."""
    verify_concurrent: int = Field(default=4, ge=1)
    """Most judges' boxes alive at once."""


class RolloutConfig(Section):
    max_turns: int = Field(default=6, ge=1)
    """Most turns of an attempt."""
    max_tokens_per_turn: int = Field(default=16, ge=1)
    """Most tokens sampled in a turn."""
    max_context: int = Field(default=512, ge=2)
    """Most tokens of an attempt, prompt and samples together."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature while training; at 0 all attempts of a group would be the same."""
    group_size: int = Field(default=8, ge=2)
    """Attempts of one task that are compared with each other."""
    tasks_per_update: int = Field(default=10, ge=1)
    """Groups collected for each update."""
    max_staleness: int = Field(default=1, ge=0)
    """Most versions that sampling may lag behind the trainer; 0 collects and updates in turn."""
    threads: int = Field(default=1, ge=1)
    """Processors used to sample; above 1 whether a run repeats bit for bit is up to the host's kernels."""

    @model_validator(mode="after")
    def _turn_fits(self) -> RolloutConfig:
        if self.max_tokens_per_turn >= self.max_context:
            raise ValueError(
                f"max_tokens_per_turn {self.max_tokens_per_turn} ≥ max_context {self.max_context}: "
                f"{self.max_context} − {self.max_tokens_per_turn} leaves no token for the task"
            )
        return self


class ScheduleConfig(Section):
    mode: Literal["batches", "continuous"] = "batches"
    """`batches` are the same whatever the timing; `continuous` trains what ends first, and new weights reach attempts
    that are under way."""
    overlap: bool = True
    """Whether attempts are made while the trainer updates; without, the same batches one thing at a time."""
    backlog: int = Field(default=64, ge=1)
    """Most submissions that wait for the judge or are with it; attempts that end beyond that keep their places."""
    refills: int = Field(default=2, ge=0)
    """Fresh attempts that a group gets in place of those that a fault took; else it does not train at all."""
    spares: int = Field(default=0, ge=0)
    """Attempts of a group beyond its size, of which the last to end are given up; this favours short ones."""
    attempt_s: float = Field(default=1800.0, gt=0)
    """Seconds for one attempt, all waiting for the policy included; one that has not ended by then is masked."""
    adaptive: bool = False
    """Whether fewer attempts are made at once where the host is overloaded, and more again where it is not."""

    @model_validator(mode="after")
    def _spares_have_no_order(self) -> ScheduleConfig:
        if self.spares and self.mode == "batches":
            raise ValueError(
                f"spares {self.spares} with mode batches: which attempts end first depends on timing, so no run could "
                "be repeated; set mode to continuous"
            )
        if self.mode == "continuous" and not self.overlap:
            raise ValueError("mode continuous is overlap: set mode to batches, or overlap to true")
        return self


class CurriculumConfig(Section):
    low: float = Field(default=0.2, ge=0, lt=1)
    """Tasks whose success rate is believed to be below this are drawn less often."""
    high: float = Field(default=0.8, gt=0, le=1)
    """The same above this."""
    floor: float = Field(default=0.1, ge=0, le=0.25)
    """Share of the places that each stratum of difficulty gets at least, as long as it has tasks that can teach."""
    explore: float = Field(default=0.05, gt=0, le=1)
    """Part of a task's weight that does not depend on outcomes; at 1 all tasks are drawn alike."""
    discount: float = Field(default=0.99, gt=0, le=1)
    """What is left of the weight of an outcome after each further update, since the policy changes."""
    solved_after: int = Field(default=3, ge=1)
    """Groups in a row that all pass after which a task is retired."""
    failed_after: int = Field(default=4, ge=1)
    """Groups in a row that all fail, with one reward, after which a task is parked."""
    recheck: float = Field(default=0.05, ge=0, le=0.5)
    """Most of the places that go to retired and parked tasks."""
    look_again: int = Field(default=16, ge=1)
    """Updates until such a task is looked at again; a parked one sooner as the policy gets better."""

    @model_validator(mode="after")
    def _band_is_one(self) -> CurriculumConfig:
        if self.low >= self.high:
            raise ValueError(f"low {self.low} ≥ high {self.high}: no success rate lies in that band")
        return self


class EvaluationConfig(Section):
    every: int = Field(default=6, ge=1)
    """Updates between two looks at the validation tasks."""
    validation_samples: int = Field(default=1, ge=1)
    """Attempts at each validation task."""
    test_samples: int = Field(default=1, ge=1)
    """Attempts at each held-out task, before and after."""


class VerificationConfig(Section):
    canary_every: int = Field(default=8, ge=0)
    """Updates between two looks at submissions whose verdict is known; at 0 only at start and end."""
    canary_tasks: int = Field(default=2, ge=0)
    """The run's own tasks whose gold and untouched state are judged again at each look."""


class JudgeConfig(Section):
    """A model that gives the signal `judge`, to tasks that name it. Without this section there is none."""

    url: str
    """Address of an OpenAI-compatible endpoint, such as http://host:8000/v1."""
    model: str = Field(default="default", min_length=1)
    """Model to ask the endpoint for."""
    api_key_env: str | None = None
    """Environment variable that holds the endpoint's key; the key itself stands in no file."""
    weight: float = Field(default=1.0, gt=0, le=100)
    """Weight of its opinion beside a task's other signals, which have 1; it counts by half, being uncalibrated."""
    timeout_s: float = Field(default=60.0, gt=0, le=120)
    """Seconds for one opinion, tries included; without one by then the signal is missing."""
    tries: int = Field(default=3, ge=1, le=10)
    """Times that an endpoint which does not answer is asked."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError(f"{url!r} is not an http address: write e.g. http://host:8000/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("an address has no user, password or query here: name the key's variable in api_key_env")
        return url

    @field_validator("api_key_env")
    @classmethod
    def _is_variable(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            # Not quoted: it may be the key itself.
            raise ValueError("this is no name of an environment variable; the key itself must not stand here")
        return name


class RunConfig(Section):
    """Everything that decides a run."""

    name: str = Field(default="run", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    """Begins the name of the run folder: letters, digits, `.`, `_` and `-`."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of the model, the sampling and the order of tasks."""
    tasks: TasksConfig = TasksConfig()
    sandbox: SandboxConfig = SandboxConfig()
    policy: PolicyConfig = PolicyConfig()
    trainer: TrainerConfig = TrainerConfig()
    rollout: RolloutConfig = RolloutConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    sft: SftConfig = SftConfig()
    study: StudyConfig | None = None
    rl: RlConfig = RlConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    verification: VerificationConfig = VerificationConfig()
    reward: RewardConfig = RewardConfig()
    judge: JudgeConfig | None = None

    @property
    def updates(self) -> int:
        """Versions that the run makes after version 0."""
        return self.study.updates if self.study else self.rl.updates

    @property
    def correct_rate(self) -> float:
        """Share of the run's demonstrations that do the right thing."""
        shown = self.study is not None and self.study.source == "demonstrations"
        return self.study.correct_rate if self.study is not None and shown else self.sft.correct_rate

    @model_validator(mode="before")
    @classmethod
    def _study_alone(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or given.get("study") is None or not isinstance(given.get("rl", {}), Mapping):
            return given
        return {**given, "rl": {"updates": 0, **given.get("rl", {})}}

    @model_validator(mode="after")
    def _one_way_of_learning(self) -> RunConfig:
        if self.study is None:
            return self
        if self.rl.updates:
            raise ValueError(f"`study` is in place of reinforcement learning, and rl.updates is {self.rl.updates}")
        if self.reward.model is not None:
            raise ValueError("reward.model gives rewards, and `study` learns without: remove one")
        if self.study.source == "demonstrations" and self.sft.steps:
            raise ValueError("`study` learns from demonstrations, and so does the warm start: set sft.steps = 0")
        silent = self.tasks.family == "functions" or self.policy.speech == "fence"
        if self.study.source == "demonstrations" and silent:
            raise ValueError("tasks of the family functions, and the speech fence, have no demonstrations")
        return self

    @model_validator(mode="after")
    def _can_run(self) -> RunConfig:
        rollout, attempts = self.rollout, self.rollout.tasks_per_update * self.rollout.group_size
        if rollout.max_context > self.policy.context:
            raise ValueError(
                f"rollout.max_context {rollout.max_context} is above policy.context {self.policy.context}: "
                f"{rollout.max_context - self.policy.context} tokens too many for the model"
            )
        if self.rl.minibatches > attempts:
            raise ValueError(
                f"rl.minibatches {self.rl.minibatches} is above the attempts of an update: tasks_per_update "
                f"{rollout.tasks_per_update} × group_size {rollout.group_size} = {attempts}"
            )
        if self.tasks.family == "functions" and self.sft.steps:
            raise ValueError("tasks of the family functions cannot be demonstrated: set sft.steps = 0")
        if self.tasks.family == "functions" and self.policy.model is None:
            raise ValueError("the family functions is for a model that speaks: set policy.model, such as smollm2")
        if self.policy.speech == "fence" and self.sft.steps:
            raise ValueError("demonstrations edit files, which the speech fence cannot say: set sft.steps = 0")
        return self

    def to_toml(self) -> str:
        """The resolved configuration as TOML; `load_config` of it gives an equal one."""
        import tomli_w

        return tomli_w.dumps(self.model_dump(exclude_none=True))
