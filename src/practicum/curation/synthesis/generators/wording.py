"""A brief as the text of an instruction, in one of several layouts.

Owns: `instruction_of`.
Invariant: every sentence of the brief stands in it, rules in their order. Pure.
Must not know: families, tasks.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from practicum.curation.synthesis.generators.brief import Brief

_INPUT = ("Input", "What it is given", "The data", "Where it comes from", "What goes in")
_RULES = ("Rules", "What counts", "How to do it", "What to observe", "Conditions")
_RESULT = ("Result", "What comes out", "The answer", "Outcome", "What to return")


def instruction_of(brief: Brief, closing: str, rng: random.Random) -> str:
    """The instruction; `closing` says where the program goes and how to try it."""
    layout = rng.choice(("headings", "numbers", "letter"))
    parts = [("input", brief.inputs), ("rules", brief.rules), ("result", brief.result)]
    text = [brief.goal]
    for name, sentences in parts:
        title = rng.choice({"input": _INPUT, "rules": _RULES, "result": _RESULT}[name])
        if not sentences:
            continue
        if layout == "headings":
            text.append(f"## {title}\n\n{_listed(sentences, '-')}")
        elif layout == "numbers":
            text.append(f"{title}:\n\n{_listed(sentences, '#')}")
        else:
            text.append(_listed(sentences, "*") if name == "rules" else " ".join(sentences))
    return "\n\n".join([*text, closing]) + "\n"


def _listed(sentences: Sequence[str], mark: str) -> str:
    marks = [f"{number}." if mark == "#" else mark for number in range(1, len(sentences) + 1)]
    return "\n".join(f"{one} {sentence}" for one, sentence in zip(marks, sentences, strict=True))
