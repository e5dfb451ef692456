"""The plan of a text server as a compose file for vLLM."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.units import format_bytes
from tfdyno.core.deploy.serving_plan import dns_label
from tfdyno.render.base.yaml_text import yaml_text
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.deploy.language_model import TextServerPlan

PORT = 8000
"""In the container: what vLLM listens on."""
FOLDER = "/model"
TOKEN = "VLLM_API_KEY"
FLAGS = Path(__file__).parents[1] / "tables" / "vllm_flags.csv"
"""Options that are written, and where each is from."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def flags() -> dict[str, str]:
    """Return what each option is, by its name."""
    with FLAGS.open(encoding="utf-8", newline="") as lines:
        return {row["flag"]: row["what"] for row in csv.DictReader(lines, strict=True)}


def render_vllm(plan: TextServerPlan) -> dict[str, str]:
    """Return the compose file by its path; the model lies beside it, as ``model``."""
    token = f"${{{TOKEN}:-}}"
    if plan.host not in LOOPBACK:
        token = f"${{{TOKEN}:?clients have to send a token, since {plan.host} is no loopback}}"
    card = {"driver": "nvidia", "count": plan.gpus, "capabilities": ["gpu"]}
    address = f"[{plan.host}]" if ":" in plan.host else plan.host
    service: dict[str, Any] = {
        "image": plan.image,
        "entrypoint": ["vllm", "serve"],
        "command": [FOLDER, *arguments(plan)],
        "environment": {TOKEN: token, "HF_HUB_OFFLINE": "1"},
        "ports": [f"{address}:{plan.port}:{PORT}"],
        "volumes": [f"./model:{FOLDER}:ro"],
        "ipc": "host",
        "restart": "unless-stopped",
        "deploy": {"resources": {"reservations": {"devices": [card]}}},
    }
    document = {"name": dns_label(plan.name), "services": {"vllm": service}}
    return {"compose.yaml": yaml_text(document, head=_head(plan))}


def arguments(plan: TextServerPlan) -> list[str]:
    """Return the options of ``vllm serve``."""
    is_float8 = plan.precision == "float8"
    options = {
        "--served-model-name": plan.name,
        "--dtype": "bfloat16" if is_float8 else plan.precision,
        "--quantization": "fp8" if is_float8 else None,
        "--tensor-parallel-size": plan.gpus,
        "--gpu-memory-utilization": plan.utilization_ratio,
        "--max-model-len": plan.max_model_tokens,
        "--max-num-seqs": plan.max_requests,
        "--max-num-batched-tokens": plan.max_batched_tokens,
    }
    return [text for name, value in options.items() if value is not None
            for text in (name, str(value))]  # fmt: skip


def figures(plan: TextServerPlan) -> list[str]:
    """Say which figures are computed, from what, and what was not measured."""
    model = plan.model
    cards = f"{plural(plan.gpus, plan.gpu)}" if plan.gpus > 1 else f"one {plan.gpu}"
    windows = " Layers with a window need less of it: not counted." if model.has_windows else ""
    return [
        f"Computed from {model.source}, for {cards} of {format_bytes(plan.memory_bytes)}:",
        f"weights {format_bytes(plan.weights_bytes)} a card ({model.parameter_count:,} parameters, "
        f"{plan.precision}); a token's keys and values "
        f"{format_bytes(plan.token_bytes)} a card ({model.layers} layers, "
        f"{model.kv_heads} heads of {model.head_size}).{windows}",
        f"Left for keys and values: {_span(plan.cache_bytes)} a card, of "
        f"{100 * plan.utilization_ratio:g} % of it. What the work itself holds "
        f"({_span(plan.working_bytes)}) is assumed.",
        f"--max-num-seqs {plan.max_requests}: so many requests of {plan.max_model_tokens:,} tokens "
        "fit in the lowest of these.",
        "Not measured: no vLLM was started, and nothing is said of its speed. It tells at its "
        "start how many tokens it has room for.",
    ]


def _span(one: Interval) -> str:
    return f"{format_bytes(one.low)} to {format_bytes(one.high)}"


def _head(plan: TextServerPlan) -> tuple[str, ...]:
    url = f"http://{plan.host}:{plan.port}/v1/completions"
    is_open = plan.host in LOOPBACK
    asked = "" if is_open else f"; clients send Authorization: Bearer ${TOKEN}"
    return (f"docker compose up; then {url}, model {plan.name}{asked}", *figures(plan))
