"""Whether texts give away what a gold puts back.

Owns: `repaired_lines`, `gives_away`, `copied_in`.
Invariant: pure; a line of the gold is found whatever the spacing it is quoted with. Files are held to the rules of the
gate `leaks`, in as far as these look at a workspace as it is.
Must not know: where the texts come from.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from practicum.curation.gates.leaks.shapes import shapes_of
from practicum.curation.gates.overlap import secret_of
from practicum.records.tree import Tree

_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|\"[^\"\n]*\"|'[^'\n]*'|[^\s\w]")
_RUN = 6  # tokens in a row
_LINE = 3  # tokens of a whole line


def repaired_lines(before: Mapping[str, bytes | None], gold: Tree) -> list[list[str]]:
    """The lines that `gold` has and the files `before` have not, in runs of neighbours."""
    runs: list[list[str]] = []
    for path in sorted(before):
        old = (before[path] or b"").decode("utf-8", "replace").splitlines()
        new = gold[path].data.decode("utf-8", "replace").splitlines() if path in gold else []
        for tag, _, _, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag in ("insert", "replace"):
                runs.append(new[start:end])
    return runs


def gives_away(text: str, runs: Iterable[Sequence[str]]) -> str | None:
    """What of `runs` of code lines stands in `text`: six tokens in a row, or a whole line of three or more."""
    said = _tokens(text)
    grams = {size: {said[at : at + size] for at in range(len(said) - size + 1)} for size in range(_LINE, _RUN + 1)}
    for run in runs:
        for line in run:
            tokens = _tokens(line.partition("  #")[0])
            if _LINE <= len(tokens) <= _RUN and tokens in grams[len(tokens)]:
                return line.strip()
        tokens = _tokens("\n".join(run))
        for at in range(len(tokens) - _RUN + 1):
            if tokens[at : at + _RUN] in grams[_RUN]:
                return " ".join(tokens[at : at + _RUN])
    return None


def copied_in(files: Tree, before: Mapping[str, bytes | None], gold: Tree) -> str | None:
    """The first of `files`, other than those at the paths of `before`, that says what only `gold` is to say there."""
    given = [data for data in before.values() if data is not None]
    kept = [gold[path].data for path in before if path in gold]
    secret, shapes = secret_of(kept, given), shapes_of(kept, given)
    for path, file in sorted(files.items()):
        if path in before:
            continue
        text = file.data.decode("utf-8", "replace")
        # looking closer takes long
        lines = any(line in text for line in secret.lines)
        words = any(all(word in text for word in needed) for needed in shapes.words)
        if (lines and secret.enough(len(secret.shared(text)))) or (words and shapes.found_in(text)):
            return path
    return None


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(text))
