"""Lower small models with attention as on several cards, and print what was fused."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import jax
import keras

from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.core.messages.trace import FUSED_STEPS
from tfdyno.runtime.base import jax_internals
from tfdyno.runtime.trace import fused_attention
from tfdyno.runtime.trace.quick import programs_of
from tfdyno.runtime.trace.step_jax import Lowered, lower_step
from tfdyno.runtime.workload.batch import Batch
from tfdyno.runtime.workload.dataspec import Leaf

TOKENS, BATCH = 256, 37


def model(width: int = 64, dropout: float = 0.0) -> keras.Model:
    given = keras.Input((TOKENS, 512))
    attention = keras.layers.MultiHeadAttention
    x = attention(8, width, dropout=dropout)(given, given, use_causal_mask=True)
    x = attention(8, width, dropout=dropout)(x, x)
    made = keras.Model(given, keras.layers.Dense(4, dtype="float32")(x))
    made.compile("adam", "mse", jit_compile=True)
    return made


DATA = Batch(
    x=Leaf(shape=(TOKENS, 512), dtype="float32"), y=Leaf(shape=(TOKENS, 4), dtype="float32")
)


def lowered(made: keras.Model) -> Lowered:
    return lower_step(made, DATA, batch_size=BATCH, mode="train", lowering="jax")


def looks(made: keras.Model, *capabilities: float) -> dict[str, list[int | bool]]:
    found = {}
    for capability in capabilities:
        with fused_attention.attention_on(capability) as seen:
            lowered(made)
        found[str(capability)] = [seen.fused, seen.possible > 0]
    return found


def trace_of(step: Lowered) -> Trace:
    return Trace(
        workload=Workload(reference="seen.py", kind="script"),
        title="",
        batch_size=BATCH,
        marker=BATCH,
        script_batch_size=0,
        policy="mixed_bfloat16",
        path="jax",
        path_reason="",
        loss="mse",
        optimizer="adam",
        execution="xla",
        parameter_count=0,
        trainable_parameter_count=0,
        tensors=step.tensors,
        stablehlo_sha256="",
        seconds_s=0.0,
        script_seconds_s=0.0,
        versions={},
    )


single = looks(model(), 9.0)
keras.config.set_dtype_policy("mixed_bfloat16")
dropout = looks(model(dropout=0.1), 9.0)
half, wide = model(), model(160)
told: dict[str, Any] = {
    "single": single,
    "dropout": dropout,
    "half": looks(half, 7.5, 8.0),
    "wide": looks(wide, 8.0, 9.0),
}
for name, made in (("half", half), ("wide", wide)):
    step = lowered(made)
    trace = trace_of(step)
    folder = Path(tempfile.mkdtemp(dir=Path.cwd()))
    fused_attention.lower_fused(partial(lowered, made), folder)
    programs = programs_of(step.module, trace, "jax", folder)
    fused = {name: found for name in FUSED_STEPS if (found := getattr(programs, name))}
    told[name]["programs"] = sorted(fused)
    if name == "half":
        plain = programs.program
        (one,) = fused.values()
        told[name]["kernels"] = [
            [kernel.dims["products"][0], kernel.dims["causal"][0]]
            for kernel in one.kernels
            if kernel.kind == "attention"
        ]
        told[name]["temporary"] = plain.buffers.temporary_bytes.at(BATCH)
        told[name]["fused_temporary"] = one.buffers.temporary_bytes.at(BATCH)
told["devices"] = jax.devices()[0].platform
jax_internals._CUDNN = "jax._src.cudnn.nothing"
told["other"] = looks(half, 9.0)["9.0"]
print(json.dumps(told))
