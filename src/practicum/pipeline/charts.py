"""Small charts as inline SVG: no script, no network, colours from the page's style.

Owns: `Series`, `line_chart`, `interval_chart`.
Invariant: every piece of text is made visible and escaped here, so the result may be put into a page as it is.
Must not know: what the numbers mean.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from practicum.pipeline.wording import visible

WIDE = (400, 190)
NARROW = (300, 150)
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 12, 28


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement; `low` and `high` span its interval, where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """Points in order of x. `style` is the class that colours it (`a` … `d`); `joined` draws the line between them."""

    name: str
    points: tuple[Point, ...]
    style: str = "a"
    joined: bool = True


def line_chart(
    series: Sequence[Series], *, label: str, x_label: str = "update", shares: bool = False, size: tuple[int, int] = WIDE
) -> str:
    """Series over one x axis. `shares` fixes the y axis to 0 … 100 %; otherwise it fits the points.

    `size` is the drawing's width and height; it scales with the page. `label` is read to those who cannot see it.
    Returns "" where there is no point.
    """
    points = [point for one in series for point in one.points]
    if not points:
        return ""
    x_low, x_high = min(p.x for p in points), max(p.x for p in points)
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0] if shares else _ticks(min(p.y for p in points), max(p.y for p in points))
    width, height = size
    axes = _Axes(x_low, x_high, ticks[0], ticks[-1], width, height)
    out = [f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{_text(label)}">']
    for tick in ticks:
        y = axes.y(tick)
        name = f"{100 * tick:.0f} %" if shares else _short(tick)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
    base = height - 8
    out.append(f'<text x="{LEFT}" y="{base}">{_text(x_label)} {_short(x_low)}</text>')
    if x_high > x_low:
        out.append(f'<text x="{width - RIGHT}" y="{base}" text-anchor="end">{_short(x_high)}</text>')
    for one in series:
        out += _draw(one, axes, shares=shares)
    return "".join([*out, "</svg>"])


def interval_chart(rows: Sequence[tuple[str, float, float | None, float | None, str]], *, label: str) -> str:
    """Shares with intervals on one axis from 0 to 100 %: (name, share, low, high, style) a row."""
    step, height = 40, 40 * len(rows) + 26
    out = [f'<svg class="chart" viewBox="0 0 {WIDE[0]} {height}" role="img" aria-label="{_text(label)}">']
    left = 64

    def at(share: float) -> float:
        return left + min(1.0, max(0.0, share)) * (WIDE[0] - left - 20)

    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        out.append(f'<line class="grid" x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="4" y2="{height - 22}"/>')
        out.append(f'<text x="{at(tick):.1f}" y="{height - 6}" text-anchor="middle">{100 * tick:.0f} %</text>')
    for index, (name, share, low, high, style) in enumerate(rows):
        y = 24 + index * step
        out.append(f'<text x="0" y="{y + 4}">{_text(name)}</text>')
        if low is not None and high is not None:
            out.append(f'<line class="whisker {style}" x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{y}" y2="{y}"/>')
        out.append(f'<circle class="dot {style}" cx="{at(share):.1f}" cy="{y}" r="6"/>')
    return "".join([*out, "</svg>"])


@dataclass(frozen=True, slots=True)
class _Axes:
    x_low: float
    x_high: float
    y_low: float
    y_high: float
    width: int
    height: int

    def x(self, value: float) -> float:
        span = self.x_high - self.x_low
        return LEFT + (self.width - LEFT - RIGHT) * ((value - self.x_low) / span if span else 0.5)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return self.height - BOTTOM - (self.height - TOP - BOTTOM) * min(1.0, max(0.0, share))


def _draw(series: Series, axes: _Axes, *, shares: bool) -> list[str]:
    out = []
    places = [(axes.x(p.x), axes.y(p.y)) for p in series.points]
    if series.joined and len(places) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out.append(f'<polyline class="line {series.style}" points="{path}"/>')
    for point, (x, y) in zip(series.points, places, strict=True):
        if point.low is not None and point.high is not None:
            out.append(
                f'<line class="whisker thin {series.style}" x1="{x:.1f}" x2="{x:.1f}" '
                f'y1="{axes.y(point.low):.1f}" y2="{axes.y(point.high):.1f}"/>'
            )
        value = f"{100 * point.y:.1f} %" if shares else f"{point.y:.4g}"
        kind = "mark" if series.joined and point.low is None else "dot"
        out.append(
            f'<circle class="{kind} {series.style}" cx="{x:.1f}" cy="{y:.1f}" r="{4 if kind == "mark" else 3.5}">'
            f"<title>{_text(series.name)} {_short(point.x)}: {value}</title></circle>"
        )
    return out


def _ticks(low: float, high: float) -> list[float]:
    """Three to six round values that span [low, high]."""
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    raw = (high - low) / 3
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= raw)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [index * step for index in range(first, last + 1)]


def _short(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _text(text: str) -> str:
    return html.escape(visible(text))
