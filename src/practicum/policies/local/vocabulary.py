"""The tokenizer of a model that others trained, with the text of its files apart from what steers it.

Owns: `PretrainedTokenizer`, `load_tokenizer`.
Invariant: `encode` never gives a control id, whatever the text says; only `encode_template`, which is for the words of
a chat template, does. `decode` of sampled ids loses nothing that UTF-8 can carry.
Must not know: models, conversations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from practicum.errors import PolicyRefused


class PretrainedTokenizer:
    """Over a `tokenizer.json` of the `tokenizers` library.

    `template` is the chat template (jinja), `stop` the texts of the tokens that end what the model says.
    """

    def __init__(self, text: str, *, template: str, stop: Sequence[str], where: str = "tokenizer.json") -> None:
        from tokenizers import Tokenizer

        try:
            self._plain = Tokenizer.from_str(text)
            self._template = Tokenizer.from_str(text)
        except Exception as error:  # the library raises nothing narrower
            raise PolicyRefused(f"{where} cannot be read: {error}") from error
        self._plain.encode_special_tokens = True  # text that looks like a control token is spelled out
        self.text, self.template, self.stop = text, template, tuple(stop)
        ids: list[int] = []
        for each in stop:
            ident = self._template.token_to_id(each)
            if ident is None:
                raise PolicyRefused(f"{where}: the token {each!r}, which ends a turn, is unknown")
            ids.append(ident)
        if not ids:
            raise PolicyRefused(f"{where}: nothing says which token ends a turn", fix="name it as eos_token")
        self.stop_ids = tuple(ids)

    @property
    def size(self) -> int:
        """Number of ids."""
        count: int = self._plain.get_vocab_size(with_added_tokens=True)
        return count

    def encode(self, text: str) -> list[int]:
        """Ids of plain text, in which nothing is a control token."""
        ids: list[int] = self._plain.encode(_speakable(text), add_special_tokens=False).ids
        return ids

    def encode_template(self, text: str) -> list[int]:
        """Ids of the words of a chat template, in which control tokens are what they say."""
        ids: list[int] = self._template.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Text of `ids`; control tokens vanish, bytes that are no UTF-8 become the replacement character."""
        text: str = self._plain.decode(list(ids), skip_special_tokens=True)
        return text


def _speakable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def byte_level_json(tokens: Sequence[str], merges: Sequence[str], control: Iterable[int], *, split_digits: bool) -> str:
    """The `tokenizer.json` of a byte-level BPE vocabulary; `control` are the ids of its control tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    pairs = [(first, second) for first, _, second in (merge.partition(" ") for merge in merges)]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=pairs))
    steps: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if split_digits else []
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(tokens[i], normalized=False, special=True) for i in control])
    text: str = tokenizer.to_str()
    return text


def stop_texts(config: Mapping[str, Any]) -> list[str]:
    """What `tokenizer_config.json` says ends a turn: a text, or a mapping with `content`."""
    token = config.get("eos_token")
    if isinstance(token, Mapping):
        token = token.get("content")
    return [token] if isinstance(token, str) else []


def config_json(tokenizer: PretrainedTokenizer) -> str:
    """A `tokenizer_config.json` that other libraries read as well."""
    return json.dumps(
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": tokenizer.stop[0],
            "pad_token": tokenizer.stop[0],
            "chat_template": tokenizer.template,
        },
        indent=1,
        ensure_ascii=False,
    )


def load_tokenizer(folder: Path) -> PretrainedTokenizer:
    """The tokenizer in `folder` alone, which need not hold weights. Raises `PolicyRefused`."""
    where = folder / "tokenizer.json"
    if not where.is_file():
        raise PolicyRefused(f"{folder} has no tokenizer.json", fix="put the model's tokenizer.json beside its weights")
    config = read_json(folder / "tokenizer_config.json")
    template = config.get("chat_template")
    apart = folder / "chat_template.jinja"
    if apart.is_file():  # where newer folders keep it
        template = apart.read_text("utf-8")
    if not isinstance(template, str):
        raise PolicyRefused(
            f"{folder} has no chat template", fix="use an instruction-tuned model, or add chat_template.jinja"
        )
    return PretrainedTokenizer(where.read_text("utf-8"), template=template, stop=stop_texts(config), where=str(where))


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a model's folder. Raises `PolicyRefused`."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise PolicyRefused(f"{path.parent} has no {path.name}") from None
    except (OSError, ValueError) as error:
        raise PolicyRefused(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise PolicyRefused(f"{path} is not a JSON object")
    return found
