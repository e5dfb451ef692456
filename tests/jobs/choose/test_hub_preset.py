"""What ``keras_hub:NAME`` means: the catalogue, a folder, a cache."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.presets import find_preset
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.hub_preset import hub_preset

if TYPE_CHECKING:
    from pathlib import Path

UNCOLLECTED = "qwen3_5_2b"


def saved(folder: Path, backbone: str, **config: object) -> Path:
    folder.mkdir(parents=True)
    whole = {"registered_name": f"keras_hub>{backbone}", "config": config}
    (folder / "config.json").write_text(json.dumps(whole))
    return folder


@pytest.fixture(autouse=True)
def _empty_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_a_name_of_the_catalogue_is_that() -> None:
    assert hub_preset("keras_hub:gpt2_base_en") == find_preset("gpt2_base_en")


def test_a_folder_is_read_and_goes_before_a_name(tmp_path: Path) -> None:
    folder = saved(tmp_path / "gpt2_base_en", "GPT2Backbone", max_sequence_length=64)
    found = hub_preset("keras_hub:gpt2_base_en")
    assert (found.backbone, found.sequence_length) == ("GPT2Backbone", 64)
    assert hub_preset(f"keras_hub:{folder}").config == {"max_sequence_length": 64}


def test_a_rotary_model_takes_as_many_tokens_as_its_like_in_the_catalogue(tmp_path: Path) -> None:
    folder = saved(tmp_path / "mine", "GemmaBackbone", vocabulary_size=32)
    longest = find_preset("gemma_2b_en").sequence_length
    assert hub_preset(f"keras_hub:{folder}").sequence_length == longest > 0


def test_what_the_catalogue_leaves_out_is_taken_from_the_cache(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        hub_preset(f"keras_hub:{UNCOLLECTED}")
    once = "Backbone.from_preset('qwen3_5_2b', load_weights=False) once"
    assert once in str(error.value)
    kept = tmp_path / "models/keras/qwen3.5/keras" / UNCOLLECTED / "1"
    saved(kept, "Qwen3_5Backbone", vocabulary_size=32)
    found = hub_preset(f"keras_hub:{UNCOLLECTED}")
    assert (found.name, found.backbone, found.source) == (UNCOLLECTED, "Qwen3_5Backbone", str(kept))


def test_an_address_that_was_never_loaded_says_how_to() -> None:
    with pytest.raises(UsageError) as error:
        hub_preset("keras_hub:hf://google/gemma")
    assert str(error.value) == (
        "keras_hub:hf://google/gemma is not on this machine; run keras_hub.models.Backbone."
        "from_preset('hf://google/gemma', load_weights=False) once."
    )
