"""Templates of the built-in task family: correct functions with marked places where a bug can be put.

Owns: the sources, their names and the inputs they are tried on.
Invariant: a template's text with every mark resolved to its first choice is the correct function, loops only
over given data (so that no bug can make it run for ever), and each wrong choice occurs once in its line.
Must not know: task directories, splits.

Marks: `{f}` is the function's name, `{a}`, `{b}`, `{c}` its parameters, `{t}`, `{v}` its local names, and
`[[right|wrong]]` a place for a bug.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Template:
    """One function. `inputs` names, for each parameter, the kind of value it takes (see `generate`)."""

    name: str
    source: str
    inputs: tuple[str, ...]
    functions: tuple[str, ...]
    parameters: tuple[tuple[str, ...], ...]


LISTS = ("values", "items", "numbers", "scores")
LIMITS = ("limit", "bound", "cutoff", "threshold")
NUMBERS = ("n", "x", "number")
LOWS = ("low", "start", "first")
HIGHS = ("high", "stop", "last")
LOCALS_TOTAL = ("total", "result", "out")
LOCALS_ITEM = ("v", "item", "each")


def _template(name: str, functions: str, inputs: str, source: str, *parameters: tuple[str, ...]) -> Template:
    return Template(name, source.strip("\n") + "\n", tuple(inputs.split()), tuple(functions.split()), parameters)


TEMPLATES: tuple[Template, ...] = (
    _template(
        "clamp",
        "clamp limit_to keep_within bounded",
        "int low high",
        """
def {f}({a}, {b}, {c}):
    if {a}[[ < | != ]]{b}:
        return {b}
    if {a}[[ >= | == ]]{c}:
        return {c}
    return {a}
""",
        NUMBERS,
        LOWS,
        HIGHS,
    ),
    _template(
        "count_above",
        "count_above how_many_over over_limit tally",
        "ints int",
        """
def {f}({a}, {b}):
    {t} = [[0|2]]
    for {v} in {a}:
        if {v}[[ > | >= ]]{b}:
            {t}[[ += | -= ]]1
    return {t}
""",
        LISTS,
        LIMITS,
    ),
    _template(
        "largest",
        "largest highest peak top_value",
        "ints",
        """
def {f}({a}):
    {t} = {a}[[[0]|[-1]]]
    for {v} in {a}:
        if {v}[[ > | < ]]{t}:
            {t} = {v}
    return {t}
""",
        LISTS,
    ),
    _template(
        "sum_range",
        "sum_range add_up span_total sum_between",
        "low high",
        """
def {f}({a}, {b}):
    {t} = [[0|2]]
    for {v} in range({a}, {b}[[ + | - ]]1):
        {t}[[ += | -= ]]{v}
    return {t}
""",
        LOWS,
        HIGHS,
    ),
    _template(
        "product",
        "product multiply_all times_all combined",
        "ints",
        """
def {f}({a}):
    {t} = [[1|0]]
    for {v} in {a}:
        {t}[[ *= | += ]]{v}
    return {t}
""",
        LISTS,
    ),
    _template(
        "mean",
        "mean average typical centre",
        "ints",
        """
def {f}({a}):
    {t} = [[sum(|max(]]{a})
    return {t}[[ // | * ]]len({a})
""",
        LISTS,
    ),
    _template(
        "bulk_price",
        "bulk_price order_cost invoice charge",
        "small small int",
        """
def {f}({a}, {b}, {c}):
    {t} = {a}[[ * | + ]]{b}
    if {b}[[ >= | > ]]3:
        {t}[[ -= | += ]]{c}
    return {t}
""",
        ("price", "cost", "rate", "unit"),
        ("count", "quantity", "pieces", "units"),
        ("rebate", "discount", "credit", "bonus"),
    ),
    _template(
        "find",
        "find position index_of locate",
        "ints small",
        """
def {f}({a}, {b}):
    for {v} in range(len({a})):
        if {a}[{v}][[ == | != ]]{b}:
            return {v}
    return [[-1|0]]
""",
        LISTS,
        ("target", "wanted", "needle", "key"),
    ),
    _template(
        "dot",
        "dot weighted_sum inner blend",
        "ints ints",
        """
def {f}({a}, {b}):
    {t} = [[0|1]]
    for {v}, w in zip({a}, {b}):
        {t}[[ += | -= ]]{v}[[ * | + ]]w
    return {t}
""",
        LISTS,
        ("weights", "factors", "shares", "others"),
    ),
    _template(
        "max_gap",
        "max_gap widest spread furthest",
        "ints int",
        """
def {f}({a}, {b}):
    {t} = 0
    for {v} in {a}:
        {t} = [[max(|min(]]{t}, abs({v}[[ - | + ]]{b}))
    return {t}
""",
        LISTS,
        ("origin", "base", "pivot", "middle"),
    ),
    _template(
        "evens",
        "evens only_even keep_even even_items",
        "ints",
        """
def {f}({a}):
    {t} = []
    for {v} in {a}:
        if {v}[[ % | // ]]2[[ == | != ]]0:
            {t}.append({v})
    return {t}
""",
        LISTS,
    ),
    _template(
        "distance",
        "distance offset_squared metric separation",
        "int int",
        """
def {f}({a}, {b}):
    {t} = {a}[[ - | + ]]{b}
    {v} = {t}[[ * | + ]]{t}
    return {v}
""",
        LOWS,
        HIGHS,
    ),
    _template(
        "safe_div",
        "safe_div ratio divide share_of",
        "int small int",
        """
def {f}({a}, {b}, {c}):
    if {b}[[ == | != ]]0:
        return {c}
    return {a}[[ // | * ]]{b}
""",
        ("whole", "amount", "top", "left"),
        ("parts", "divisor", "bottom", "right"),
        ("default", "fallback", "otherwise", "spare"),
    ),
    _template(
        "all_over",
        "all_over everyone_above each_exceeds all_pass",
        "ints int",
        """
def {f}({a}, {b}):
    {t} = [{v}[[ > | < ]]{b} for {v} in {a}]
    return [[all(|any(]]{t})
""",
        LISTS,
        LIMITS,
    ),
)
