"""What may be said otherwise when a run is continued.

Owns: `check_changes`, `take_changes`, `Change`, `Source`, `check_source`, `check_unfinished`, which keys may change.
Invariant: a run goes on with the configuration that it was begun with, by its audit trail, but for keys that only
extend it, or say how much is done at once and how long is waited; such a change is in the trail before it acts. The
file that a run was begun from is not read for settings again.
Must not know: what any other key does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from practicum.config import RunConfig, read_config, recipes
from practicum.errors import ConfigError, NothingLearned, StoreError
from practicum.pipeline.metrics import plain
from practicum.pipeline.runfolder import RunFolder
from practicum.trajectories import chain as audit
from practicum.trajectories.durable import write_atomic

RECONFIGURED = "reconfigured"
_MORE = frozenset({"rl.updates", "study.updates"})
"""May become larger: the run then makes more updates, and learning rates reach their last value later."""
_FREE = frozenset(
    {
        "sandbox.max_concurrent",
        "sandbox.verify_concurrent",
        "schedule.backlog",
        "schedule.overlap",
        "schedule.adaptive",
        "schedule.attempt_s",
        "sft.threads",
        "trainer.threads",
        "trainer.recompute",
        "rollout.threads",
        "judge.api_key_env",
        "judge.timeout_s",
        "judge.tries",
    }
)
"""How much is done at once, and how long is waited for it. What is waited for longer comes rather than being missing,
and in mode continuous how much is done at once also moves how old attempts are when they train."""


class Source(NamedTuple):
    """The recipe or file, by the `name` that was given, that a configuration was read from, and all it `says`."""

    name: str
    says: dict[str, Any]

    @classmethod
    def read(cls, name: str) -> Source:
        """Raises `ConfigError`."""
        return cls(name, plain(read_config(name)))


class Change(NamedTuple):
    """A key, what the run was begun with, and what is wanted now; None where it was or is not set."""

    key: str
    old: Any
    new: Any


def check_changes(folder: RunFolder, config: RunConfig) -> list[Change]:
    """What `config` says otherwise than the run in `folder` was told, where all of that may change.

    Raises `ConfigError` for the first key that may not, or `StoreError`.
    """
    old, new = _flat(_own(folder).model_dump(mode="json")), _flat(config.model_dump(mode="json"))
    found = [Change(key, old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys())]
    changes = [change for change in found if change.old != change.new]
    for key, was, now in changes:
        if key in _FREE or (key in _MORE and was is not None and now is not None and now > was):
            continue
        why = "it may only become larger" if key in _MORE else "another value would make it another run"
        raise ConfigError(
            f"{key} is {_said(now)}, and {folder.path} was started with {_said(was)}: {why}",
            fix=f"put {key} back to {_said(was)}, or start a new run without --resume",
        )
    return changes


def check_source(folder: RunFolder, name: str) -> None:
    """Raises `ConfigError` where `name` is not the recipe that the run was begun from, or a file that does not say what
    the run's own did then. A recipe is as it was shipped, and what it says now is of no account."""
    fix = f"leave {name} out: the run has its own settings, and --set changes those that may"
    told = _told(folder, "created")[0]["data"].get("source")
    if told is None:
        raise ConfigError(f"{folder.path} does not record what recipe or file it was started from", fix=fix)
    begun = Source(**told)
    if name in recipes():
        if name != begun.name:
            raise ConfigError(f"{folder.path} was started from {begun.name}, not from {name}", fix=fix)
        return
    was, now = _flat(begun.says), _flat(Source.read(name).says)
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            raise ConfigError(
                f"{key} is {_said(now.get(key))} in {name}, and was {_said(was.get(key))} in {begun.name} when "
                f"{folder.path} was started from it",
                fix=fix,
            )


def check_unfinished(folder: RunFolder) -> None:
    """Raises `NothingLearned` for a run that has ended: its held-out tasks were looked at."""
    summary = folder.summary()
    if summary is not None:
        raise NothingLearned(
            f"{folder.path} is finished: {summary['updates']} updates were made",
            fix=f"start a new run with more than {summary['updates']}: --set rl.updates=N, or study.updates",
        )


def take_changes(folder: RunFolder, config: RunConfig) -> list[Change]:
    """Have the run in `folder`, which is open for writing, go on with `config`; says what has changed.

    Raises as `check_changes` does; then nothing was written.
    """
    changes = check_changes(folder, config)
    if changes:  # the file first: what an interruption leaves is then found as a change again
        write_atomic(folder.path / "config.toml", config.to_toml().encode())
        said = [change._asdict() for change in changes]
        folder.audit(RECONFIGURED, changes=said, config=config.model_dump(mode="json"))
    return changes


def said_of(change: Change) -> str:
    """The change as a person would say it."""
    return f"{change.key} is {_said(change.new)} from here on; it was {_said(change.old)}"


def _own(folder: RunFolder) -> RunConfig:
    """What the run was begun with, and told since."""
    told = _told(folder, "created", RECONFIGURED)
    try:
        return RunConfig.model_validate(told[-1]["data"]["config"])
    except (ValidationError, KeyError, TypeError) as error:
        raise StoreError(
            f"{folder.audit_path}: the run was started with settings that this version does not know: {error}",
            fix="continue it with the version that it was started with",
        ) from error


def _told(folder: RunFolder, *events: str) -> list[dict[str, Any]]:
    """The trail's entries of these events, of which there is one at least."""
    told = [each for each in audit.entries(folder.audit_path) if each["event"] in events]
    if not told:
        raise StoreError(f"{folder.audit_path} does not say what the run was started with")
    return told


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Dotted keys; a section that is None has none."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{above}{name}.")
        elif value is not None:
            found[f"{above}{name}"] = value
    return found


def _said(value: Any) -> str:
    return "not set" if value is None else repr(value) if isinstance(value, str) else str(value).lower()
