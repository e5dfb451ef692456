"""A language model's sizes: of a folder as Hugging Face has it, or of a preset of KerasHub."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import read_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import HUB_PREFIX
from tfdyno.core.deploy.language_model import LanguageModel
from tfdyno.jobs.choose.hub_preset import hub_preset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.catalog.presets import Preset

CONFIG = "config.json"
WEIGHTS = "*.safetensors"
HEAD = "lm_head.weight"
ARCHITECTURES = (
    "GPT2LMHeadModel", "GemmaForCausalLM", "Gemma3ForCausalLM", "LlamaForCausalLM",
    "MistralForCausalLM", "Qwen2ForCausalLM",
)  # fmt: skip
"""Those that keep keys and values of every layer and nothing else."""
_BACKBONES = {
    "GPT2Backbone": "GPT2LMHeadModel",
    "GemmaBackbone": "GemmaForCausalLM",
    "Gemma3Backbone": "Gemma3ForCausalLM",
    "Llama3Backbone": "LlamaForCausalLM",
    "MistralBackbone": "MistralForCausalLM",
    "QwenBackbone": "Qwen2ForCausalLM",
}
_MOST_HEADER_BYTES = 100 << 20
"""A header of safetensors is no longer."""
_EXPORT = "write it first: tfdyno export MODEL --to huggingface --output DIR"


def language_model(reference: str) -> LanguageModel:
    """Return the sizes of what is named.

    Raises:
        UsageError: It is neither such a folder nor such a preset, it is damaged, or how much its
            cache takes is not known.
    """
    if reference.startswith(HUB_PREFIX):
        return _of_preset(hub_preset(reference))
    return _of_folder(Path(reference))


def _of_folder(folder: Path) -> LanguageModel:
    if not (folder / CONFIG).is_file():
        why = (
            f"there is no {folder / CONFIG}" if folder.is_dir() else f"there is no folder {folder}"
        )
        raise UsageError(f"{folder} is no folder of Hugging Face", why=why, remedy=_EXPORT)
    whole = read_json(folder / CONFIG)
    name = folder.resolve().name
    architecture = next(iter(whole.get("architectures") or ()), "")
    _check_architecture(name, architecture)
    number = _Numbers(whole, folder / CONFIG)
    heads = number("num_attention_heads", "n_head")
    hidden = number("hidden_size", "n_embd")
    is_tied = bool(whole.get("tie_word_embeddings", True))
    return LanguageModel(
        name=name,
        architecture=architecture,
        layers=number("num_hidden_layers", "n_layer"),
        heads=heads,
        kv_heads=number("num_key_value_heads", usual=heads),
        head_size=number("head_dim", usual=hidden // heads),
        hidden=hidden,
        intermediate=number("intermediate_size", "n_inner", usual=4 * hidden),
        vocabulary=number("vocab_size"),
        parameter_count=_parameters(folder, is_tied=is_tied),
        is_tied=is_tied,
        longest=number("max_position_embeddings", "n_positions", usual=0),
        has_windows=_has_windows(whole),
        source=f"{folder}/{CONFIG} and the headers of its weights",
    )


def _check_architecture(name: str, architecture: str) -> None:
    if architecture not in ARCHITECTURES:
        raise UsageError(
            f"how much memory {name} takes to serve is not known",
            why=f"its architecture is {architecture or 'not told'}; known are those that keep keys "
            f"and values of every layer and nothing else: {', '.join(ARCHITECTURES)}",
            remedy="write the server's files by hand",
        )


class _Numbers:
    """Reads whole numbers of a configuration under one of several names."""

    def __init__(self, config: Mapping[str, Any], path: Path) -> None:
        self.config, self.path = config, path

    def __call__(self, *names: str, usual: int | None = None) -> int:
        """Return the first that is there; raises ``UsageError``."""
        given = next((self.config[one] for one in names if self.config.get(one) is not None), usual)
        least = 0 if usual == 0 else 1
        if isinstance(given, bool) or not isinstance(given, int) or given < least:
            raise UsageError(f"{self.path} has no {names[0]} that can be used",
                             why=f"it is {given}", remedy=_EXPORT)  # fmt: skip
        return given


def _has_windows(config: Mapping[str, Any]) -> bool:
    used = config.get("use_sliding_window", True)
    kinds = config.get("layer_types") or ()
    return bool(used and config.get("sliding_window")) or "sliding_attention" in kinds


def _parameters(folder: Path, *, is_tied: bool) -> int:
    """Count the weights by the headers of their files; a tied head is not counted again."""
    files = sorted(folder.glob(WEIGHTS))
    if not files:
        raise UsageError(f"{folder} holds no weights", why=f"there is no {WEIGHTS}", remedy=_EXPORT)
    shapes = {name: entry for one in files for name, entry in _header(one).items()}
    if is_tied:
        shapes.pop(HEAD, None)
    return sum(math.prod(one["shape"]) for one in shapes.values())


def _header(path: Path) -> dict[str, Any]:
    """Return the tensors of a file: 8 bytes tell how long the JSON behind them is."""
    try:
        with path.open("rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            if size > _MOST_HEADER_BYTES:
                raise ValueError("its header is longer than such files have")
            found = json.loads(file.read(size))
            tensors = {name: one for name, one in found.items() if name != "__metadata__"}
            for one in tensors.values():
                math.prod(one["shape"])
    except (OSError, ValueError, struct.error, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} holds no weights that can be read", why=str(error),
                         remedy=_EXPORT) from None  # fmt: skip
    return tensors


def _of_preset(preset: Preset) -> LanguageModel:
    config: dict[str, Any] = preset.config
    architecture = _BACKBONES.get(preset.backbone, preset.backbone)
    if config.get("vision_encoder"):
        architecture = f"that of {preset.backbone} with images"
    if preset.backbone == "GemmaBackbone" and config.get("use_post_ffw_norm"):
        architecture = "Gemma2ForCausalLM"
    name = f"{HUB_PREFIX}{preset.name}"
    _check_architecture(name, architecture)
    if not preset.parameter_count:
        raise UsageError(f"how many parameters {name} has is not known",
                         why=f"nothing in {preset.source} tells", remedy=_EXPORT)  # fmt: skip
    heads = int(config.get("num_query_heads") or config["num_heads"])
    hidden = int(config["hidden_dim"])
    halves = 2 if preset.backbone == "GemmaBackbone" else 1  # KerasHub counts gate and value
    windows = config.get("use_sliding_window_attention", config.get("sliding_window"))
    return LanguageModel(
        name=name,
        architecture=architecture,
        layers=int(config["num_layers"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_size=int(config.get("head_dim") or hidden // heads),
        hidden=hidden,
        intermediate=int(config["intermediate_dim"]) // halves,
        vocabulary=int(config["vocabulary_size"]),
        parameter_count=preset.parameter_count,
        is_tied=bool(config.get("tie_word_embeddings", preset.backbone != "MistralBackbone")),
        longest=preset.sequence_length,
        has_windows=bool(windows),
        source=f"KerasHub's preset ({preset.source})",
    )
