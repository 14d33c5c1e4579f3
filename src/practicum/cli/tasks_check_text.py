"""What `tasks check` tells of a checked set: the decisions that stand, as JSON and for people.

Owns: `held`, `passed`, `stands`, `document`, `text`.
Invariant: a task is told as admitted only where its ledger does not keep it at another stage.
Must not know: how gates are asked, what is recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from practicum.curation.ledger import Standing
    from practicum.records.assessment import Assessment

_SHOWN = 40  # tasks told one by one, for people; --json has them all


def held(found: Sequence[Assessment], standings: Mapping[str, Standing]) -> dict[str, Standing]:
    """By content, what the ledger keeps at another stage although all gates passed: that is what stands."""
    return {
        each.content: now
        for each in found
        if each.decision == "admitted" and (now := standings.get(each.content)) and now.stage != "admitted"
    }


def stands(each: Assessment, held: Mapping[str, Standing]) -> tuple[str, str]:
    """The decision that stands, and why."""
    now = held.get(each.content)
    if now is None:
        return each.decision, each.reason
    return now.stage, f"by the ledger ({now.entry.actor}): {now.entry.reason}; now {each.reason}"


def passed(each: Assessment, gates: Collection[str]) -> bool:
    """Whether all `gates` passed; what is no task has passed none."""
    return all(each.gates[name].passed for name in gates) and bool(each.content)


def document(each: Assessment, held: Mapping[str, Standing]) -> dict[str, Any]:
    """One task for --json."""
    decision, reason = stands(each, held)
    return {
        "task": each.task,
        "digest": each.digest or None,
        "content": each.content or None,
        "decision": decision,
        "reason": reason,
        "gates": {
            name: {
                "passed": result.passed,
                "assessed": result.assessed,
                "reason": result.reason,
                "evidence": dict(result.evidence),
                "version": result.version,
                "seconds": result.seconds,
            }
            for name, result in each.gates.items()
        },
    }


def text(
    found: Sequence[Assessment],
    held: Mapping[str, Standing],
    asked: Collection[str],
    summary: dict[str, Any],
    unlike: dict[str, str],
) -> str:
    """All for people. `asked` are the gates that were named, where not all of them were asked."""
    from practicum.pipeline.wording import visible

    spent = summary["effort"]
    provisional = f" ({summary['provisional']} provisionally)" if summary["provisional"] else ""
    lines = [
        f"{summary['admitted']} of {summary['tasks']} tasks admitted{provisional}, "
        f"{summary['quarantined']} quarantined, {summary['rejected']} rejected"
        + (f", {summary['retired']} retired" if summary["retired"] else "")
    ]
    others = [each for each in found if stands(each, held)[0] != "admitted"]
    if asked:
        gates = ", ".join(sorted(asked))
        lines = [f"{summary['passed_all_asked']} of {summary['tasks']} tasks passed {gates}; nothing was decided"]
        others = [each for each in found if not passed(each, asked)]
    lines += [f"  ✗ {each.task}: {': '.join(stands(each, held))}" for each in others[:_SHOWN]]
    if len(others) > _SHOWN:
        lines.append(f"  … and {len(others) - _SHOWN} more (--json lists them all)")
    if summary["altered_results"]:
        lines.append(
            f"  ! {summary['altered_results']} kept results were altered, or are not those that were decided on; "
            "they were asked again"
        )
    lines += [f"  ! {task}: the ledger says otherwise: {why}" for task, why in unlike.items()]
    if summary["first_failing_gate"]:
        rows = (f"  {name:<14} {count:>5}" for name, count in summary["first_failing_gate"].items())
        lines += ["", "first gate that was not passed:", *rows]
    total = sum(summary["seconds_by_gate"].values()) or 1.0
    timed = sorted(summary["seconds_by_gate"].items(), key=lambda row: -row[1])
    lines += ["", "where the time went (seconds at work):"]
    lines += [f"  {name:<14} {seconds:>8.2f}  {100 * seconds / total:>3.0f} %" for name, seconds in timed if seconds]
    lines += [
        "",
        f"{spent['wall_s']} s, {spent['cpu_s']} cpu seconds ({spent['cpu_s_per_task']} a task); "
        f"of {spent['cores']} cores {_percent(spent['own_share'])} busy with this, "
        f"{_percent(spent['machine_share'])} in all; "
        f"{summary['reused_results']} results known before",
        f"next: {summary['next']}",
    ]
    return visible("\n".join(lines))


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{100 * share:.0f} %"
