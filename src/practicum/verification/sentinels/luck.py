"""How likely it is to have passed by picking among the alternatives.

Owns: `luck`.
Invariant: an upper bound for whoever reads the questions and picks an alternative of each by a rule; of tests that ask
nothing where there is something to pick, it says nothing. Pure.
Must not know: how often that is judged.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from practicum.verification.sentinels.reading import Answers


def luck(rounds: Sequence[Answers], passed: Collection[str]) -> float:
    """The chance to have the questions of `passed` right in each of `rounds`, which have independent lots.

    Of tests with wrong answers that were on offer, any could have been the lucky ones. 0.0 where nothing could have
    been picked.
    """
    picked = [name for name in passed if all(one.choices.get(name) for one in rounds)]
    if not picked:
        return 0.0
    wrong = {point[0] for one in rounds for point in one.wrong} - set(picked)
    # In logarithms: thousands of tests, or of questions, are more than a float can hold.
    chance = math.log(math.comb(len(picked) + len(wrong), len(picked)))
    for one in rounds:
        offered = {key: among for name in picked for key, among in one.choices[name].items()}
        chance -= sum(math.log(among) for among in offered.values())
    return math.exp(min(0.0, chance))
