"""An audit as people and programs read it.

Owns: `document`, `text`.
Invariant: what is not proven or not enforced here is said as plainly as what is blocked.
Must not know: how probes are carried out.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from practicum.sandboxes.audit.run import ProbeRow, ProofRow, Report

_MARKS = {"blocked": "✓", "open": "✗", "unclear": "?"}
_WIDTH = 118


def document(report: Report) -> dict[str, Any]:
    """The report as one JSON document."""
    return {
        "ok": report.ok,
        "provider": report.provider,
        "uid": report.uid,
        "probes": [_probe(row) for row in report.probes],
        "weakened": [
            {
                "profile": row.profile,
                "should_fire": list(row.should_fire),
                "fired": list(row.fired),
                "silent": dict(row.observed),
            }
            for row in report.proofs
        ],
        "unclaimed": dict(report.unclaimed),
        "unproven": dict(report.unproven),
    }


def _probe(row: ProbeRow) -> dict[str, Any]:
    probe = row.probe
    return {
        "id": probe.id,
        "group": probe.group,
        "tries": probe.tries,
        "threat": probe.threat,
        "expected": probe.expected,
        "observed": row.finding.observed,
        "status": row.finding.status,
        "ok": row.ok,
    }


def text(report: Report) -> str:
    """The report for a terminal: groups of probes, then the proofs, then one line that sums it up."""
    lines: list[str] = []
    groups = dict.fromkeys(row.probe.group for row in report.probes)
    ordered = sorted(report.probes, key=lambda row: list(groups).index(row.probe.group))
    width = max((len(row.probe.tries) for row in ordered), default=0)
    for group, rows in groupby(ordered, key=lambda row: row.probe.group):
        lines += ["", group, *(_line(row, width) for row in rows)]
    lines += ["", "proof that each probe notices when its control is missing"]
    longest = max((len(row.profile) for row in report.proofs), default=0)
    lines += [_proof(row, longest) for row in report.proofs]
    if report.unclaimed:
        lines += ["", "not tried: what it takes is not claimed to be had here"]
        lines += [f"  – {id:<4}  needs {needs}" for id, needs in report.unclaimed.items()]
    if report.unproven:
        lines += ["", "not proven to notice"]
        lines += [f"  – {id:<4}  {why}" for id, why in report.unproven.items()]
    return "\n".join([*lines[1:], "", _sum(report)])


def _line(row: ProbeRow, width: int) -> str:
    line = f"  {_MARKS[row.finding.status]} {row.probe.id:<4}  {row.probe.tries:<{width}}  {row.finding.observed}"
    if row.ok:
        return line if len(line) <= _WIDTH + 20 else f"{line[: _WIDTH + 19]}…"
    return f"{line}\n{'':10}expected: {row.probe.expected}"  # what is wrong is never cut


def _proof(row: ProofRow, width: int) -> str:
    mark = "✓" if row.ok else "✗"
    head = f"  {mark} {row.profile:<{width}}  {len(row.fired)} of {len(row.should_fire)} fired"
    return "\n".join([head, *(f"{'':6}{id} did not: {why}" for id, why in row.observed.items())])


def _sum(report: Report) -> str:
    blocked = sum(row.ok for row in report.probes)
    fired = sum(len(row.fired) for row in report.proofs)
    wanted = sum(len(row.should_fire) for row in report.proofs)
    user = f" as uid {report.uid}" if report.uid is not None else ""
    parts = [f"{blocked} of {len(report.probes)} probes blocked on {report.provider}{user}"]
    parts.append(f"{fired} of {wanted} fired where weakened")
    parts += _counted(report.unclaimed, "not tried") + _counted(report.unproven, "not proven")
    return "; ".join(parts)


def _counted(items: Iterable[str], what: str) -> list[str]:
    count = len(list(items))
    return [f"{count} {what}"] if count else []
