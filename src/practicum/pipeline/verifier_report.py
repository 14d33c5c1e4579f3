"""The report's section about the judge: whether it stayed what it was, and what was done about its errors.

Owns: `judge_section`.
Invariant: a bad look at the canaries is told even after a resume has set its rows apart, because the audit trail
keeps it.
Must not know: how the page is laid out, how anything was measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from practicum.pipeline.canaries import EVENT, suspect
from practicum.pipeline.runfolder import RunFolder
from practicum.trajectories.chain import entries

Row = Mapping[str, Any]


def judge_section(folder: RunFolder, rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """What the page shows of it. `rows` are the metrics by kind."""
    looks = rows.get("canary", [])
    bad = [entry["data"] for entry in entries(folder.audit_path) if entry["event"] == EVENT]
    return {
        "looks": len(looks),
        "judged": sum(row["judged"] for row in looks),
        "bad": [{"look": each["look"], "trusted": each["trusted"], "deviations": each["deviations"]} for each in bad],
        "blamed": sorted({task for row in looks for task in row.get("blamed", ())}),
        "suspect": suspect(folder),
        "corrections": _corrections(rows.get("correction", [])),
        "missing": _missing(rows.get("signal", [])),
    }


def _missing(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Signals that verdicts lack, with the reason that was given most often."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(str(row["signal"]), Counter())[str(row["reason"])] += int(row["missing"])
    return [
        {"signal": name, "count": reasons.total(), "reason": reasons.most_common(1)[0][0]}
        for name, reasons in sorted(counts.items())
    ]


def _corrections(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Mean reward before and after correction, by form."""
    sums: dict[str, Counter[str]] = {}
    for row in rows:
        total = sums.setdefault(str(row["form"]), Counter())
        total["n"] += len(row["raw"])
        total["raw"] += sum(row["raw"])
        total["corrected"] += sum(row["corrected"])
    return [
        {"form": form, "n": total["n"], "raw": total["raw"] / total["n"], "corrected": total["corrected"] / total["n"]}
        for form, total in sums.items()
        if total["n"]
    ]
