"""Estimate generating text or images: KerasHub's own calls, each traced and told as a step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.generating import ImageGeneration, TextGeneration
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.estimate import Answer, estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.workload import GenerationStep, HubModel
    from tfdyno.jobs.choose.estimate import EstimateRequest

IMAGE_MAKERS = ("StableDiffusion3Backbone",)
"""Backbones of KerasHub whose steps of making an image are known."""
CACHE = "input/cache"
"""Name of the argument that holds keys and values."""


def text_generation(
    request: EstimateRequest,
    *,
    prompt_tokens: int,
    new_tokens: int,
    progress: Callable[[str], None] = silent,
) -> tuple[tuple[TextGeneration, ...], Answer, Answer]:
    """Estimate what generating text takes on each card.

    KerasHub pads every prompt to the length of the whole answer, so that the prefill works on
    ``prompt_tokens + new_tokens``, and compiles both calls with XLA.

    Args:
        request: Of a preset for inference, on one card each.
        prompt_tokens: Of each sample.
        new_tokens: That each is made longer by.
        progress: Called with a line at every stage.

    Returns:
        One answer for each card, and the estimates of the prefill and of a token.

    Raises:
        UsageError: The lengths are no lengths, longer than the model's, or the workload generates
            no text.
        ToolError: A child process failed.
    """
    settings.whole(prompt_tokens, "prompt", least=1)
    settings.whole(new_tokens, "new tokens", least=1)
    workload = _workload(request)
    hub = _language_model(workload, prompt_tokens, new_tokens)

    def step(name: GenerationStep) -> Answer:
        made = replace(hub, generation=name, cache_tokens=prompt_tokens + new_tokens)
        return _estimated(request, made, progress)

    prefill, token = step("prefill"), step("token")
    found = tuple(
        TextGeneration(
            gpu=one.gpu,
            batch_size=one.batch_size,
            prompt_tokens=prompt_tokens,
            new_tokens=new_tokens,
            prefill=first,
            token=one,
            cache_bytes=_cache_bytes(token, one.batch_size),
        )
        for first, one in zip(prefill.estimates, token.estimates, strict=True)
    )
    return found, prefill, token


def makes_images(request: EstimateRequest) -> bool:
    """Return whether inference of a workload is making images."""
    one = request.workload
    return (
        isinstance(one, Workload)
        and one.hub is not None
        and one.mode == "infer"
        and one.hub.backbone in IMAGE_MAKERS
        and one.hub.fine_tune.task in ("", "text_to_image")
    )


def image_generation(
    request: EstimateRequest,
    *,
    steps: int,
    guidance: bool,
    progress: Callable[[str], None] = silent,
) -> tuple[tuple[ImageGeneration, ...], Answer]:
    """Estimate what making images takes on each card.

    Args:
        request: Of a workload that makes images, as ``makes_images`` says.
        steps: Steps of diffusion of each image.
        guidance: Whether each is guided by a second prompt.
        progress: Called with a line at every stage.

    Returns:
        One answer for each card, and the estimate of a step of diffusion.

    Raises:
        UsageError: The number of steps is none, the workload makes no images, or is asked about
            on several cards.
        ToolError: A child process failed.
    """
    settings.whole(steps, "diffusion steps", least=1)
    workload = request.workload
    if not makes_images(request) or request.replicas != (1,):
        raise UsageError(
            "--diffusion-steps is for a preset of KerasHub that makes images on one card",
            remedy="give keras_hub:stable_diffusion_3_medium with --mode infer",
        )
    assert isinstance(workload, Workload)
    assert workload.hub
    hub = workload.hub

    def step(name: GenerationStep, *, guidance: bool = True) -> Answer:
        return _estimated(request, replace(hub, generation=name, guidance=guidance), progress)

    text, denoise, image = step("text"), step("denoise", guidance=guidance), step("image")
    found = tuple(
        ImageGeneration(
            gpu=one.gpu,
            batch_size=one.batch_size,
            steps=steps,
            guidance=guidance,
            text=first,
            denoise=one,
            image=last,
        )
        for first, one, last in zip(text.estimates, denoise.estimates, image.estimates, strict=True)
    )
    return found, denoise


def _estimated(request: EstimateRequest, hub: HubModel, progress: Callable[[str], None]) -> Answer:
    """Estimate one call of a preset, compiled by XLA as ``generate`` of KerasHub is."""
    assert isinstance(request.workload, Workload)
    asked = replace(
        request,
        workload=replace(request.workload, hub=hub),
        batch_size=request.batch_size or request.global_batch_size or 1,
        global_batch_size=0,
        execution=request.execution or "xla",
    )
    return estimate(asked, progress=progress)


def _workload(request: EstimateRequest) -> Workload:
    """Return what is asked about; raises ``UsageError`` where it generates no text."""
    one = request.workload
    if makes_images(request):
        assert isinstance(one, Workload)
        raise UsageError(f"{one.reference} makes images, not text", remedy="leave --prompt out")
    if isinstance(one, Workload) and one.hub and one.mode == "infer" and request.replicas == (1,):
        return one
    raise UsageError(
        "--prompt is for a preset of KerasHub that generates text on one card",
        remedy="give keras_hub:NAME with --mode infer",
    )


def _language_model(workload: Workload, prompt_tokens: int, new_tokens: int) -> HubModel:
    """Return the preset; raises ``UsageError`` where it takes no text of this length."""
    hub = workload.hub
    assert hub
    whole = prompt_tokens + new_tokens
    if whole > hub.longest:
        raise UsageError(
            f"{workload.reference} takes no {whole:,} tokens",
            why=f"prompt and new tokens together are {hub.longest:,} at most",
            remedy=f"give --new-tokens {max(1, hub.longest - prompt_tokens)} or a shorter prompt",
        )
    if hub.fine_tune.sequence_length or hub.fine_tune.task not in ("", "causal_lm"):
        name = "--seq" if hub.fine_tune.sequence_length else f"--task {hub.fine_tune.task}"
        raise UsageError(f"{name} does not go with --prompt", remedy="leave one of them out")
    return hub


def _cache_bytes(token: Answer, batch_size: int) -> float:
    held = sum(one.bytes for one in token.trace.tensors if one.name == CACHE)
    return held * batch_size / token.trace.batch_size
