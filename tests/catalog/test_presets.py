"""The presets of keras-hub: whole, right by hand, and kind to a wrong name."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hub_presets.claims import merged, read_claims
from hub_presets.table import written
from tfdyno.catalog.presets import Preset, find_preset, left_out, presets, with_none
from tfdyno.catalog.tables import DATA
from tfdyno.core.base.errors import UsageError

ROOT = Path(__file__).parents[2]
FEED_FORWARD, WIDTH = 3072, 768
"""Of BERT-base and GPT-2."""
BLOCK = 4 * WIDTH * (WIDTH + 1) + 2 * WIDTH * FEED_FORWARD + FEED_FORWARD + WIDTH + 4 * WIDTH
"""Four projections, two layers of the feed-forward part, two normalizations."""
COUNTS = {
    # Tokens and positions, blocks, the last normalization.
    "gpt2_base_en": (50_257 + 1024) * WIDTH + 12 * BLOCK + 2 * WIDTH,
    # Tokens, positions and segments with a normalization, blocks, the pooler.
    "bert_base_en_uncased": (30_522 + 512 + 2 + 2) * WIDTH + 12 * BLOCK + WIDTH * (WIDTH + 1),
    # Tokens in and out; queries and output, keys and values, three layers, two normalizations.
    "llama3_8b_en": 2 * 128_256 * 4096
    + 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14_336 + 2 * 4096)
    + 4096,
    # The same with tied embeddings and one head of keys and values.
    "gemma_2b_en": 256_000 * 2048
    + 18 * (2 * 2048 * 2048 + 2 * 2048 * 256 + 3 * 2048 * 16_384 + 2 * 2048)
    + 2048,
    # The same with eight experts and their router.
    "mixtral_8_7b_en": 2 * 32_000 * 4096
    + 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 8 * 3 * 4096 * 14_336 + 8 * 4096 + 2 * 4096)
    + 4096,
    # Patches with bias, class token, positions, blocks, the last normalization.
    "vit_base_patch16_224_imagenet": 16 * 16 * 3 * WIDTH
    + WIDTH + WIDTH + (14 * 14 + 1) * WIDTH + 12 * BLOCK + 2 * WIDTH,
}  # fmt: skip
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


def test_there_are_presets_of_every_kind_of_model() -> None:
    families = {preset.family for preset in presets().values()}
    assert len(presets()) >= 60
    assert families >= {
        "albert", "bart", "bert", "bloom", "clip", "deberta_v3", "deit", "densenet", "distil_bert",
        "electra", "f_net", "falcon", "gemma", "gemma3", "gpt2", "gpt_oss", "llama", "llama3",
        "mistral", "mit", "mixtral", "opt", "phi3", "qwen", "qwen3", "qwen3_moe", "qwen_moe",
        "resnet", "roberta", "sam", "smollm3", "stable_diffusion_3", "swin_transformer",
        "t5", "vit", "whisper", "xlm_roberta",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_a_preset_has_as_many_parameters_as_its_formula_says(name: str, count: int) -> None:
    assert find_preset(name).parameter_count == count


def test_none_is_read_where_the_file_says_so() -> None:
    assert find_preset("mistral_0.3_7b_en").config["sliding_window"] is None
    assert find_preset("mistral_7b_en").config["sliding_window"] == 4096


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
        "parameter count only, which proves nothing; run keras_hub.models.Backbone."
        "from_preset('opt_2.7b_en', load_weights=False) once, or name a script."
    )


def test_no_preset_is_both_there_and_left_out() -> None:
    assert not presets().keys() & left_out().keys()


def test_every_preset_is_what_is_written_by_hand_and_no_other() -> None:
    claims = {name: claim for claim in read_claims() for name in claim.presets}
    assert claims.keys() >= presets().keys()
    for name, preset in presets().items():
        claim = claims[name]
        assert preset.config == with_none(claim.config)
        assert (preset.family, preset.backbone) == (claim.family, claim.backbone)
        assert preset.sequence_length == claim.sequence_length
        assert preset.source.startswith(claim.source)
    assert claims.keys() - presets().keys() <= left_out().keys(), "what differs is listed"


def test_a_size_changes_what_its_family_says_also_inside_a_layer() -> None:
    family: dict[str, object] = {"a": 1, "layer": {"config": {"width": 2, "depth": 3}}}
    size: dict[str, object] = {"b": 4, "layer": {"config": {"depth": 5}}}
    assert merged(family, size) == {"a": 1, "b": 4, "layer": {"config": {"width": 2, "depth": 5}}}
    assert family["layer"] == {"config": {"width": 2, "depth": 3}}


def test_a_preset_that_is_claimed_twice_is_refused(tmp_path: Path) -> None:
    size = '[[gpt2.sizes]]\npresets = ["gpt2_base_en"]\nconfig = {}\n'
    (tmp_path / "one.toml").write_text(
        f'[gpt2]\nbackbone = "GPT2Backbone"\nsequence_length = 1\nsource = "s"\n{size}{size}'
    )
    with pytest.raises(UsageError) as caught:
        read_claims(tmp_path)
    assert str(caught.value).startswith("one.toml [gpt2] names gpt2_base_en a second time")


def test_what_is_written_is_read_again() -> None:
    row = {
        "presets": ["a", 'b"'], "backbone": "B", "parameter_count": 12_345, "sequence_length": 0,
        "source": "s", "config": {"on": True, "rate": 0.1, "size": "none", "list": [[1]], "d": {}},
    }  # fmt: skip
    text = written({"f": [row]}, {"why": ["c"]}, "1.2.3")
    read = {"keras_hub": "1.2.3", "left_out": {"why": ["c"]}, "family": {"f": [row]}}
    assert tomllib.loads(text) == read
    assert "parameter_count = 12_345" in text


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("keras_hub") is None, reason="keras-hub is not installed"
)
def test_every_backbone_is_built_anew_and_the_file_says_what_came_out() -> None:
    import importlib.metadata

    version = importlib.metadata.version("keras-hub")
    proven = tomllib.loads((DATA / "presets.toml").read_text())["keras_hub"]
    if version != proven:
        pytest.skip(f"presets.toml is of keras-hub {proven}, here is {version}")
    paths = [str(ROOT / "src"), str(ROOT / "scripts"), *sys.path]
    made = subprocess.run(
        [sys.executable, "-m", "hub_presets.make", "--check"],
        env=os.environ | {
            "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(paths),
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
