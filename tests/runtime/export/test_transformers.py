"""runtime/export/transformers: transformers reads a GPT-2 folder; its scores are those of Keras."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.core.messages.export import CompareOnTorch, ForTorch
from tfdyno.runtime.export.transformers import handle

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("transformers") is None,
    reason="transformers or PyTorch is not installed",
)
WORDS = {"<|endoftext|>": 0, **{letter: number for number, letter in enumerate("abcdefgh", 1)}}
KNOWN = ForTorch(judged="", amounts=(), batch=0, data="2 random rows")


def request(folder: Path) -> CompareOnTorch:
    return CompareOnTorch(folder=folder, kept=folder, inputs=("token_ids", "padding_mask"),
                          outputs=("scores",), known=KNOWN)  # fmt: skip


def tokenizer_of(folder: Path, numbers: list[int]) -> None:
    """Write a GPT-2's tokenizer of eight letters, and what another made of ``ab``."""
    (folder / "vocab.json").write_text(json.dumps(WORDS))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (folder / "tokens.json").write_text(json.dumps({"text": "ab", "numbers": numbers}))


def test_a_folder_without_weights_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(ToolError, match="transformers cannot load the huggingface"):
        handle(request(tmp_path), lambda _stage: None)


def test_scores_are_compared_with_those_that_were_kept(tmp_path: Path) -> None:
    import torch
    import transformers

    config = transformers.GPT2Config(vocab_size=11, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(tmp_path)
    tokenizer_of(tmp_path, numbers=[1, 2])
    tokens = np.arange(8).reshape(2, 4)
    with torch.no_grad():
        scores = np.asarray(model(torch.from_numpy(tokens)).logits)
    np.savez(tmp_path / "inputs.npz", token_ids=tokens, padding_mask=np.ones_like(tokens))
    np.savez(tmp_path / "outputs.npz", scores=scores + 0.5)
    found = handle(request(tmp_path), lambda _stage: None)
    [one] = found.differences
    assert one.output == "scores in transformers"
    assert one.max_abs == pytest.approx(0.5, abs=1e-5)
    assert (found.rows, found.data) == (2, "2 random rows")


def test_a_tokenizer_that_makes_other_numbers_is_refused(tmp_path: Path) -> None:
    import transformers

    config = transformers.GPT2Config(vocab_size=11, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    tokenizer_of(tmp_path, numbers=[2, 1])
    with pytest.raises(ToolError, match=r"other numbers of 'ab': \[1, 2\] in place of \[2, 1\]"):
        handle(request(tmp_path), lambda _stage: None)
