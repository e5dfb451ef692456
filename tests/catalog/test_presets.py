"""The presets of keras-hub: whole, right by hand, and kind to a wrong name."""

from __future__ import annotations

import pytest

from tfdyno.catalog.presets import Preset, find_preset, left_out, presets
from tfdyno.core.base.errors import UsageError

every_preset = pytest.mark.parametrize("preset", presets().values(), ids=presets())


def test_presets_are_sorted_by_name() -> None:
    assert list(presets()) == sorted(presets())


@every_preset
def test_a_preset_says_how_its_backbone_is_built_and_where_that_is_from(preset: Preset) -> None:
    assert preset.backbone.endswith("Backbone")
    assert preset.config
    assert preset.parameter_count > 0
    assert preset.sequence_length >= 0
    assert len(preset.source) > 10


def test_a_preset_is_found_with_and_without_its_prefix() -> None:
    assert find_preset("keras_hub:gpt2_base_en") is find_preset("gpt2_base_en")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gpt2_base", "'gpt2_base'; did you mean keras_hub:gpt2_base_en?"),
        ("keras_hub:BERT_base_en", "'BERT_base_en'; did you mean keras_hub:bert_base_en?"),
        ("*", "'*'; families: albert, "),
    ],
)
def test_a_wrong_name_is_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_preset(name)
    assert str(caught.value).startswith(f"there is no keras-hub preset {sentence}")


def test_a_preset_that_is_left_out_says_why() -> None:
    with pytest.raises(UsageError) as caught:
        find_preset("opt_2.7b_en")
    assert str(caught.value) == (
        "tfdyno cannot build the keras-hub preset 'opt_2.7b_en': keras-hub tells a rounded "
        "parameter count only, which proves nothing; name a script that builds the model."
    )


def test_no_preset_is_both_there_and_left_out() -> None:
    assert not presets().keys() & left_out().keys()
