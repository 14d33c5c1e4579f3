"""The reward that a task's own script leaves."""

from __future__ import annotations

import pytest

from practicum.verification.runners.harbor import read_reward


def test_a_number_or_several_are_a_score() -> None:
    """One number is clipped to [0, 1]; several pass together only, and are a mean below 1 otherwise."""
    assert read_reward(b"0.25") == (0.25, {"reward": 0.25})
    assert read_reward(b'{"reward": 3}') == (1.0, {"reward": 3.0})
    assert read_reward(b'{"a": 1, "b": -5}') == (0.5, {"a": 1.0, "b": -5.0})


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", "true", "NaN", "-Infinity", "1e999", "1" + "0" * 400, "-1" + "0" * 400, "1" * 5000, "[" * 9000],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    """Whatever a script writes that no float holds is a `ValueError`, which leaves the verdict undecided."""
    with pytest.raises(ValueError, match=r".+"):
        read_reward(text.encode())
