"""The strict models that a scenario is made of.

Owns: `Scenario` and its sections: every key, its default, its meaning and its bounds.
Invariant: a key that nobody reads, a value of the wrong type or a combination that cannot be simulated is refused.
Must not know: files, overrides, how any of it is simulated.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from practicum.config.section import Section

Scheduler = Literal["synchronous", "batches", "continuous"]
SCHEDULERS: tuple[Scheduler, ...] = get_args(Scheduler)


class Spread(Section):
    """How an amount varies. A plain number in its place is one that does not."""

    kind: Literal["fixed", "exponential", "log-normal"] = "fixed"
    """Log-normal amounts are given by median and p99, the others by their mean."""
    mean: float | None = Field(default=None, ge=0)
    """Of `fixed` and `exponential`."""
    median: float | None = Field(default=None, gt=0)
    """Of `log-normal`."""
    p99: float | None = Field(default=None, gt=0)
    """Of `log-normal`: what 1 of 100 is above."""

    @model_validator(mode="after")
    def _all_is_read(self) -> Spread:
        if self.kind == "log-normal":
            if self.median is None or self.p99 is None or self.mean is not None:
                raise ValueError("a log-normal amount has `median` and `p99`, and no `mean`")
            if self.p99 < self.median:
                raise ValueError(f"p99 {self.p99:g} < median {self.median:g}: 99 of 100 are not below the middle one")
        elif self.mean is None or self.median is not None or self.p99 is not None:
            raise ValueError(f"a {self.kind} amount has `mean`, and no `median` or `p99`")
        return self


def _plain_number(given: object) -> object:
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    return {"kind": "fixed", "mean": given} if is_number else given


Amount = Annotated[Spread, BeforeValidator(_plain_number)]


def _fixed(mean: float) -> Spread:
    return Spread(kind="fixed", mean=mean)


class HostsConfig(Section):
    count: int = Field(default=1, ge=1, le=100_000)
    """Machines that boxes are made on."""
    slots: int = Field(default=64, ge=1, le=100_000)
    """Boxes alive at once on each."""
    create: Amount = _fixed(1.0)
    """Seconds until a box is there."""
    creations_per_s: float = Field(default=20.0, gt=0)
    """Boxes that one host can begin to make in a second."""
    close_s: float = Field(default=0.2, ge=0)
    """Seconds until a box is gone and its place is free."""


class EnginesConfig(Section):
    replicas: int = Field(default=1, ge=1, le=100_000)
    """Engines that sample from the policy."""
    tokens_per_s: float = Field(default=2000.0, gt=0)
    """What each makes at most, of all its samples together."""
    stream_tokens_per_s: float = Field(default=50.0, gt=0)
    """What one sample gets at most, however few there are beside it."""
    slots: int = Field(default=64, ge=1, le=100_000)
    """Samples that each makes side by side; others wait."""
    publish_s: float = Field(default=1.0, ge=0)
    """Seconds for which all stand still to take new weights; samples under way then go on with those."""


class EpisodeConfig(Section):
    turns: Amount = _fixed(8)
    """Turns; the last one submits."""
    tokens: Amount = _fixed(200)
    """Tokens of one turn."""
    max_tokens: int = Field(default=32_000, ge=1)
    """Tokens at which the sample of a turn is cut."""
    action: Amount = _fixed(2.0)
    """Seconds of one action in the box."""
    spread_p99: float = Field(default=1.0, ge=1)
    """Episodes differ by a log-normal factor of median 1 and this p99, upon all their tokens and actions."""
    task_spread_p99: float = Field(default=1.0, ge=1)
    """Tasks differ by such a factor, too, which all attempts at one share: this part can be learnt from history."""
    tasks: int = Field(default=100, ge=1, le=1_000_000)
    """Different tasks; groups take them in turn."""
    deadline_s: float = Field(default=3600.0, gt=0)
    """Seconds of actions after which an episode ends as it stands."""
    command_s: float = Field(default=600.0, gt=0)
    """Seconds after which one action is stopped."""
    success: float = Field(default=0.5, ge=0, le=1)
    """Share of finished episodes that pass."""


class VerifierConfig(Section):
    slots: int = Field(default=16, ge=1, le=1_000_000)
    """Submissions judged side by side."""
    seconds: Amount = _fixed(5.0)
    """Time of one verdict."""


class FaultsConfig(Section):
    box_death: float = Field(default=0.0, ge=0, lt=1)
    """Share of episodes of the usual number of turns whose box dies; a longer one is in more danger."""
    create_failure: float = Field(default=0.0, ge=0, lt=1)
    """Share of creations that fail."""
    verifier_fault: float = Field(default=0.0, ge=0, lt=1)
    """Share of verdicts that the judge fails to reach."""
    policy_error: float = Field(default=0.0, ge=0, lt=1)
    """Share of samples that are answered by an error of the server (5xx)."""
    hang: float = Field(default=0.0, ge=0, lt=1)
    """Share of actions that never answer, not even when their time is over."""
    hosts_lost: int = Field(default=0, ge=0)
    """Hosts that die at `hosts_lost_at_s`."""
    hosts_lost_at_s: float = Field(default=600.0, ge=0)
    """When they die."""
    hosts_back_at_s: float | None = Field(default=None, gt=0)
    """When they are there again; never where it is left out."""
    engines_lost: int = Field(default=0, ge=0)
    """Engines that die at `engines_lost_at_s`."""
    engines_lost_at_s: float = Field(default=600.0, ge=0)
    """When they die."""
    engines_back_at_s: float | None = Field(default=None, gt=0)
    """When they are there again; never where it is left out."""
    engines_hang: bool = False
    """Lost engines go on taking requests, and never answer."""

    @model_validator(mode="after")
    def _back_after_lost(self) -> FaultsConfig:
        for what in ("hosts", "engines"):
            lost, back = getattr(self, f"{what}_lost_at_s"), getattr(self, f"{what}_back_at_s")
            if back is not None and back <= lost:
                raise ValueError(f"{what}_back_at_s {back:g} ≤ {what}_lost_at_s {lost:g}: back before they are gone")
        return self


class Scenario(Section):
    """Everything that decides a simulation."""

    seed: int = Field(default=0, ge=0)
    """Seed of every draw."""
    scheduler: Scheduler = "continuous"
    """How groups are collected for updates; the synchronous loop is one way."""
    compare: tuple[Scheduler, ...] = Field(default=(), strict=False)
    """Further schedulers to run on the same scenario."""
    updates: int = Field(default=20, ge=2, le=1_000_000)
    """Updates of the trainer."""
    warmup: int = Field(default=4, ge=1)
    """Updates left out of the rates, in which the pipeline fills."""
    groups_per_update: int = Field(default=8, ge=1, le=100_000)
    """Groups that one update trains on."""
    group_size: int = Field(default=8, ge=1, le=10_000)
    """Attempts of a group."""
    spares: int = Field(default=0, ge=0, le=10_000)
    """Attempts of a group beyond its size; the first `group_size` that end are used, which favours short ones."""
    max_staleness: int = Field(default=1, ge=0, le=10_000)
    """Most versions that what is trained on may lag behind the trainer."""
    max_concurrent: int | None = Field(default=None, ge=1, le=1_000_000)
    """Most attempts in boxes at once; as many as there are boxes where it is left out."""
    adaptive: bool = False
    """Let measured load move the number of attempts at once, between `group_size` and `max_concurrent`."""
    train: Amount = _fixed(30.0)
    """Seconds of one update."""
    episode: EpisodeConfig = EpisodeConfig()
    hosts: HostsConfig = HostsConfig()
    engines: EnginesConfig = EnginesConfig()
    verifier: VerifierConfig = VerifierConfig()
    faults: FaultsConfig = FaultsConfig()

    @property
    def concurrent(self) -> int:
        """Attempts in boxes at once, at most."""
        places = self.hosts.count * self.hosts.slots
        return places if self.max_concurrent is None else min(self.max_concurrent, places)

    @property
    def per_update(self) -> int:
        """Episodes that one update trains on."""
        return self.groups_per_update * self.group_size

    @model_validator(mode="after")
    def _can_run(self) -> Scenario:
        if self.warmup >= self.updates:
            raise ValueError(f"warmup {self.warmup} ≥ updates {self.updates}: no update is left to measure")
        places = self.hosts.count * self.hosts.slots
        if self.max_concurrent is not None and self.max_concurrent > places:
            raise ValueError(
                f"max_concurrent {self.max_concurrent} is above hosts.count {self.hosts.count} × hosts.slots "
                f"{self.hosts.slots} = {places} boxes"
            )
        if (
            self.faults.hosts_lost >= self.hosts.count
            and self.faults.hosts_back_at_s is None
            and self.faults.hosts_lost
        ):
            raise ValueError(
                f"faults.hosts_lost {self.faults.hosts_lost} leaves no host of {self.hosts.count}, for ever"
            )
        engines, lost = self.engines.replicas, self.faults.engines_lost
        if lost >= engines and self.faults.engines_back_at_s is None:
            raise ValueError(f"faults.engines_lost {lost} leaves no engine of {engines}, for ever")
        if self.episode.command_s > self.episode.deadline_s:
            raise ValueError(
                f"episode.command_s {self.episode.command_s:g} is above episode.deadline_s {self.episode.deadline_s:g}"
            )
        return self
