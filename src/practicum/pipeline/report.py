"""The report: one self-contained page about one run.

Owns: `write_report`; the page is `report_template.html` beside this file.
Invariant: the page needs no network and runs no script (its own policy forbids both); whatever a model said is
shown as text. It can be written of a run that was interrupted: what was not measured is left out.
Must not know: how anything was measured.

Reads the rows described in `pipeline.metrics`, the trajectory store, the configuration and the summary:

    {"seed", "wall_s", "updates", "episodes", "chosen_update",
     "held_out": {"n", "before": {"successes", "rate", "low", "high"}, "after": {…}, "difference": {"mean", "low",
     "high"}}, "boxes": {"created", "leaked"}, "faults": {kind: count}, "faults_handled": {kind: {how: count}},
     "time": {stage: seconds}, "provenance": {name: text}}
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from practicum import __version__
from practicum.errors import StoreError
from practicum.pipeline import wording
from practicum.pipeline.charts import NARROW, Point, Series, interval_chart, line_chart
from practicum.pipeline.quarantine import recorded
from practicum.pipeline.runfolder import RunFolder
from practicum.pipeline.schedule_report import schedule_section
from practicum.pipeline.story import cut, pick_stories
from practicum.pipeline.verifier_report import judge_section
from practicum.records.task import Task
from practicum.trajectories.durable import write_atomic
from practicum.trajectories.store import TrajectoryStore

Row = Mapping[str, Any]
CURVES = (  # key, title, what it says, drawn as shares
    ("reward", "Reward", "mean of the attempts of each update", False),
    ("entropy", "Entropy", "nats per sampled token; near zero the policy has stopped exploring", False),
    (
        "groups_with_signal",
        "Groups with signal",
        "groups whose attempts differ in reward, the only ones that teach",
        True,
    ),
    ("staleness", "Staleness", "versions between sampling and training", False),
    ("boxes_per_s", "Sandboxes per second", "agents' and judges' boxes together", False),
    ("clip_fraction", "Clipped tokens", "share of tokens whose ratio left the trust region", False),
    ("accuracy", "Pairs told apart", "share of pairs whose success is preferred more than by version 0", True),
    ("margin", "Margin", "by how much, in the loss's own units", False),
)


def write_report(folder: RunFolder, tasks: Mapping[str, Task] | None = None) -> Path:
    """Write `report.html` of `folder` and return its path.

    `tasks` by id give the diffs their context and the stories their instruction. Raises `StoreError`.
    """
    page = render(folder, tasks or {})
    write_atomic(folder.report_path, page.encode())
    return folder.report_path


def render(folder: RunFolder, tasks: Mapping[str, Task]) -> str:
    """The page as text."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        """Every value on its way into the page; markup is ours, all else is somebody's text."""
        return value if isinstance(value, Markup) else wording.visible("" if value is None else str(value))

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=shown, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(
        {name: getattr(wording, name) for name in ("percent", "interval", "points", "duration", "count", "number")}
    )
    source = (resources.files("practicum.pipeline") / "report_template.html").read_text("utf-8")
    return environment.from_string(source).render(_content(folder, tasks, Markup))


def _content(folder: RunFolder, tasks: Mapping[str, Task], markup: Any) -> dict[str, Any]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in folder.metrics():
        rows[str(row.get("kind"))].append(row)
    summary: Row = folder.summary() or {}
    config = folder.config
    time = summary.get("time") or _summed(rows["update"])
    return {
        "name": config.name,
        "run_id": folder.id,
        "status": "finished" if summary else folder.status,
        "version": __version__,
        "config": config,
        "config_text": config.to_toml(),
        "summary": summary,
        "held_out": _held_out(summary, markup),
        "grid": _task_grid(folder.store),
        "success": markup(_success(rows)),
        "curves": _curves(rows, markup),
        "time": [
            {"stage": stage, "share": share, "seconds": time[stage], "style": "abcdefgh"[index % 8]}
            for index, (stage, share) in enumerate(wording.shares(time))
        ],
        "schedule": schedule_section(rows["update"]),
        "episodes": summary.get("episodes", sum(row.get("episodes") or 0 for row in rows["update"])),
        "updates": summary.get("updates", len(rows["update"])),
        "faults": _faults(rows["fault"], summary),
        "admission": _admission(rows["admission"]),
        "judge": judge_section(folder, rows),
        "quarantined": _quarantined(folder, rows["quarantine"]),
        "equal": summary.get("attempts_on_equal_groups"),
        "stories": pick_stories(folder.store, tasks),
        "provenance": _provenance(folder, summary),
        "cut": cut,
    }


def _held_out(summary: Row, markup: Any) -> dict[str, Any] | None:
    held_out: Row = summary.get("held_out") or {}
    sides = {name: held_out.get(name) or {} for name in ("before", "after")}
    if any(side.get("rate") is None for side in sides.values()):
        return None
    gap: Row = held_out.get("difference") or {}
    plotted = [
        (name, side["rate"], side.get("low"), side.get("high"), style)
        for (name, side), style in zip(sides.items(), ("muted", "a"), strict=True)
    ]
    low, high = gap.get("low"), gap.get("high")
    return {
        **sides,
        "n": held_out.get("n"),
        "gain": gap.get("mean", sides["after"]["rate"] - sides["before"]["rate"]),
        "low": low,
        "high": high,
        "sure": low is not None and high is not None and (low > 0 or high < 0),
        "chart": markup(interval_chart(plotted, label="success on held-out tasks before and after, with intervals")),
    }


def _series(rows: Sequence[Row], key: str, name: str, x: str = "update", style: str = "a") -> Series:
    measured = [row for row in rows if row.get(key) is not None and row.get(x) is not None]
    points = tuple(Point(row[x], row[key], row.get("low"), row.get("high")) for row in measured)
    return Series(name, points, style)


def _success(rows: Mapping[str, Sequence[Row]]) -> str:
    looks = rows.get("evaluation", [])
    validation = [row for row in looks if row.get("split") == "validation"]
    test = [row for row in looks if row.get("split") == "test"]
    series = [
        _series(rows.get("update", []), "success", "training, update"),
        _series(validation, "rate", "validation after update", style="b"),
        Series("held-out after update", _series(test, "rate", "").points, "c", joined=False),
    ]
    return line_chart(series, label="success rate on training, validation and held-out tasks by update", shares=True)


def _curves(rows: Mapping[str, Sequence[Row]], markup: Any) -> list[dict[str, Any]]:
    curves = []
    warm = _series(rows.get("sft", []), "loss", "step", x="step", style="b")
    if warm.points:
        chart = line_chart([warm], label="loss of the warm start by step", x_label="step", size=NARROW)
        says = "cross-entropy on demonstrations, nats per token"
        last = wording.number(warm.points[-1].y)
        curves.append({"title": "Warm start: loss", "says": says, "chart": markup(chart), "last": last})
    curves += _proxy_curves(rows.get("proxy", []), markup)
    for key, title, says, is_share in CURVES:
        series = _series(rows.get("update", []), key, "update")
        if series.points:
            chart = line_chart([series], label=f"{title} by update", shares=is_share, size=NARROW)
            value = series.points[-1].y
            last = wording.percent(value, 0) if is_share else wording.number(value, 3 if 0 < abs(value) < 0.1 else 2)
            curves.append({"title": title, "says": says, "chart": markup(chart), "last": last})
    return curves


def _proxy_curves(rows: Sequence[Row], markup: Any) -> list[dict[str, Any]]:
    """What a learnt model of rewards thinks of validation attempts, and what execution says of the same ones."""
    looks = [row for row in rows if row.get("split") == "validation"]
    if not looks:
        return []
    proxy, gold = _series(looks, "proxy", "reward model"), _series(looks, "gold", "passed", style="b")
    opinion = line_chart([proxy], label="mean opinion of the reward model on validation attempts", size=NARROW)
    passed = line_chart([gold], label="share of the same attempts that passed", shares=True, size=NARROW)
    return [
        {"title": "Proxy", "says": "the reward model's mean opinion of validation attempts", "chart": markup(opinion),
         "last": wording.number(proxy.points[-1].y)},
        {"title": "Gold", "says": "share of the same attempts that passed by execution; where it falls while the proxy "
         "rises, the policy pleases the model and no longer solves tasks", "chart": markup(passed),
         "last": wording.percent(gold.points[-1].y, 0)},
    ]  # fmt: skip


def _task_grid(store: TrajectoryStore) -> list[dict[str, Any]]:
    """Each held-out task before and after: its share of attempts that passed, faults left out."""
    phases = {batch.phase for batch in store.batches() if batch.phase.startswith("test")}
    tally: dict[int, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for phase in sorted(phases):
        for row in store.rows(["task_id", "update", "outcome", "fault_kind"], phase):
            if row["fault_kind"] is None and row["outcome"] is not None:
                tally[row["update"]][row["task_id"]].append(row["outcome"] == "passed")
    if len(tally) < 2:
        return []
    sides = (("before", tally[min(tally)]), ("after", tally[max(tally)]))
    rate = {name: {task: sum(tries) / len(tries) for task, tries in side.items()} for name, side in sides}
    order = sorted(
        rate["after"] | rate["before"], key=lambda t: (-rate["after"].get(t, 0), -rate["before"].get(t, 0), t)
    )
    return [{"name": name, "cells": [(task, rate[name].get(task)) for task in order]} for name, _ in sides]


def _faults(rows: Sequence[Row], summary: Row) -> list[dict[str, Any]]:
    totals: Counter[str] = Counter()
    handled: dict[str, Counter[str]] = defaultdict(Counter)
    last: dict[str, str] = {}
    for row in rows:
        kind, times = str(row.get("fault")), int(row.get("count") or 1)
        totals[kind] += times
        handled[kind][str(row.get("handled") or "not recorded")] += times
        last[kind] = str(row.get("message") or "")
    counts: Mapping[str, int] = summary.get("faults") or totals
    how: Mapping[str, Mapping[str, int]] = summary.get("faults_handled") or handled
    return [
        {
            "kind": kind,
            "count": times,
            "handled": ", ".join(f"{n} {word}" for word, n in sorted(how.get(kind, {}).items())) or "not recorded",
            "message": cut(last.get(kind, ""), 300),
        }
        for kind, times in sorted(counts.items())
    ]


def _admission(rows: Sequence[Row]) -> dict[str, Any]:
    splits: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in rows:
        splits[str(row.get("split") or "–")][bool(row.get("admitted"))] += 1
    return {
        "splits": [(split, tally[True], tally[False]) for split, tally in sorted(splits.items())],
        "refused": [
            (str(row.get("task")), cut(str(row.get("reason") or "no reason recorded"), 300))
            for row in rows
            if not row.get("admitted")
        ],
    }


def _quarantined(folder: RunFolder, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Tasks that left the run by themselves; the audit trail has them also where a resume set rows apart."""
    masked = {row["task"]: row.get("masked") for row in rows}
    return [
        {"task": task, "split": each["split"], "rule": each["rule"], "reason": cut(each["reason"], 300)}
        | {"from_batch": each["from_batch"], "masked": masked.get(task)}
        for task, each in sorted(recorded(folder).items())
    ]


def _provenance(folder: RunFolder, summary: Row) -> list[tuple[str, str]]:
    facts = [(str(name), str(value)) for name, value in (summary.get("provenance") or {}).items()]
    try:
        trail = f"{folder.verify_audit()} entries, chain intact"
    except StoreError as error:
        trail = error.message
    batches = folder.store.batches()
    stored = f"{sum(batch.count for batch in batches)} in {len(batches)} files"
    return [*facts, ("audit trail", trail), ("stored trajectories", stored), ("practicum", __version__)]


def _summed(rows: Sequence[Row]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for row in rows:
        for stage, seconds in (row.get("time") or {}).items():
            total[stage] += seconds
    return dict(total)
