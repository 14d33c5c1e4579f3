"""What a run shows while it goes: a live table on a terminal, plain lines elsewhere.

Owns: `RunConsole`.
Invariant: with `json`, nothing is written to stdout; what models or tasks say cannot steer the terminal.
Must not know: how anything is measured; it is given the rows of `pipeline.metrics` and the summary.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from practicum.pipeline.wording import (
    count,
    duration,
    faults_text,
    interval,
    number,
    percent,
    points,
    rate_text,
    shares,
    sparkline,
    update_text,
    visible,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

ROWS = 12  # updates kept in view
STAGE_COLOURS = ("cyan", "yellow", "magenta", "green", "blue", "red")

Row = Mapping[str, Any]


class RunConsole:
    """Shows a run on `stream` (stderr with `json`, else stdout). A context manager; leaving it ends the live table.

    `updates` is the number of updates planned, for `12/40`.
    """

    def __init__(self, *, json: bool = False, stream: TextIO | None = None, updates: int | None = None) -> None:
        self.stream = stream or (sys.stderr if json else sys.stdout)
        self.updates = updates
        self.live_view = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self._started = time.monotonic()
        self._title = self._doing = ""
        self._rows: list[Row] = []
        self._evaluations: list[Row] = []
        self._tasks: Counter[bool] = Counter()
        self._faults: Counter[str] = Counter()
        self._missing: set[str] = set()
        self._warm: Row = {}
        self._untold: dict[str, str] = {}
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self.live_view:
            from rich.live import Live

            self._live = Live(
                get_renderable=self._render, console=self._terminal(), refresh_per_second=2, vertical_overflow="crop"
            )
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the live table, leaving its last state in view. Idempotent."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def show(self, row: Row) -> None:
        """Show any row of `pipeline.metrics`; a kind without a view of its own is left out."""
        views = {
            "update": self.update,
            "evaluation": self.evaluation,
            "admission": self.admission,
            "sft": self.sft,
            "fault": self.fault,
            "signal": self.signal,
            "proxy": self.proxy,
        }
        if (view := views.get(str(row.get("kind")))) is not None:
            view(row)

    def phase(self, title: str) -> None:
        """A new part of the run begins; what the part before came to is told first."""
        self.tell_counts()
        self._title, self._doing = visible(title), ""
        self._line(self._title)

    def note(self, text: str) -> None:
        """One line for the person watching, kept above the live table."""
        if self._live is not None:
            self._live.console.print(visible(text), markup=False, highlight=False)
        else:
            self._line(visible(text))

    def doing(self, text: str) -> None:
        """What is going on right now, for the live table only (`37 of 96 attempts`)."""
        self._doing = visible(text)

    def admission(self, row: Row) -> None:
        """A task was vetted; a refusal is told at once, with its reason."""
        self._tasks[bool(row.get("admitted"))] += 1
        self._untold["tasks"] = self.tasks_line()
        if not row.get("admitted"):
            self.note(f"task {row.get('task')} refused: {row.get('reason') or 'no reason given'}")

    def sft(self, row: Row) -> None:
        """A step of the warm start; only the live table follows every step."""
        self._warm = row
        self._untold["warm start"] = f"warm start ended at step {row.get('step')}, loss {number(row.get('loss'))}"

    def update(self, row: Row) -> None:
        """An update was made."""
        self._rows.append(row)
        self._line(f"update {self._progress(row):>7}  {visible(update_text(row))}")

    def proxy(self, row: Row) -> None:
        """What a learnt model of rewards thinks, beside what execution says; told where nothing trains on it."""
        if row.get("split") == "validation":
            said = f"the reward model gives {number(row.get('proxy'), sign=True)}, {percent(row.get('gold'))} pass"
            self._line(f"validation after update {row.get('update')}: {said}")

    def evaluation(self, row: Row) -> None:
        """The policy was looked at on validation or held-out tasks."""
        self._evaluations.append(row)
        text = f"{row.get('split')} after update {row.get('update')}: {rate_text(row)}"
        self._line(visible(text))

    def fault(self, row: Row) -> None:
        """An infrastructure fault happened and was handled."""
        self._faults[str(row.get("fault"))] += int(row.get("count") or 1)
        self.note(f"{row.get('fault')} ({row.get('handled') or 'unhandled'}): {row.get('message') or ''}".rstrip(": "))

    def signal(self, row: Row) -> None:
        """Verdicts lack a signal; told once for each reason, since it rarely passes by itself."""
        said = f"{row.get('signal')}: {row.get('reason')}"
        if said not in self._missing:
            self._missing.add(said)
            self.note(f"signal missing (changes no reward): {said}")

    def tasks_line(self) -> str:
        """How many tasks were admitted and refused so far."""
        return f"{count(self._tasks[True])} tasks admitted, {count(self._tasks[False])} refused"

    def tell_counts(self) -> None:
        """What a part of the run came to: its tasks, the end of its warm start. Told once."""
        for text in self._untold.values():
            self._line(text)
        self._untold.clear()

    def summary(self, summary: Row) -> None:
        """The block at the end of a run; ends the live table."""
        self.tell_counts()
        self.close()
        for line in summary_lines(summary):
            self._write(line)

    def _progress(self, row: Row) -> str:
        return f"{row.get('update', '?')}/{self.updates}" if self.updates else f"{row.get('update', '?')}"

    def _line(self, text: str) -> None:
        if not self.live_view:
            self._write(f"{time.monotonic() - self._started:6.1f} s  {text}")

    def _write(self, text: str) -> None:
        encoding = self.stream.encoding or "utf-8"
        self.stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        self.stream.flush()

    def _terminal(self) -> Console:
        from rich.console import Console

        return Console(file=self.stream, highlight=False)

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        head = Text.assemble(
            (self._title or "starting", "bold"),
            f"  {self._doing}  ",
            (duration(time.monotonic() - self._started), "dim"),
        )
        facts = []
        if self._tasks:
            facts.append(self.tasks_line())
        if self._warm:
            facts.append(f"warm start step {self._warm.get('step')} loss {number(self._warm.get('loss'))}")
        facts.append(f"faults: {sum(self._faults.values())}")
        parts: list[RenderableType] = [head, Text(" · ".join(facts), style="dim", overflow="ellipsis", no_wrap=True)]
        if self._rows:
            parts += [self._table(), self._legend()]
        parts += self._curves()
        return Group(*parts)

    def _table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for name in ("update", "success", "reward", "entropy", "signal", "boxes/s"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("time", no_wrap=True)
        for row in self._rows[-ROWS:]:
            table.add_row(
                self._progress(row),
                percent(row.get("success"), 0),
                number(row.get("reward"), sign=True),
                number(row.get("entropy")),
                percent(row.get("groups_with_signal"), 0),
                number(row.get("boxes_per_s"), 1),
                self._bar(row),
            )
        return table

    def _bar(self, row: Row, width: int = 20) -> Text:
        from rich.text import Text

        bar, start = Text(), 0.0
        for index, (_, share) in enumerate(shares(row.get("time"))):
            cells = round((start + share) * width) - round(start * width)
            bar.append("█" * cells, style=STAGE_COLOURS[index % len(STAGE_COLOURS)])
            start += share
        return bar

    def _legend(self) -> Text:
        from rich.text import Text

        legend = Text("time: ", style="dim", overflow="ellipsis", no_wrap=True)
        for index, (stage, share) in enumerate(shares(self._rows[-1].get("time"))):
            legend.append("█ ", style=STAGE_COLOURS[index % len(STAGE_COLOURS)])
            legend.append(f"{visible(stage)} {100 * share:.0f} %  ")
        return legend

    def _curves(self) -> list[RenderableType]:
        from rich.text import Text

        lines: list[RenderableType] = []
        curves = [("train", [row.get("success") for row in self._rows])]
        for split in ("validation", "test"):
            curves.append((split, [row.get("rate") for row in self._evaluations if row.get("split") == split]))
        for name, values in curves:
            known = [value for value in values if value is not None]
            if known:
                line = Text(f"{name:<11}", style="dim")
                line.append(sparkline(known), style="green" if name != "train" else "cyan")
                line.append(f"  {percent(known[0], 0)}" + (f" → {percent(known[-1], 0)}" if len(known) > 1 else ""))
                lines.append(line)
        return lines


def summary_lines(summary: Row) -> list[str]:
    """The summary of a run as plain lines: what a person wants to know at the end."""
    held_out: Row = summary.get("held_out") or {}
    lines = [""]
    if held_out:
        lines.append(f"Success on held-out tasks ({count(held_out.get('n'))} attempts)")
        for name in ("before", "after"):
            side: Row = held_out.get(name) or {}
            around = interval(side.get("low"), side.get("high"))
            lines.append(
                f"  {name:<8}{percent(side.get('rate')):>8}" + (f"   95 % interval {around}" if around else "")
            )
        gap: Row = held_out.get("difference") or {}
        if gap:
            before, after = held_out.get("before") or {}, held_out.get("after") or {}
            mean = gap.get("mean", (after.get("rate") or 0.0) - (before.get("rate") or 0.0))
            around = f"95 % interval {points(gap.get('low'))} to {points(gap.get('high'))}, paired by task"
            lines.append(f"  {'gain':<8}{points(mean):>6} points   {around}")
    boxes: Row = summary.get("boxes") or {}
    equal: Row = summary.get("attempts_on_equal_groups") or {}
    stages = " · ".join(f"{visible(stage)} {100 * share:.0f} %" for stage, share in shares(summary.get("time")))
    facts = [
        ("Run", f"{count(summary.get('updates'))} updates, {count(summary.get('episodes'))} episodes, "
         f"{duration(summary.get('wall_s'))}"),
        ("Boxes", f"{count(boxes.get('created'))} created, {count(boxes.get('leaked'))} leaked"),
        ("Groups", f"{count(equal.get('attempts'))} of {count(equal.get('of'))} attempts were in groups of one reward"
         if equal.get("of") else ""),
        ("Aside", "quarantined: " + visible(", ".join(summary["quarantined"])) if summary.get("quarantined") else ""),
        ("Faults", faults_text(summary.get("faults") or {}, summary.get("faults_handled") or {})),
        ("Time", stages),
        ("Report", visible(str(summary.get("report") or ""))),
    ]  # fmt: skip
    lines += [f"{name:<10}{text}" for name, text in facts if text]
    return lines
