"""A small tokenizer that knows the action protocol and falls back to bytes.

Owns: the vocabulary and the lossless text ⇄ ids mapping.
Invariant: `decode(encode(text)) == text` for every text that UTF-8 can carry or that came from bytes by surrogate
escapes; control ids never come out of `encode`, only out of `encode_action`, so no file and no output can forge a
turn boundary.
Must not know: models, conversations.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from practicum.errors import PolicyRefused

PAD, TASK, ASSISTANT, OBSERVATION = 0, 1, 2, 3
TAGS: tuple[str, ...] = ("<bash>", "</bash>", "<edit>", "<old>", "<new>", "</edit>", "<submit>")
_FIRST_TAG = 4
_FIRST_BYTE = _FIRST_TAG + len(TAGS)
_FIRST_PIECE = _FIRST_BYTE + 256
_ROLE_NAMES = {PAD: "", TASK: "", ASSISTANT: "", OBSERVATION: ""}

# Operators with their spaces, indentation, words, single digits, the rest.
_PIECE = re.compile(
    r" (?:\*\*|//|<=|>=|==|!=|\+=|-=|\*=|[-+*/%<>=]|and|or|in|not|is) "
    r"|\n(?: {4})*|, | ?[A-Za-z_]+|-?\d|.",
    re.DOTALL,
)
# Neither text that UTF-8 can carry nor an escaped byte: nothing could stand for it.
_UNSPEAKABLE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_TAG = re.compile("(" + "|".join(re.escape(tag) for tag in TAGS) + ")")


def split_pieces(text: str) -> list[str]:
    """`text` cut into the pieces that the vocabulary is made of; joined, they are `text` again."""
    return _PIECE.findall(text)


class Tokenizer:
    """Pieces seen in the training texts, tags of the protocol, role marks, and all 256 bytes."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = tuple(pieces)
        self._ids = {piece: _FIRST_PIECE + i for i, piece in enumerate(self.pieces)}

    @classmethod
    def train(cls, texts: Iterable[str], *, size: int = 1024, min_count: int = 2) -> Tokenizer:
        """The most frequent pieces of `texts`, up to `size` ids in all; ties by text, so it is reproducible."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(split_pieces(text))
        ranked = sorted((-n, piece) for piece, n in counts.items() if n >= min_count)
        return cls([piece for _, piece in ranked[: max(0, size - _FIRST_PIECE)]])

    @property
    def size(self) -> int:
        """Number of ids."""
        return _FIRST_PIECE + len(self.pieces)

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Ids that end an action: `</bash>`, `</edit>`, `<submit>`."""
        return tuple(self.tag_id(tag) for tag in ("</bash>", "</edit>", "<submit>"))

    @staticmethod
    def tag_id(tag: str) -> int:
        return _FIRST_TAG + TAGS.index(tag)

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; tags in it are spelled out in bytes or pieces, never as control ids."""
        ids: list[int] = []
        for piece in split_pieces(_UNSPEAKABLE.sub("?", text)):
            known = self._ids.get(piece)
            if known is not None:
                ids.append(known)
            else:
                ids += [_FIRST_BYTE + byte for byte in piece.encode("utf-8", "surrogateescape")]
        return ids

    def encode_action(self, text: str) -> list[int]:
        """Ids of an assistant's text, whose tags are control ids."""
        ids: list[int] = []
        for part in _TAG.split(text):
            ids += [self.tag_id(part)] if part in TAGS else self.encode(part)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Text of `ids`; bytes that are not UTF-8 become surrogate escapes, role marks vanish."""
        out = bytearray()
        for i in ids:
            if i >= _FIRST_PIECE:
                out += self.pieces[i - _FIRST_PIECE].encode("utf-8", "surrogateescape")
            elif i >= _FIRST_BYTE:
                out.append(i - _FIRST_BYTE)
            else:
                out += (TAGS[i - _FIRST_TAG] if i >= _FIRST_TAG else _ROLE_NAMES[i]).encode()
        return out.decode("utf-8", "surrogateescape")

    def to_json(self) -> str:
        return json.dumps({"format": "practicum-tokenizer-1", "pieces": list(self.pieces)}, ensure_ascii=True)

    @classmethod
    def from_json(cls, text: str) -> Tokenizer:
        """Raises `PolicyRefused` if the text is not a tokenizer of this format."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise PolicyRefused(f"tokenizer.json is not JSON: {error}") from error
        pieces = data.get("pieces") if isinstance(data, dict) else None
        if not isinstance(pieces, list) or data.get("format") != "practicum-tokenizer-1":
            raise PolicyRefused("tokenizer.json is not in the practicum-tokenizer-1 format")
        return cls(pieces)
