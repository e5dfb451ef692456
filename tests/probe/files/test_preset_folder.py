"""Folders as KerasHub's ``save_to_preset`` writes them, and where its loaders keep them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.probe.files.preset_folder import is_path, preset_folder, read_preset

if TYPE_CHECKING:
    from pathlib import Path

ARGUMENTS = {"vocabulary_size": 32, "num_layers": 2, "num_heads": 2, "hidden_dim": 16}
PLAIN = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}}
MAP = {"module": "keras", "class_name": "DTypePolicyMap", "config": {"policy_map": {}}}


def saved(folder: Path, *, dtype: dict[str, Any] = PLAIN, **more: object) -> Path:
    folder.mkdir(parents=True)
    config = {"name": "gpt2_backbone", "trainable": True, "dtype": dtype, **ARGUMENTS, **more}
    whole = {
        "module": "keras_hub.src.models.gpt2.gpt2_backbone", "class_name": "GPT2Backbone",
        "config": config, "registered_name": "keras_hub>GPT2Backbone",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(whole))
    return folder


def test_the_arguments_of_a_saved_model_are_read_less_those_of_every_layer(tmp_path: Path) -> None:
    found = read_preset(saved(tmp_path / "mine", max_sequence_length=64))
    assert found.backbone == "GPT2Backbone"
    assert found.config == {**ARGUMENTS, "max_sequence_length": 64}
    assert (found.sequence_length, found.parameter_count) == (64, 0)


def test_what_the_configuration_leaves_open_the_other_files_tell(tmp_path: Path) -> None:
    folder = saved(tmp_path / "mine")
    (folder / "metadata.json").write_text('{"parameter_count": 6016, "tasks": ["CausalLM"]}')
    (folder / "preprocessor.json").write_text('{"config": {"sequence_length": 48}}')
    found = read_preset(folder)
    assert (found.sequence_length, found.parameter_count) == (48, 6016)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "there is no preset in DIR: it has no config.json; name a folder that"),
        ("{", "DIR/config.json is not valid JSON: Expecting property name"),
        ("[]", "DIR/config.json holds no object of JSON: it is a list."),
        ('{"model_type": "qwen3"}', "its config.json is that of Hugging Face's qwen3; load it"),
        ('{"registered_name": "mine>Net"}', "DIR holds no preset of KerasHub"),
    ],
)
def test_what_is_no_preset_is_one_sentence(tmp_path: Path, text: str | None, told: str) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(UsageError) as error:
        read_preset(tmp_path)
    assert told.replace("DIR", str(tmp_path)) in str(error.value)


def test_weights_that_were_saved_rounded_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="weights that are quantized already"):
        read_preset(saved(tmp_path / "mine", dtype=MAP))


def test_a_name_with_a_slash_is_a_folder_and_a_plain_one_only_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "mine")
    assert is_path("./other")
    assert is_path("mine")
    assert not is_path("gpt2_base_en")
    assert not is_path("hf://google/gemma")


def test_the_highest_version_that_kagglehub_has_kept_is_taken(tmp_path: Path) -> None:
    kept = {"KAGGLEHUB_CACHE": str(tmp_path)}
    versions = tmp_path / "models/keras/qwen3/keras/qwen3_next"
    assert preset_folder("qwen3_next", kept) is None
    for number in ("2", "10"):
        saved(versions / number)
    assert preset_folder("qwen3_next", kept) == versions / "10"
    named = "kaggle://keras/qwen3/keras/qwen3_next"
    assert preset_folder(named, kept) == versions / "10"


def test_a_model_of_hugging_face_is_found_in_its_cache_wherever_that_is(tmp_path: Path) -> None:
    folder = saved(tmp_path / "hub/models--google--gemma/snapshots/0a1b")
    assert preset_folder("hf://google/gemma", {"HF_HOME": str(tmp_path)}) == folder
    assert preset_folder("hf://google/gemma", {"HF_HUB_CACHE": str(tmp_path / "hub")}) == folder
    assert preset_folder("hf://google/other", {"HF_HOME": str(tmp_path)}) is None
    own = saved(tmp_path / "hub/models--keras--qwen3_next/snapshots/0a1b")
    empty = {"HF_HOME": str(tmp_path), "KAGGLEHUB_CACHE": str(tmp_path)}
    assert preset_folder("qwen3_next", empty) == own
