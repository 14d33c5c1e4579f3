"""The instruction of a mined task: what the commit's author said, and what the tests see, without the fix.

Owns: `instruction_of`.
Invariant: no line of the instruction repeats code that the fix adds.
Must not know: git, boxes, how messages are cleaned.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

from practicum.curation.mining.quoting import compared, demands_of, helpers_of, test_source
from practicum.curation.mining.withholding import Withheld
from practicum.records.tree import Tree

MOST_TOLD = 8  # failing tests that are described
_MESSAGE_LINES, _MESSAGE_CHARS = 6, 400
_EXCERPTS, _EXCERPT_LINES = 3, 30
_TERSE = 50  # characters
_MOST_SAME = 3  # tests with one and the same message
_LEAST_TOLD = 4  # so many are told, though they may say the same
_HELPERS, _HELPER_LINES = 6, 15
_SAYS_LITTLE = re.compile(
    r"(?:ImportError|ModuleNotFoundError|AttributeError|NameError|TypeError|Failed)\b|it |not run|there is no"
    r"|(?:AssertionError:? ?)?(?:assert (?:not )?(?:\w+|\w+ (?:is|is not|==|!=|in|not in) \w+))?\s*(?:$|\n)"
)


def instruction_of(
    title: str,
    text: str,
    *,
    failing: Sequence[str],
    messages: Mapping[str, str],
    tests: Tree,
    fresh: Sequence[str],
    places: Sequence[str],
    withheld: Withheld,
) -> str:
    """What is to be done: the author's words, then what the tests see before it is done. `places` may be changed.

    The `fresh` tests come first: they were written for the work.
    """
    parts = [f"# {title}" if title else "# Make the behaviour below hold"]
    if text:
        parts.append(text)
    chosen = _spread([*fresh, *(name for name in failing if name not in fresh)], messages, tests)
    count = f"{len(failing)} tests fail" if len(failing) > 1 else "One test fails"
    more = "; for example" if len(failing) > len(chosen) else ""
    shown = [name for name in chosen if _says_little(messages.get(name, ""))]
    shown = [name for name in shown if name in fresh] or shown
    found = [(name, each) for name in shown if (each := _excerpt(test_source(name, tests), withheld))]
    quoted = dict(found[:_EXCERPTS])
    calls = {name: call for name in chosen if name not in quoted and (call := _call(name, messages, tests, withheld))}
    told = [line for name in chosen for line in _told(name, messages.get(name, ""), calls.get(name, ""), withheld)]
    parts.append(f"{count} as things are{more}:\n\n" + "\n".join(told))
    if quoted:
        head = "What they ask for, in their own words:" if len(failing) > 1 else "What it asks for, in its own words:"
        parts += [head, *dict.fromkeys(quoted.values())]
    parts += _helpers([*quoted, *calls], tests, withheld)
    sources = f"Change the sources ({', '.join(f'`{place}`' for place in places)})"
    if len(failing) > 1:
        parts.append(f"{sources} so that they pass, and keep what works working. {_ABSENT[1]}")
    else:
        parts.append(f"{sources} so that it passes, and keep what works working. {_ABSENT[0]}")
    return "\n\n".join(parts) + "\n"


_BARE = re.compile(r"(?:AssertionError:?)?\s*")
_ABSENT = ("The test itself is not in the workspace.", "The tests themselves are not in the workspace.")


def _helpers(names: Sequence[str], tests: Tree, withheld: Withheld) -> list[str]:
    """Functions and data that the code shown of tests `names`, and that a reader does not have."""
    found: dict[str, str] = {}
    for name in names:
        found |= helpers_of(name, tests)
    short = [code for code in found.values() if code.count("\n") < _HELPER_LINES]
    shown = [each for code in short if not withheld.told_by(code.split("\n")[0]) and (each := _excerpt(code, withheld))]
    return ["From the files of the tests, what this code uses:", *shown[:_HELPERS]] if shown else []


def _call(name: str, messages: Mapping[str, str], tests: Tree, withheld: Withheld) -> str:
    """What a test compares, where its message does not say and it may be told."""
    if not _BARE.fullmatch(messages.get(name, "-")):
        return ""
    call = compared(test_source(name, tests))
    return "" if any(withheld.told_by(line) for line in call.splitlines()) else call


def _says_little(message: str) -> bool:
    """Whether a message tells no more than that something is missing, or two values without what they are of."""
    return len(message) < _TERSE or bool(_SAYS_LITTLE.match(message))


def _spread(failing: Sequence[str], messages: Mapping[str, str], tests: Tree) -> list[str]:
    """Some of the failing tests: one for each way to fail, then those that ask for what none before asked for.

    Of a function there are two at most. Others follow only where fewer than a handful would be told.
    """
    chosen: list[str] = []
    functions, sayings = Counter[str](), Counter[str]()
    ways, demands = set[str](), set[str]()

    def take(name: str) -> None:
        chosen.append(name)
        functions[name.partition("[")[0]] += 1
        sayings[messages.get(name, "")] += 1
        ways.add(_way(messages.get(name, "")))
        demands.update(demands_of(test_source(name, tests)))

    for name in failing:
        if _way(messages.get(name, "")) not in ways and functions[name.partition("[")[0]] < 2:
            take(name)
    for name in failing:
        own = name.partition("[")[0]
        if functions[own] == 0 and not demands_of(test_source(name, tests)) <= demands:
            take(name)
    for name in failing:
        own, said = name.partition("[")[0], messages.get(name, "")
        if len(chosen) < _LEAST_TOLD and not functions[own] and (not said or sayings[said] < _MOST_SAME):
            take(name)
    return chosen[:MOST_TOLD]


def _way(message: str) -> str:
    """How a test fails, whatever the values: the message's first line without what is quoted or counted."""
    first = message.strip().partition("\n")[0][:200]
    return re.sub(r"\d+", "0", re.sub(r"0x[0-9a-f]+|'[^']*'|\"[^\"]*\"", "…", first))


def _told(name: str, message: str, call: str, withheld: Withheld) -> list[str]:
    kept = [line.rstrip() for line in message.strip().splitlines() if line.strip() and not withheld.told_by(line)]
    short = "\n".join(kept[:_MESSAGE_LINES])
    short = short if len(short) <= _MESSAGE_CHARS else f"{short[:_MESSAGE_CHARS]}…"
    own = name.partition("::")[2].replace("::", ".")
    if call:
        shown = (f"  {line}" for line in call.split("\n"))
        return [f"- `{own}`: an assertion fails, here:", "  ```python", *shown, "  ```"]
    if _BARE.fullmatch(short):
        return [f"- `{own}`"]
    fence = "````" if "```" in short else "```"
    return [f"- `{own}`:", f"  {fence}", *(f"  {line}" for line in short.split("\n")), f"  {fence}"]


def _excerpt(source: str, withheld: Withheld) -> str:
    """The code of a test, cut where it is long; nothing where it repeats the fix."""
    lines = [re.sub(r"https?://\S+", "…", line) for line in textwrap.dedent(source).splitlines()]
    if not lines or any(withheld.told_by(line) for line in lines[1:]):
        return ""
    if len(lines) > _EXCERPT_LINES:
        lines = [*lines[:_EXCERPT_LINES], "    ..."]
    return "```python\n" + "\n".join(line.rstrip() for line in lines) + "\n```"
