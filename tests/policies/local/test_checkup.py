"""What is found in model folders: parts that are missing or broken, and templates that rewrite."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from practicum.policies.local.checkup import ModelCheck, check_model
from practicum.policies.local.folder import save_folder
from practicum.policies.local.tiny import CHATML, tiny_model, tiny_tokenizer

# Thoughts of earlier turns vanish, as in templates of models that reason: only the last turn is written in full.
FORGETS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and not loop.last %}…"
    "{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_TOOL = "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}{% endfor %}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tiny_model()
    save_folder(made, tiny_tokenizer(), tmp_path, made.state_dict())
    return tmp_path


def found(folder: Path) -> dict[str, ModelCheck]:
    return {check.name: check for check in check_model(folder)}


def bars(folder: Path) -> set[str]:
    """Names of what keeps the model from being used; each comes with a fix."""
    broken = [check for check in check_model(folder) if check.required and not check.ok]
    assert all(check.fix for check in broken)
    return {check.name for check in broken}


def test_a_sound_folder(folder: Path) -> None:
    """Every part of a sound model holds, and is described."""
    checks = found(folder)
    assert bars(folder) == set()
    assert all(check.ok for name, check in checks.items() if name != "bit-equal sampling")
    assert "context 64" in checks["sizes"].detail
    assert "<|im_end|>" in checks["tokenizer"].detail


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("tokenizer.json", {"tokenizer", "weights", "chat template"}),
        ("model.safetensors", {"weights"}),
        ("config.json", {"sizes", "weights"}),
    ],
)
def test_a_missing_part(folder: Path, missing: str, named: set[str]) -> None:
    """A file that is not there is named, and the other parts are looked at all the same."""
    (folder / missing).unlink()
    assert bars(folder) == named
    assert any(missing in check.detail for check in check_model(folder) if not check.ok)


def test_weights_that_are_cut_off(folder: Path) -> None:
    """A file of weights that ends too early is found, though its beginning is well."""
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-100])
    assert bars(folder) == {"weights"}


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    """Weights that are not finite bar the model, by name."""
    made = tiny_model()
    with torch.no_grad():
        made.norm.weight[0] = float("nan")
    save_folder(made, tiny_tokenizer(), tmp_path, made.state_dict())
    assert bars(tmp_path) == {"weights"}
    assert "norm.weight" in found(tmp_path)["weights"].detail


def test_a_template_that_rewrites(folder: Path) -> None:
    """A template that writes earlier turns otherwise is told from one that only appends, and what it breaks is said."""
    (folder / "chat_template.jinja").write_text(FORGETS)
    assert bars(folder) == {"prefixes"}
    checks = found(folder)
    assert not checks["several turns, speech tags"].ok
    assert "sample of its own" in checks["prefixes"].detail


def test_a_template_without_tools(folder: Path) -> None:
    """A template that refuses one role limits the ways of acting, and does not bar the model."""
    (folder / "chat_template.jinja").write_text(NO_TOOL + CHATML)
    assert bars(folder) == set()
    checks = found(folder)
    assert checks["several turns, speech fence"].ok
    assert not checks["several turns, speech hermes"].ok
    assert "no tools" in checks["several turns, speech hermes"].detail


def test_a_template_that_cannot_be_read(folder: Path) -> None:
    """A template with an error in it bars the model."""
    (folder / "chat_template.jinja").write_text("{% for %}")
    assert bars(folder) == {"chat template"}
