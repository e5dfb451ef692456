"""The folder of a language model as Hugging Face has it: written by KerasHub and read again.

The only module that imports ``keras_hub.src``: which models its converters know has no public name.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.messages.export import TOKENS_FILE
from tfdyno.process.failure import first_line
from tfdyno.runtime.export.plain import (
    adapted_layers,
    check_modes,
    float_policy,
    plain,
    quantized_modes,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.base.untyped import Model, Module, Value
    from tfdyno.runtime.export.source import Source

    Arrays = dict[str, np.ndarray]

CONFIG = "config.json"
ARCHITECTURES = {
    "gemma": "GemmaForCausalLM",
    "gpt2": "GPT2LMHeadModel",
    "qwen2": "Qwen2ForCausalLM",
}
"""By ``model_type``, where KerasHub leaves it out: neither its own reader nor vLLM does without."""
READER_DTYPES = {"MistralBackbone": "float16"}
"""By the backbone: to which type KerasHub's reader rounds some weights, whatever the file has."""
TEXT = "The quick brown fox jumps over 13 lazy dogs, doesn't it?"
"""That both tokenizers have to make the same numbers of."""
_INSTALL = "pip install 'tfdyno[hub]', or name an interpreter that has it with --python"


def check_packages() -> None:
    """Raise ``UsageError`` where a package is missing that writes or reads the folder."""
    for module, name in (("keras_hub", "KerasHub"), ("safetensors", "safetensors")):
        if find_spec(module) is None:
            raise UsageError(f"export to huggingface needs {name}",
                             why="this interpreter has none", remedy=_INSTALL)  # fmt: skip


def check(source: Source) -> None:
    """Raise ``UsageError`` where KerasHub cannot write this model, before anything is written."""
    model, title = source.model, source.title
    import keras_hub

    what = f"{title} cannot be exported to huggingface"
    if not isinstance(model, keras_hub.models.CausalLM):
        raise UsageError(what, why=f"it is no CausalLM of KerasHub but a {type(model).__name__}",
                         remedy="export to savedmodel or onnx")  # fmt: skip
    exporter = _exporter()
    name = type(model.backbone).__name__
    if name not in exporter.MODEL_EXPORTERS:
        raise UsageError(
            what,
            why=f"KerasHub {keras_hub.__version__} has no converter for {name}; it has for "
            f"{', '.join(sorted(exporter.MODEL_EXPORTERS))}",
            remedy="export to savedmodel",
        )
    if name == "GemmaBackbone" and model.backbone.use_post_ffw_norm:
        raise UsageError(what, why="it is a Gemma 2, which KerasHub writes as if it were a Gemma",
                         remedy="export to savedmodel")  # fmt: skip
    tokenizer = getattr(model.preprocessor, "tokenizer", None)
    if type(tokenizer).__name__ not in exporter.MODEL_TOKENIZER_CONFIGS:
        has = f"its {type(tokenizer).__name__} has no converter" if tokenizer else "it has none"
        raise UsageError(what, why=f"a server needs its tokenizer, and {has}",
                         remedy="give a function that returns it with its preprocessor: "
                         "file.py:function")  # fmt: skip
    check_modes(model, title)


def _exporter() -> Module:
    try:
        from keras_hub.src.utils.transformers.export import hf_exporter
    except ImportError as error:
        raise UsageError("this KerasHub writes no folder of Hugging Face", why=first_line(error),
                         remedy=_INSTALL) from None  # fmt: skip
    return hf_exporter


def write(source: Source, target: Path) -> dict[str, Any]:
    """Write the folder, adapters in the weights and weights as floats; tell what was changed."""
    model = source.model
    adapted, modes = adapted_layers(model), quantized_modes(model)
    merged = plain(model)
    merged.export_to_transformers(str(target))
    path = target / CONFIG
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(_completed(config, merged), indent=2) + "\n", encoding="utf-8")
    return {"merged_adapters": adapted, "made_floats": list(modes)}


def _completed(config: dict[str, Any], model: Model) -> dict[str, Any]:
    """Return the configuration with what servers ask for and KerasHub leaves out of some."""
    kind = config["model_type"]
    if not config.get("architectures") and kind not in ARCHITECTURES:
        raise ToolError(f"KerasHub wrote a {kind} without its architecture")
    known: dict[str, Any] = {"torch_dtype": str(model.backbone.dtype_policy.compute_dtype)}
    if kind in ARCHITECTURES:
        known["architectures"] = [ARCHITECTURES[kind]]
    if kind == "qwen2":
        known |= _windows(model.backbone)
    return {**known, **config}


def _windows(backbone: Value) -> dict[str, Any]:
    """Return what a Qwen attends to: KerasHub's windows are those of every layer."""
    is_used = bool(backbone.use_sliding_window_attention)
    size = backbone.sliding_window_size
    first = {"max_window_layers": 0} if is_used else {}
    return {"use_sliding_window": is_used, "sliding_window": size, **first}


def read_again(path: Path, source: Source) -> tuple[Callable[[Arrays], Arrays], str]:
    """Return a call of what KerasHub's reader makes of the folder, and who reads it, in words.

    Raises:
        ToolError: The tokenizer that was written is another.
    """
    import keras_hub

    own = source.model.preprocessor.tokenizer
    if own.get_vocabulary() != _tokenizer(path, type(own)).get_vocabulary():
        raise ToolError("the tokenizer that was written is another",
                        why="its words are not those of the model")  # fmt: skip
    model = keras_hub.models.CausalLM.from_preset(
        str(path), preprocessor=None, dtype=float_policy(source.model)
    )
    [name] = source.outputs

    def run(inputs: Arrays) -> Arrays:
        return {name: np.asarray(tf.cast(model(inputs, training=False), tf.float32))}

    return run, f"KerasHub {keras_hub.__version__}"


def keep_tokens(source: Source, folder: Path) -> None:
    """Write what the model's tokenizer makes of a text, for who reads the folder elsewhere."""
    numbers = [int(one) for one in source.model.preprocessor.tokenizer(TEXT)]
    (folder / TOKENS_FILE).write_text(json.dumps({"text": TEXT, "numbers": numbers}))


def _tokenizer(path: Path, kind: Value) -> Value:
    """Read the tokenizer from the files that it was written as.

    KerasHub's reader of a Qwen's wants another file, which its converter does not write.
    """
    words, merges = path / "vocab.json", path / "merges.txt"
    if words.is_file():
        return kind(vocabulary=str(words), merges=str(merges))
    return kind.from_preset(str(path))
