"""Language models with the sizes that their makers published, and a plan of one."""

from __future__ import annotations

from tfdyno.core.base.interval import Interval
from tfdyno.core.base.units import GIB
from tfdyno.core.deploy.language_model import LanguageModel, TextServerPlan

LLAMA_8B = LanguageModel(
    name="llama",
    architecture="LlamaForCausalLM",
    layers=32,
    heads=32,
    kv_heads=8,
    head_size=128,
    hidden=4096,
    intermediate=14336,
    vocabulary=128_256,
    parameter_count=8_030_261_248,
    is_tied=False,
    longest=8192,
    has_windows=False,
    source="here",
)
PLAN = TextServerPlan(
    name="chat",
    model=LLAMA_8B,
    gpu="L4",
    gpus=2,
    memory_bytes=24 * GIB,
    precision="bfloat16",
    utilization_ratio=0.9,
    max_model_tokens=2500,
    max_requests=30,
    max_batched_tokens=2048,
    token_bytes=65_536.0,
    weights_bytes=8_030_261_248.0,
    working_bytes=Interval(low=1.0 * GIB, best=2.0 * GIB, high=3.0 * GIB),
    cache_bytes=Interval(low=10.0 * GIB, best=11.0 * GIB, high=12.0 * GIB),
    port=8000,
    host="127.0.0.1",
    image="vllm/vllm-openai:v0.33.0",
)
