"""jobs/serve/language_model: sizes of folders and presets, counted by hand."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.serve.language_model import language_model

if TYPE_CHECKING:
    from pathlib import Path

QWEN: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"], "vocab_size": 10, "hidden_size": 8,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 16, "tie_word_embeddings": True, "max_position_embeddings": 64,
}  # fmt: skip


def safetensors(path: Path, shapes: dict[str, list[int]]) -> None:
    """A file with a header and no numbers, as its format lays it out."""
    header = {name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
              for name, shape in shapes.items()}  # fmt: skip
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tuned"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(QWEN))
    safetensors(made / "model-1.safetensors", {"model.embed_tokens.weight": [10, 8]})
    safetensors(made / "model-2.safetensors", {"lm_head.weight": [10, 8], "norm.weight": [8]})
    return made


def changed(folder: Path, **fields: object) -> str:
    (folder / "config.json").write_text(json.dumps({**QWEN, **fields}))
    return str(folder)


def test_a_folder_tells_its_sizes(folder: Path) -> None:
    found = language_model(str(folder))
    assert (found.name, found.layers, found.heads, found.kv_heads) == ("tuned", 2, 4, 2)
    assert (found.head_size, found.hidden, found.intermediate, found.longest) == (2, 8, 16, 64)


def test_a_head_that_is_the_table_of_words_is_counted_once(folder: Path) -> None:
    assert language_model(str(folder)).parameter_count == 80 + 8
    assert language_model(changed(folder, tie_word_embeddings=False)).parameter_count == 168


def test_gpt2_has_other_names_and_a_head_for_each_query(folder: Path) -> None:
    names = {"architectures": ["GPT2LMHeadModel"], "vocab_size": 10, "n_embd": 8, "n_layer": 3,
             "n_head": 2, "n_positions": 32}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(names))
    found = language_model(str(folder))
    assert (found.layers, found.kv_heads, found.head_size, found.longest) == (3, 2, 4, 32)
    assert found.intermediate == 32
    assert found.is_tied


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"sliding_window": 4, "use_sliding_window": False}, False),
        ({"sliding_window": 4}, True),
        ({"layer_types": ["full_attention", "sliding_attention"]}, True),
        ({}, False),
    ],
)
def test_windows_are_known(folder: Path, fields: dict[str, object], told: bool) -> None:
    assert language_model(changed(folder, **fields)).has_windows is told


def test_presets_have_the_sizes_that_their_makers_published() -> None:
    llama = language_model("keras_hub:llama3_8b_en")
    assert (llama.layers, llama.kv_heads, llama.head_size) == (32, 8, 128)
    assert (llama.parameter_count, llama.is_tied) == (8_030_261_248, False)
    gemma = language_model("keras_hub:gemma_2b_en")
    assert (gemma.kv_heads, gemma.head_size, gemma.intermediate) == (1, 256, 16_384)
    assert gemma.is_tied
    gpt2 = language_model("keras_hub:gpt2_base_en")
    assert (gpt2.heads, gpt2.kv_heads, gpt2.head_size, gpt2.longest) == (12, 12, 64, 1024)


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("nix", "nix is no folder of Hugging Face: there is no folder nix"),
        ("keras_hub:gpt3", "there is no keras-hub preset 'gpt3'"),
        ("keras_hub:bert_base_en", "its architecture is BertBackbone; known are"),
        ("keras_hub:gemma2_2b_en", "its architecture is Gemma2ForCausalLM; known are"),
    ],
)
def test_what_is_no_such_model_is_one_sentence(reference: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        language_model(reference)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"architectures": ["MambaForCausalLM"]}, "its architecture is MambaForCausalLM"),
        ({"architectures": None}, "its architecture is not told"),
        ({"num_hidden_layers": "2"}, "has no num_hidden_layers that can be used: it is 2"),
        ({"num_attention_heads": 0}, "has no num_attention_heads"),
        ({"vocab_size": None}, "has no vocab_size"),
    ],
)
def test_a_configuration_that_lacks_something_is_refused(
    folder: Path, fields: dict[str, object], told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        language_model(changed(folder, **fields))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "damage", [b"", b"\xff" * 8 + b"{}", struct.pack("<Q", 3) + b"[1]",
               struct.pack("<Q", 12) + b'{"a": {"b":1', struct.pack("<Q", 8) + b'{"a": 1}']
)  # fmt: skip
def test_damaged_weights_are_refused(folder: Path, damage: bytes) -> None:
    (folder / "model-1.safetensors").write_bytes(damage)
    with pytest.raises(UsageError, match=r"model-1\.safetensors holds no weights that can be read"):
        language_model(str(folder))


def test_a_folder_without_weights_or_with_a_damaged_configuration_is_refused(folder: Path) -> None:
    for one in folder.glob("*.safetensors"):
        one.unlink()
    with pytest.raises(UsageError, match="holds no weights: there is no"):
        language_model(str(folder))
    (folder / "config.json").write_text("[]")
    with pytest.raises(UsageError, match="holds no object of JSON"):
        language_model(str(folder))
    (folder / "config.json").write_text("{")
    with pytest.raises(UsageError, match="is not valid JSON"):
        language_model(str(folder))


def test_a_preset_that_tells_no_parameters_is_no_model_without_weights(tmp_path: Path) -> None:
    config = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 32,
              "vocabulary_size": 10, "max_sequence_length": 64}  # fmt: skip
    whole = {"registered_name": "keras_hub>GPT2Backbone", "config": config}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    with pytest.raises(UsageError, match=r"how many parameters keras_hub:.* has is not known"):
        language_model(f"keras_hub:{tmp_path}")
    (tmp_path / "metadata.json").write_text('{"parameter_count": 1234}')
    assert language_model(f"keras_hub:{tmp_path}").parameter_count == 1234
