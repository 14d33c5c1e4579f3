"""The task: checkable work as frozen data.

Owns: `Task`, `Limits`, `Verification`, `PlainCheck`, `RewardRule` and the digest that names a task.
Invariant: two tasks with one digest ask for the same work, in the same environment, judged the same way.
Must not know: disks, boxes, policies.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from practicum.records.recipe import Recipe
from practicum.records.tree import Tree, digest_of, tree_digest

Runner = Literal["plain", "pytest", "unittest", "command", "harbor", "variants"]
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one box may use. Times in seconds of wall clock, sizes in bytes."""

    cpus: float = 1.0
    memory_bytes: int = 512 * MIB
    pids: int = 64
    disk_bytes: int = 64 * MIB
    output_bytes: int = 64 * 1024
    network: Literal["none"] = "none"
    command_s: float = 10.0
    episode_s: float = 120.0


@dataclass(frozen=True, slots=True)
class PlainCheck:
    """Out-of-process comparison: the candidate returns data, the judge compares elsewhere.

    `entry` is `module:function` in the workspace; `cases` and `generator` are names under `tests/`.
    """

    entry: str
    cases: str
    generator: str | None = None


@dataclass(frozen=True, slots=True)
class RewardRule:
    """How an outcome becomes a number: a table by name, and signals that may take up to `band` off a pass."""

    table: str = "default"
    band: float = 0.0
    signals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """How a submission is judged.

    `tests` are the frozen files, by name under `tests/`; only the judge's box ever holds them.
    `fail_to_pass` fail on the untouched task and must pass; `pass_to_pass` must keep passing.
    `unguarded` are patterns of ids of pytest and unittest tests that cannot be run more than once in a process, and so
    are run without sentinels.
    """

    runner: Runner
    tests: Tree
    files: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    build: str | None = None
    plain: PlainCheck | None = None
    timeout_s: float = 30.0
    unguarded: tuple[str, ...] = ()
    reward: RewardRule = RewardRule()

    @property
    def digest(self) -> str:
        """Digest of the frozen tests and of everything that decides the outcome."""
        plain = [self.plain.entry, self.plain.cases, self.plain.generator] if self.plain else None
        # Keys that came later are left out where they say nothing, so that older tasks keep their digests.
        later: dict[str, Any] = {"unguarded": sorted(self.unguarded)} if self.unguarded else {}
        if self.reward != RewardRule():
            later["reward"] = [self.reward.table, float(self.reward.band), sorted(self.reward.signals)]
        return digest_of(
            later
            | {
                "runner": self.runner,
                "tests": tree_digest(self.tests),
                "files": list(self.files),
                "fail_to_pass": sorted(self.fail_to_pass),
                "pass_to_pass": sorted(self.pass_to_pass),
                "build": self.build,
                "plain": plain,
                "timeout_s": float(self.timeout_s),  # 5 and 5.0 are the same limit
            }
        )


@dataclass(frozen=True, slots=True)
class Task:
    """One row of checkable work.

    `files` is the agent's starting workspace, laid at `workspace`, and already holds the visible tests.
    `editable` are globs relative to `workspace`: what may leave the box as the submission.
    `solution` holds the gold (`solve.sh` and what it needs), or is empty; only the oracle's box gets it.
    """

    id: str
    instruction: str
    files: Tree
    verification: Verification
    layer: str | Recipe = "python"
    workspace: str = "/app"
    editable: tuple[str, ...] = ("**",)
    limits: Limits = Limits()
    solution: Tree = field(default_factory=dict)
    split: str = "train"
    domain: str = "bug-fix"
    difficulty: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 naming the work: instruction, files, environment, limits and verification."""
        numbers = {name: getattr(self.limits, name) for name in Limits.__slots__}
        limits = numbers | {name: float(numbers[name]) for name in ("cpus", "command_s", "episode_s")}
        return digest_of(
            {
                "schema": 1,
                "instruction": self.instruction,
                "files": tree_digest(self.files),
                "layer": self.layer if isinstance(self.layer, str) else {"recipe": self.layer.digest},
                "workspace": self.workspace,
                "editable": list(self.editable),
                "limits": limits,
                "verification": self.verification.digest,
            }
        )

    @property
    def content(self) -> str:
        """SHA-256 naming all of the task: the work, and also its gold, split, domain, difficulty and provenance."""
        return digest_of(
            {
                "schema": 1,
                "work": self.digest,
                "id": self.id,
                "solution": tree_digest(self.solution),
                "visible": list(self.verification.visible),
                "split": self.split,
                "domain": self.domain,
                "difficulty": self.difficulty,
                "provenance": json.loads(json.dumps(self.provenance, default=str)),  # TOML has dates
            }
        )
