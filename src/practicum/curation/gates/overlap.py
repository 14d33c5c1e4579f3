"""What only the gold says, and how much of it another text says as well.

Owns: `Secret`, `secret_of`, `windows`, `runs_of`, `plain`.
Invariant: pure. A secret is made of runs of tokens that stand in the kept-back text and not in what is given instead of
it, so that code which an agent has anyway gives nothing away. Marks of comments, patches and quotes do not count, on
either side: a text that was commented out is the same text. Must not know: where texts come from.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from functools import lru_cache

_TOKEN = re.compile(r"\w+|[^\w\s]")
_MARKS = re.compile(r"^[ \t]*(?:(?:\#+|//+|--(?=\s)|[+>*;|-]|<!--)[ \t]*)+", re.MULTILINE)
_QUOTES = re.compile(r'"""|\'\'\'|```\w*|/\*+|\*+/|-->')
RUN = 12
"""Tokens in one run: about a line of code with what stands around it."""
SHARE = 0.5
LEAST = 3
_MANY, _PART = 200, 0.25
_LINE = 8  # characters that a line must have to be told from others
_LONG = 256 << 10  # bytes from which on a text is looked at only where one of the lines stands
_SHORT = 64 << 10  # characters up to which runs are kept: tasks of one project hold the same files
_ROUND = 4 << 10
_MOST_LINES = 60


def plain(text: str) -> str:
    """`text` without what makes lines of it a comment, a patch or a quotation."""
    return _QUOTES.sub(" ", _MARKS.sub("", text))


def windows(text: str, size: int = RUN) -> set[int]:
    """All runs of `size` tokens, as hashes; none where the text is shorter, since so little is found anywhere."""
    tokens = _TOKEN.findall(plain(text))
    return set(map(hash, zip(*(tokens[at:] for at in range(size)), strict=False)))


def runs_of(text: str) -> Set[int] | None:
    """The runs of a text that is short enough to be looked at as a whole."""
    if len(text) > _LONG:
        return None
    return _kept_windows(text) if len(text) <= _SHORT else windows(text)


@lru_cache(maxsize=128)
def _kept_windows(text: str) -> frozenset[int]:
    return frozenset(windows(text))


@dataclass(frozen=True, slots=True)
class Secret:
    """What must not be found: runs of tokens, whole files, and single lines (for files whose name invites a look)."""

    runs: frozenset[int] = frozenset()
    files: frozenset[bytes] = frozenset()
    lines: frozenset[str] = field(default=frozenset())

    def shared(self, text: str, said: Set[int] | None = None) -> frozenset[int]:
        """The runs that `text` has too; `said` are all of its own where they are known (`runs_of`).

        A long text is looked at around the lines that it has of the secret.
        """
        if not self.runs:
            return frozenset()
        return self.runs & (windows(text if len(text) <= _LONG else self._near(text)) if said is None else said)

    def found_in(self, data: bytes, *, suspicious: bool = False) -> str | None:
        """How `data` gives it away, or None. Of a `suspicious` file one line is enough."""
        if data in self.files:
            return "the same file"
        text = data.decode("utf-8", "replace")
        return self.lines_in(text) if suspicious and self.lines_in(text) else self.enough(len(self.shared(text)))

    def lines_in(self, text: str) -> str | None:
        """A line of the secret that `text` has, in words."""
        said = {line.lstrip("+").strip() for line in text.splitlines()} & self.lines if self.runs else set()
        return f"the line {min(said)!r:.120}" if said else None

    def enough(self, shared: int) -> str | None:
        """What is to be said of a text with so many of the runs, if they are enough to give the secret away."""
        large = shared >= _MANY and shared >= _PART * len(self.runs)
        if shared and (large or (shared >= min(LEAST, len(self.runs)) and shared >= SHARE * len(self.runs))):
            return f"{shared} of {len(self.runs)} runs of tokens"
        return None

    def _near(self, text: str) -> str:
        places: list[int] = []
        for line in sorted(self.lines, key=lambda line: (-len(line), line))[:_MOST_LINES]:
            at = text.find(line)
            while at >= 0 and len(places) < _MOST_LINES**2:
                places.append(at)
                at = text.find(line, at + _ROUND)
        parts: list[str] = []
        done = 0
        for at in sorted(places):
            start, end = max(at - _ROUND, done), at + _ROUND
            parts.append(text[start:end])
            done = max(done, end)
        return "\n".join(parts)


def secret_of(kept_back: Iterable[bytes], given: Iterable[bytes]) -> Secret:
    """What `kept_back` says and `given` does not."""
    kept = [data for data in kept_back if len(data.split()) >= LEAST]
    known = [data.decode("utf-8", "replace") for data in given]
    texts = [data.decode("utf-8", "replace") for data in kept]
    runs = {run for text in texts for run in windows(text)} - {run for text in known for run in windows(text)}
    seen = {line.strip() for text in known for line in text.splitlines()}
    lines = {line.strip() for text in texts for line in text.splitlines()} - seen
    whole = frozenset(data for data, text in zip(kept, texts, strict=True) if not any(text in each for each in known))
    return Secret(frozenset(runs), whole, frozenset(filter(_telling, lines)))


def _telling(line: str) -> bool:
    """Whether a line is long enough, and more than words of the language."""
    return len(line) >= _LINE and any(not keyword.iskeyword(word) for word in re.findall(r"\w+", line))
