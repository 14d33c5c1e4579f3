"""What commands print: one JSON document or a short text on stdout, progress on stderr.

Owns: `JsonOption`, `emit`, `Progress`, `end_progress`.
Invariant: with `--json`, stdout holds exactly one JSON document. Nothing is printed behind a line of progress.
Must not know: any command.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


def emit(document: Mapping[str, Any] | Sequence[Any], text: str, *, as_json: bool) -> None:
    """Print `document` as JSON, or else `text`."""
    end_progress()
    # escaped to ASCII: what a policy sampled may hold what UTF-8 cannot
    print(json.dumps(document, allow_nan=False, default=str) if as_json else text, flush=True)


class Progress:
    """A counter on stderr: one line that is rewritten on a terminal, a line every ten seconds elsewhere.

    `total` is 0 where it is not known, `done` what was there before. The line is ended when the total is reached, by
    `close`, or by whatever this process prints next through this module.
    """

    _unfinished: ClassVar[Progress | None] = None  # whose line the cursor is in

    def __init__(self, label: str, total: int, *, done: int = 0) -> None:
        self.label, self.total, self.done = label, total, done
        self.terminal = _on_terminal()
        self.started = self.last = time.monotonic()

    def advance(self, note: str = "") -> None:
        """Count one more."""
        self.done += 1
        finished = self.done == self.total
        if finished or self._due():
            of = f"/{self.total}" if self.total else ""
            self._print(f"{self.label} {self.done}{of}  {self.seconds:.1f} s  {note}")
        if finished:
            self.close()

    def say(self, text: str, *, now: bool = False) -> None:
        """Show `text` with the time in place of the count; `now`, even if something was shown a moment ago."""
        if now or self._due():
            self._print(f"{text}  {self.seconds:.1f} s")

    def close(self) -> None:
        """End the line, where one is begun."""
        if Progress._unfinished is self:
            end_progress()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self.started

    def _due(self) -> bool:
        return time.monotonic() - self.last >= (0.1 if self.terminal else 10.0)

    def _print(self, line: str) -> None:
        self.last = time.monotonic()
        if Progress._unfinished is not self:
            end_progress()
        if self.terminal:
            Progress._unfinished = self
        line = line.rstrip()
        print(
            f"\r\x1b[K{line}" if self.terminal else line, end="" if self.terminal else "\n", file=sys.stderr, flush=True
        )


def end_progress() -> None:
    """End the line of progress that the cursor is in, if it is in one: before anything else is printed."""
    if Progress._unfinished is not None:
        Progress._unfinished = None
        print(file=sys.stderr, flush=True)


def _on_terminal() -> bool:
    return sys.stderr.isatty()
