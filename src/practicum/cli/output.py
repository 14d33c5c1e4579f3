"""What commands print: one JSON document or a short text on stdout, progress on stderr.

Owns: `JsonOption`, `emit`, `progress`.
Invariant: with `--json`, stdout holds exactly one JSON document.
Must not know: any command.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


def emit(document: Mapping[str, Any] | Sequence[Any], text: str, *, as_json: bool) -> None:
    """Print `document` as JSON, or else `text`."""
    # escaped to ASCII: what a policy sampled may hold what UTF-8 cannot
    print(json.dumps(document, allow_nan=False, default=str) if as_json else text, flush=True)


class Progress:
    """A counter on stderr: one line that is rewritten on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total, self.done = label, total, 0
        self.terminal = sys.stderr.isatty()
        self.started = self.last = time.monotonic()

    def advance(self, note: str = "") -> None:
        self.done += 1
        now = time.monotonic()
        finished = self.done == self.total
        if not finished and now - self.last < (0.1 if self.terminal else 10.0):
            return
        self.last = now
        line = f"{self.label} {self.done}/{self.total}  {now - self.started:.1f} s  {note}".rstrip()
        end = "\n" if finished or not self.terminal else ""
        print(f"\r\x1b[K{line}" if self.terminal else line, end=end, file=sys.stderr, flush=True)
