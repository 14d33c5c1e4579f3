"""`task.toml` as values, and values as `task.toml`.

Owns: `Manifest`, `read_manifest`, `manifest_text`: every key that practicum honours, refuses or leaves alone.
Invariant: below [practicum] every key is known or refused; a Harbor key that changes the work or the judging and
cannot be honoured is refused by name; other Harbor keys are ignored, as Harbor ignores [practicum].
Must not know: the other files of a task directory.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field, replace
from typing import Any, cast, get_args

import tomli_w

from practicum.errors import TaskError
from practicum.records.task import MIB, Limits, PlainCheck, RewardRule, Runner, Task, Verification
from practicum.tasks.tables import Table

ORG = "practicum"  # Harbor wants `org/name`; ours is left out of the id
HARBOR_CHECK = "reward"  # the one expected id of a task that is judged by its own tests/test.sh
LEAST_MEMORY = 16 * MIB  # an interpreter that does nothing takes half of it
_OWN_RUNNERS = tuple(name for name in get_args(Runner) if name != "harbor")
_NETWORK_FIX = 'practicum boxes have no network: leave `network_mode` out or set it to "no-network"'
_UNHONOURED = {  # table → keys that change the work or its judging; false or empty values are harmless
    "": ("steps", "artifacts"),
    "agent": ("user", "allowed_hosts"),
    "verifier": ("env", "user", "environment", "collect", "allowed_hosts"),
    "environment": (
        *("gpus", "gpu_types", "tpu", "mcp_servers", "env", "skills_dir", "healthcheck"),
        *("allowed_hosts", "allow_internet"),
    ),
    "solution": ("env",),
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `task.toml` says. `verification` has no tests yet; None stands for "not said"."""

    verification: Verification
    id: str | None = None
    limits: Limits = Limits()
    image: str | None = None
    layer: str | None = None
    workspace: str | None = None
    editable: tuple[str, ...] = ("**",)
    split: str = "train"
    domain: str = "bug-fix"
    difficulty: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)


def read_manifest(text: str, file: str) -> Manifest:
    """Parse `task.toml`; `file` is how messages name it. Raises `TaskError`."""
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{file} is not valid TOML: {error}") from None
    top = Table(values, name="", file=file)
    _refuse_unhonoured(top)
    name = _harbor(top, "task").optional("name", str)
    environment, verifier = _harbor(top, "environment"), _harbor(top, "verifier")
    metadata = dict(top.take("metadata", dict, {}))
    difficulty = metadata.pop("difficulty") if isinstance(metadata.get("difficulty"), str) else None
    ours = top.table("practicum")
    harbor_s = verifier.take("timeout_sec", float, 600.0)
    if harbor_s <= 0 or not math.isfinite(harbor_s):
        raise TaskError(f"{verifier.where('timeout_sec')} must be a positive number, not {harbor_s}")
    manifest = Manifest(
        verification=Verification("harbor", {}, fail_to_pass=(HARBOR_CHECK,), timeout_s=harbor_s),
        id=name.removeprefix(f"{ORG}/") if name else None,
        limits=_limits(environment, _harbor(top, "agent"), ours.table("limits") if ours else None),
        image=environment.optional("docker_image", str),
        workspace=environment.optional("workdir", str),
        difficulty=difficulty,
        provenance=metadata,
    )
    return _practicum(manifest, ours, harbor_s if verifier.has("timeout_sec") else None) if ours else manifest


def _practicum(manifest: Manifest, table: Table, timeout_s: float | None) -> Manifest:
    tests, plain = table.table("tests"), table.table("plain")
    build = table.optional("build", str)
    reward = _reward(table.table("reward"))
    verification = replace(manifest.verification, build=build, reward=reward)
    if tests is not None:
        verification = _tests(tests, plain, build, reward, 30.0 if timeout_s is None else timeout_s)
    elif plain is not None:
        raise TaskError(f"{table.where('plain')} needs [practicum.tests]")
    result = replace(
        manifest,
        verification=verification,
        layer=table.optional("layer", str),
        workspace=table.optional("workspace", str) or manifest.workspace,
        editable=table.strings("editable", manifest.editable),
        split=table.take("split", str, manifest.split),
        domain=table.take("domain", str, manifest.domain),
    )
    table.finish()
    return result


def _reward(table: Table | None) -> RewardRule:
    """Whether there is such a table, and whether the band fits it, is for verification to say."""
    if table is None:
        return RewardRule()
    rule = RewardRule(
        table=table.take("table", str, RewardRule().table),
        band=table.take("band", float, RewardRule().band),
        signals=table.strings("signals"),
    )
    table.finish()
    return rule


def _tests(table: Table, plain: Table | None, build: str | None, reward: RewardRule, timeout_s: float) -> Verification:
    runner = table.required("runner", str)
    if runner not in _OWN_RUNNERS:
        raise TaskError(
            f"{table.where('runner')} is {runner!r}",
            fix=f"use one of {', '.join(_OWN_RUNNERS)}; or leave [practicum.tests] out to be judged by tests/test.sh",
        )
    verification = Verification(
        runner=cast(Runner, runner),
        tests={},
        files=table.strings("files"),
        visible=table.strings("visible"),
        fail_to_pass=table.strings("fail_to_pass"),
        pass_to_pass=table.strings("pass_to_pass"),
        build=build,
        timeout_s=table.take("timeout_s", float, timeout_s),
        unguarded=table.strings("unguarded"),
        reward=reward,
    )
    if verification.unguarded and runner not in ("pytest", "unittest"):
        raise TaskError(f"{table.where('unguarded')} is for the runners pytest and unittest", fix="leave it out")
    if not verification.fail_to_pass:
        raise TaskError(f"{table.where('fail_to_pass')} names no test, so doing nothing would pass")
    if verification.timeout_s <= 0 or not math.isfinite(verification.timeout_s):
        raise TaskError(f"{table.where('timeout_s')} must be a positive number, not {verification.timeout_s}")
    table.finish()
    if (runner == "plain") != (plain is not None):
        raise TaskError(
            f'{table.where("runner")} is {runner!r}, and [practicum.plain] goes with runner = "plain" and only with it'
        )
    if plain is None:
        return verification
    check = PlainCheck(plain.required("entry", str), plain.required("cases", str), plain.optional("generator", str))
    plain.finish()
    return replace(verification, plain=check)


def _harbor(top: Table, key: str) -> Table:
    return top.table(key) or Table({}, name=key, file=top.file)


def _refuse_unhonoured(top: Table) -> None:
    for name, keys in _UNHONOURED.items():
        table = _harbor(top, name) if name else top
        for key in keys:
            if table.get(key):
                fix = _NETWORK_FIX if key in ("allowed_hosts", "allow_internet") else "leave it out"
                raise TaskError(f"{table.where(key)} cannot be honoured here", fix=fix)
    for name in ("environment", "agent", "verifier"):
        table = _harbor(top, name)
        if table.get("network_mode") not in (None, "no-network"):
            value = table.get("network_mode")
            raise TaskError(f"{table.where('network_mode')} is {value!r}, which is refused", fix=_NETWORK_FIX)
    environment = _harbor(top, "environment")
    if environment.get("os") not in (None, "linux"):
        raise TaskError(f'{environment.where("os")} must be "linux", not {environment.get("os")!r}')


def _limits(environment: Table, agent: Table, ours: Table | None) -> Limits:
    """Defaults, overridden by Harbor's keys, overridden by [practicum.limits]."""
    base = Limits()
    limits = Limits(
        cpus=environment.take("cpus", float, base.cpus),
        memory_bytes=environment.take("memory_mb", int, base.memory_bytes // MIB) * MIB,
        disk_bytes=environment.take("storage_mb", int, base.disk_bytes // MIB) * MIB,
        episode_s=agent.take("timeout_sec", float, base.episode_s),
    )
    if ours is not None:
        given = {n: ours.take(n, type(getattr(limits, n)), getattr(limits, n)) for n in _LIMIT_NAMES}
        ours.finish()
        limits = replace(limits, **given)
    for name in _LIMIT_NAMES:
        value = getattr(limits, name)
        if not 0 < value < math.inf:
            raise TaskError(f"{environment.file}: limit `{name}` must be a positive number, not {value}")
    if limits.memory_bytes < LEAST_MEMORY:
        raise TaskError(
            f"{environment.file}: {limits.memory_bytes} bytes of memory are too few for anything to run in",
            fix=f"`memory_mb` in [environment] is at least {LEAST_MEMORY // MIB}, and 512 by default",
        )
    return limits


_LIMIT_NAMES = tuple(name for name in Limits.__slots__ if name != "network")


def manifest_text(task: Task) -> str:
    """`task.toml` for `task`, such that `read_manifest` gives the same values back.

    Raises `TaskError` for provenance that TOML cannot hold.
    """
    limits, rest = task.limits, _other_limits(task.limits)
    environment = {
        "cpus": int(limits.cpus) if limits.cpus == int(limits.cpus) else limits.cpus,
        "memory_mb": max(1, limits.memory_bytes // MIB),
        "storage_mb": max(1, limits.disk_bytes // MIB),
    }
    values: dict[str, Any] = {
        "schema_version": "1.4",
        "task": {"name": task.id if "/" in task.id else f"{ORG}/{task.id}"},
        "metadata": {**task.provenance, **({"difficulty": task.difficulty} if task.difficulty else {})},
        "agent": {"timeout_sec": limits.episode_s},
        "verifier": {"timeout_sec": task.verification.timeout_s},
        "environment": environment,
        "practicum": _practicum_values(task) | ({"limits": rest} if rest else {}),
    }
    try:
        return tomli_w.dumps({key: value for key, value in values.items() if value != {}})
    except (TypeError, ValueError) as error:
        raise TaskError(f"task {task.id!r}: its provenance cannot be written as TOML: {error}") from None


def _other_limits(limits: Limits) -> dict[str, Any]:
    """What Harbor's keys cannot say: sizes that are not whole MiB, and limits that Harbor does not have."""
    base = Limits()
    exact = {name for name in ("memory_bytes", "disk_bytes") if getattr(limits, name) % MIB == 0}
    said = exact | {"cpus", "episode_s"}
    names = [name for name in _LIMIT_NAMES if name not in said]
    return {n: getattr(limits, n) for n in names if n in ("memory_bytes", "disk_bytes") or _differs(limits, base, n)}


def _differs(limits: Limits, base: Limits, name: str) -> bool:
    return bool(getattr(limits, name) != getattr(base, name))


def _practicum_values(task: Task) -> dict[str, Any]:
    check = task.verification
    values: dict[str, Any] = {
        "workspace": task.workspace,
        "editable": list(task.editable),
        "layer": task.layer if isinstance(task.layer, str) else task.layer.base,
        "split": task.split,
        "domain": task.domain,
    }
    if check.build is not None:
        values["build"] = check.build
    if check.reward != RewardRule():
        reward = {"table": check.reward.table, "band": check.reward.band, "signals": list(check.reward.signals)}
        values["reward"] = {key: value for key, value in reward.items() if value != []}
    if check.runner == "harbor":
        return values
    values["tests"] = {
        "runner": check.runner,
        "files": list(check.files),
        "visible": list(check.visible),
        "fail_to_pass": list(check.fail_to_pass),
        "pass_to_pass": list(check.pass_to_pass),
        "timeout_s": check.timeout_s,
    }
    if check.unguarded:
        values["tests"]["unguarded"] = list(check.unguarded)
    if check.plain is not None:
        plain = {"entry": check.plain.entry, "cases": check.plain.cases, "generator": check.plain.generator}
        values["plain"] = {key: value for key, value in plain.items() if value is not None}
    return values
