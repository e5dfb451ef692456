"""Write what vLLM needs to serve a language model on the cards that hold it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog import gpus
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import HUB_PREFIX
from tfdyno.core.deploy.language_model import LanguageModel, ServedPrecision, TextServerPlan
from tfdyno.core.deploy.model_version import checked_name
from tfdyno.core.deploy.serving_plan import replicas
from tfdyno.jobs.serve.language_model import language_model
from tfdyno.jobs.serve.render import Rendered, check_output, written
from tfdyno.model.serving import text_server
from tfdyno.render.serving.images import vllm_image
from tfdyno.render.serving.vllm import PORT, figures, render_vllm

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.hardware import Gpu

MODEL = "model"
_LEAST_CAPABILITY = {"bfloat16": (8, 0), "float8": (8, 9)}
"""That a card needs to compute in a type."""
_PYTORCH = (7, 5)
"""CUDA 13, of vLLM 0.33's PyTorch, has no kernels for cards below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmRequest:
    """What is served, on which cards, and for requests of which length."""

    reference: str
    """A folder as Hugging Face has it, or ``keras_hub:PRESET``."""
    output: Path
    card: str
    gpus: int | None = None
    """None: as few as hold it."""
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    precision: ServedPrecision | None = None
    """None: bfloat16 where the card has it, else float16."""
    most_requests: int | None = None
    """None: ``text_server.MOST_REQUESTS``."""
    name: str = ""
    port: int = PORT
    host: str = "127.0.0.1"
    image: str = ""
    storage: str = ""
    """``pvc://NAME/folder`` for a cluster; empty: none is meant."""
    namespace: str = ""
    replicas: str = ""
    """Pods of the cluster; empty: one."""


def render(
    asked: VllmRequest, *, heard: Callable[[str], None] = lambda _text: None
) -> Rendered[TextServerPlan]:
    """Write a folder with the compose file and, where there is one, the model.

    Raises:
        UsageError: No such model or card, or no number of cards holds it; the folder is there.
        ToolError: There is no room.
    """
    check_output(asked.output)
    plan = vllm_plan(asked)
    files = render_vllm(plan)
    source = None if asked.reference.startswith(HUB_PREFIX) else Path(asked.reference)
    if source:
        heard(f"copying {source}")
    written(asked.output, files, source, MODEL)
    notes = []
    if not source:
        place = f"{asked.output}/{MODEL}"
        notes.append(f"put the folder that tfdyno export --to huggingface writes at {place}")
    if plan.storage:
        notes.append(
            f"for a cluster: kubectl apply --filename {asked.output}/kubernetes.yaml, which says "
            f"how its token is made; {plan.storage} has to hold the model"
        )
    return Rendered(
        output=str(asked.output),
        files=tuple(sorted(files)),
        model=MODEL if source else "",
        image=plan.image,
        start="docker compose up",
        plan=plan,
        notes=(*notes, *(line.rstrip(".:") for line in figures(plan))),
    )


def vllm_plan(asked: VllmRequest) -> TextServerPlan:
    """Return the sizes; raises ``UsageError``."""
    model, gpu = language_model(asked.reference), gpus.find(asked.card)
    precision = _precision(asked, gpu, model)
    tokens = _tokens(asked, model)
    most = asked.most_requests or text_server.MOST_REQUESTS
    memory = gpu.usable_memory_bytes
    cards, requests = text_server.choose_cards(
        model, precision, gpu.name, memory, tokens=tokens, most_requests=most, asked=asked.gpus
    )
    return TextServerPlan(
        name=checked_name(asked.name or model.name.removeprefix(HUB_PREFIX).rpartition("/")[2]),
        model=model,
        gpu=gpu.name,
        gpus=cards,
        memory_bytes=memory,
        precision=precision,
        utilization_ratio=text_server.UTILIZATION_RATIO,
        max_model_tokens=tokens,
        max_requests=requests,
        max_batched_tokens=max(text_server.BATCHED_TOKENS, requests),
        token_bytes=text_server.cache_bytes_per_token(model, precision, cards),
        weights_bytes=text_server.weights_bytes(model, precision, cards),
        working_bytes=text_server.working_bytes(model, precision, cards, most),
        cache_bytes=text_server.left_for_cache(model, precision, cards, most, memory),
        port=asked.port,
        host=asked.host,
        image=asked.image or vllm_image(),
        storage=asked.storage,
        namespace=asked.namespace,
        replicas=_replicas(asked),
    )


def _replicas(asked: VllmRequest) -> int:
    """Return how many pods there are; raises ``UsageError``."""
    if not asked.storage:
        for name, given in (("--replicas", asked.replicas), ("--namespace", asked.namespace)):
            if given:
                raise UsageError(
                    f"{name} is for a cluster, and it has to find the model",
                    remedy="name its volume with --storage pvc://NAME/folder, or leave it out",
                )
    fewest, most = replicas(asked.replicas or "1")
    if fewest != most:
        raise UsageError(
            f"--replicas {asked.replicas} is a range, and nothing scales vLLM here",
            why="how many requests one answers in time was not measured",
            remedy=f"give --replicas {fewest}",
        )
    return fewest


def _tokens(asked: VllmRequest, model: LanguageModel) -> int:
    """Return how long a request may become; raises ``UsageError``."""
    if (asked.prompt_tokens is None) != (asked.new_tokens is None):
        raise UsageError("--prompt and --new-tokens go together", remedy="give both")
    if asked.prompt_tokens is None or asked.new_tokens is None:
        if model.longest:
            return model.longest
        raise UsageError(f"nothing tells how many tokens {model.name} takes",
                         remedy="give --prompt and --new-tokens")  # fmt: skip
    tokens = asked.prompt_tokens + asked.new_tokens
    if model.longest and tokens > model.longest:
        raise UsageError(
            f"{model.name} takes no {tokens:,} tokens",
            why=f"prompt and new tokens together are {model.longest:,} at most",
            remedy=f"give --new-tokens {max(1, model.longest - asked.prompt_tokens)} or a shorter "
            "--prompt",
        )
    return tokens


def _precision(asked: VllmRequest, gpu: Gpu, model: LanguageModel) -> ServedPrecision:
    """Return what it computes in; raises ``UsageError`` where the card or vLLM does not."""
    major, _, minor = gpu.compute_capability.partition(".")
    if not (major.isdecimal() and minor.isdecimal()) or (int(major), int(minor)) < _PYTORCH:
        raise UsageError(f"vLLM does not run on {gpu.name}",
                         why=f"its PyTorch is of CUDA 13, and that needs compute capability "
                         f"{_PYTORCH[0]}.{_PYTORCH[1]}",
                         remedy="name another card with --card: tfdyno gpus")  # fmt: skip
    capability = (int(major), int(minor))
    usual: ServedPrecision = (
        "bfloat16" if capability >= _LEAST_CAPABILITY["bfloat16"] else "float16"
    )
    precision = asked.precision or usual
    least = _LEAST_CAPABILITY.get(precision, (0, 0))
    if capability < least:
        raise UsageError(f"{gpu.name} does not compute in {precision}",
                         why=f"it needs compute capability {least[0]}.{least[1]}, and this is "
                         f"{gpu.compute_capability}",
                         remedy="give --precision float16, or another --card")  # fmt: skip
    if precision == "float16" and model.architecture == "Gemma3ForCausalLM":
        raise UsageError("vLLM refuses Gemma 3 in float16", why="its numbers become too large",
                         remedy="give --precision float32, or a card with bfloat16")  # fmt: skip
    return precision
