"""Texts as words, code tokens and hashes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from practicum.curation.similarity.tokens import code_tokens, runs, shape_tokens, shingles, text_hash, words


def test_hashes_are_the_same_in_another_process() -> None:
    """Hashes do not depend on the process, so features of several processes can be compared."""
    program = (
        "from practicum.curation.similarity.tokens import shingles, text_hash\n"
        "print(text_hash(['a', 'b']), shingles(list('abcdef'), 3).tolist())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{text_hash(['a', 'b'])} {shingles(list('abcdef'), 3).tolist()}\n"}


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(1, 6))
def test_equal_runs_have_equal_hashes_and_others_do_not(tokens: list[str], length: int) -> None:
    """The hash of a run tells its tokens and their order, wherever the run stands."""
    found = runs(tokens, length).tolist()
    texts = [tuple(tokens[at : at + length]) for at in range(len(tokens) - length + 1)]
    assert len(found) == len(texts)
    assert len(set(zip(found, texts, strict=True))) == len(set(found)) == len(set(texts))
    assert shingles(tokens, length).tolist() == sorted(set(found))


def test_layout_comments_and_quotes_do_not_count() -> None:
    """Comments, layout and the kind of quotes are no part of a program's tokens; what strings hold is."""
    one = code_tokens("def f(a):  # adds\n    return a + 'x # y'\n")
    assert one == code_tokens('def f( a ) :\n\n  return a+"x # y"')
    assert one != code_tokens("def f(a):\n    return a + 'x'\n")


def test_words_are_folded() -> None:
    """Case, punctuation and width of characters do not make other words."""
    assert words("Fix the Ｂug, please!") == words("fix THE bug please")


def test_shape_hides_names_only() -> None:
    """Names that a person may choose are one; keywords, built-ins, attributes and numbers stay."""
    shape = shape_tokens(code_tokens("for item in items: total += len(item.parts) * 3"))
    assert shape == ["for", "v", "in", "v", ":", "v", "+=", "len", "(", "v", ".", "parts", ")", "*", "3"]


@given(st.text(max_size=200))
def test_any_text_can_be_cut(text: str) -> None:
    """No text is refused, and cutting it gives sorted sets."""
    for tokens in (words(text), code_tokens(text)):
        cut = shingles(tokens, 3)
        assert np.all(cut[1:] > cut[:-1])
