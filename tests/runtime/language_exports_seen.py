"""What an export to Hugging Face writes and reads again, all of it seen in one process."""

from __future__ import annotations

import functools
from typing import Any

from tests.runtime.benches import in_tensorflow
from tests.runtime.exports_seen import MODELS
from tests.runtime.once import once

CODE = """
import json, sys, tempfile
from pathlib import Path
folder = Path(tempfile.mkdtemp())
sys.path.insert(0, MODELS)
import keras, keras_hub, numpy as np
import language as l
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.messages.export import Export, SourceModel, Target
from tfdyno.core.messages.wire import fields_of
from tfdyno.runtime.export import child, huggingface, plain, source as export_source
from safetensors.numpy import load_file

result = {}
made = {}
export_source.model_and_data = lambda name: (made[name], name, None)

def exported(name, model):
    made[name] = model
    request = Export(model=SourceModel(reference=name, kind="function"), data="", refused={},
                     needs_classes=False, measure=True, kept=folder,
                     targets=(Target(format="huggingface", path=folder / name),))
    try:
        found = child.handle(request, lambda _stage: None).outcome.made[0]
    except TfdynoError as error:
        return str(error)
    one = found.verification.differences[0]
    config = json.loads((folder / name / "config.json").read_text())
    return {"differs": one.max_abs, "largest": one.largest_abs, "details": found.details,
            "latencies": len(found.verification.latencies), "runner": found.verification.runner,
            "made_floats": found.verification.made_floats,
            "runner_dtypes": found.verification.runner_dtypes,
            "rows": found.verification.rows, "again": found.for_transformers is not None,
            "files": sorted(file.name for file in (folder / name).iterdir()), "config": config}

# The same tokens through the base model alone: how far the adapters are from nothing.
inputs = {"token_ids": np.arange(8)[None] + 8, "padding_mask": np.ones((1, 8))}
scores = lambda model: np.asarray(model(inputs), "f4")
tuned = l.adapted(l.gemma())
result["adapters_change"] = float(np.abs(scores(tuned) - scores(l.gemma())).max())
result["gemma_lora"] = exported("gemma_lora", tuned)
query = load_file(folder / "gemma_lora" / "model.safetensors")[
    "model.layers.0.self_attn.q_proj.weight"]
layer = tuned.backbone.get_layer("decoder_block_0").attention.query_dense
merged = np.asarray(layer._kernel) + layer.lora_alpha / layer.lora_rank * np.matmul(
    np.asarray(layer.lora_kernel_a), np.asarray(layer.lora_kernel_b))
heads, width, size = merged.shape
expected = merged.transpose(0, 2, 1).reshape(heads * size, width)
result["query_differs"] = float(np.abs(query - expected).max())
result["still_adapted"] = plain.adapted_layers(tuned)

# Without merging, KerasHub writes the frozen kernels of Gemma: the gate has to see that.
kept = huggingface.plain
huggingface.plain = lambda model: model
result["unmerged"] = exported("unmerged", l.adapted(l.gemma()))
huggingface.plain = kept

result["gpt2"] = exported("gpt2", l.gpt2())
result["qwen"] = exported("qwen", l.qwen())
result["halves"] = exported("halves", l.gemma(dtype="bfloat16"))
for mode in ("int8", "int4"):
    result[f"llama_{mode}"] = exported(
        f"llama_{mode}", l.adapted(l.quantized(l.llama(tie_word_embeddings=False), mode)))
result["copied"] = [plain.plain(made["gpt2"]) is made["gpt2"],
                    plain.float_policy(made["llama_int8"]), plain.float_policy(made["halves"])]

result["refused"] = [exported(*one) for one in (
    ("backbone", l.gpt2().backbone), ("wordless", l.without_tokenizer()),
    ("gemma2", l.gemma(use_post_ffw_norm=True, use_post_attention_norm=True)),
    ("opt", keras_hub.models.OPTCausalLM(backbone=keras_hub.models.OPTBackbone(
        vocabulary_size=9, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4))),
    ("float8", l.quantized(l.gpt2(), "float8")))]
result["nothing_written"] = [(folder / name).exists()
                             for name in ("backbone", "wordless", "gemma2", "opt", "float8")]
made["gpt2"].save(folder / "tuned.keras")
request = SourceModel(reference="t", kind="keras_file", path=str(folder / "tuned.keras"))
loaded = export_source.load(request, None)
huggingface.check(loaded)
result["saved"] = loaded.model.preprocessor.tokenizer.vocabulary_size()
"""


@functools.cache
def facts() -> dict[str, Any]:
    """What was seen, by name."""
    code = f"MODELS = {str(MODELS)!r}\n{CODE}"
    found: dict[str, Any] = once("language_exports", lambda: in_tensorflow(code))
    return found
