"""Numbers and other people's text, in the words of the console and the report.

Owns: `visible`, `percent`, `interval`, `duration`, `count`, `shares`, `sparkline`, whole lines about a metrics row.
Invariant: `visible` text holds no control, bidirectional or surrogate character except tab and line break, so what
a model says can neither steer a terminal nor hide in a page.
Must not know: where the text goes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# C0 and C1 controls but tab and line break; marks and overrides of direction; line separators; surrogates; BOM; what
# has no width: soft hyphen, fillers, tags and further variation selectors, in which a whole text can be hidden.
_HIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufdd0\ufeff"
    "\xad\u115f\u1160\u180e\u3164\uffa0\U000e0000-\U000e0fff]"
)
SPARKS = "▁▂▃▄▅▆▇█"


def visible(text: str) -> str:
    """`text` with every hidden character shown: NUL as ␀, escape as ␛, others as their code."""
    return _HIDDEN.sub(_show, text.replace("\r\n", "\n"))


def _show(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{code:04x}"


def percent(share: float | None, digits: int = 1) -> str:
    """`0.125` → `12.5 %`."""
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def interval(low: float | None, high: float | None) -> str:
    """`7.3 – 20.6 %`, or nothing where it was not measured."""
    return "" if low is None or high is None else f"{100 * low:.1f} – {100 * high:.1f} %"


def points(share: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "–" if share is None else f"{100 * share:+.1f}".replace("-", "−")


def duration(seconds: float | None) -> str:
    """`252` → `4 min 12 s`."""
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def count(number: float | None) -> str:
    """`9120` → `9,120`."""
    return "–" if number is None else f"{number:,.0f}"


def number(value: Any, digits: int = 2, *, sign: bool = False) -> str:
    """A plain number, `–` where there is none."""
    if not isinstance(value, (int, float)):
        return "–"
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def sparkline(values: list[float], width: int = 40) -> str:
    """Shares in [0, 1] as a line of blocks, thinned to `width` by means of neighbours."""
    step = max(1, -(-len(values) // width))
    means = [sum(chunk) / len(chunk) for chunk in (values[i : i + step] for i in range(0, len(values), step))]
    return "".join(SPARKS[min(len(SPARKS) - 1, max(0, int(mean * len(SPARKS))))] for mean in means)


def rate_text(row: Mapping[str, Any]) -> str:
    """The success of an evaluation, of how many attempts, with its interval."""
    around = interval(row.get("low"), row.get("high"))
    size = f" of {count(row['n'])} attempts" if row.get("n") else ""
    return f"{percent(row.get('rate'))}{size}" + (f" ({around})" if around else "")


def update_text(row: Mapping[str, Any]) -> str:
    """What an update came to, as a line; of a study, how well it fits what it learns from."""
    stages = " ".join(f"{stage} {100 * share:.0f}" for stage, share in shares(row.get("time")))
    after = f"  {stages} %" if stages else ""
    if row.get("phase") == "study":
        apart = f"  pairs told apart {percent(row['accuracy'], 0)}" if row.get("accuracy") is not None else ""
        return f"loss {number(row.get('loss'), 3)}{apart}"
    return (
        f"success {percent(row.get('success'), 0):>5}  reward {number(row.get('reward'), sign=True)}  "
        f"entropy {number(row.get('entropy'))}  signal {percent(row.get('groups_with_signal'), 0):>5}  "
        f"{number(row.get('boxes_per_s'), 1)} boxes/s{after}"
    )


def shares(time: Mapping[str, float] | None) -> list[tuple[str, float]]:
    """Each stage's part of the sum, in the order given; empty where nothing was measured."""
    total = sum((time or {}).values())
    return [(stage, seconds / total) for stage, seconds in (time or {}).items()] if total > 0 else []


def faults_text(faults: Mapping[str, int], handled: Mapping[str, Mapping[str, int]]) -> str:
    """`3 SandboxDied (2 retried, 1 masked)`, or `none`."""
    parts = []
    for kind, total in sorted(faults.items()):
        how = ", ".join(f"{times} {word}" for word, times in sorted(handled.get(kind, {}).items()))
        parts.append(f"{total} {visible(kind)}" + (f" ({visible(how)})" if how else ""))
    return "; ".join(parts) or "none"
