"""The steps of generating text or an image with a preset of KerasHub, each as a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.keras_internals import output_spec
from tfdyno.runtime.workload.dataspec import DataSpec, Leaf

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Model, Value
    from tfdyno.core.choose.workload import Workload

GUIDANCE = 7.0
"""How far a step of diffusion is guided where nobody names it, as KerasHub does."""
_PLACES = {"clip_l": 77, "clip_g": 77, "t5": 256}
"""Tokens to which each encoder's preprocessing cuts and pads a prompt."""
_EMBEDDED = ("context", "negative_context", "pooled", "negative_pooled")
"""What encoders make of a prompt and of what the image shall not show."""


def generation_step(model: Model, workload: Workload, step: str) -> tuple[Model, DataSpec]:
    """Return a step of ``generate`` as a model of its own, and its batch.

    Args:
        model: A task that writes, or a backbone that makes images.
        workload: A preset.
        step: As ``GenerationStep`` names it.

    Raises:
        UsageError: The model does not generate as others of KerasHub do.
    """
    made = _text_step if step in ("prefill", "token") else _image_step
    return made(model, workload, step)


def _text_step(model: Model, workload: Workload, step: str) -> tuple[Model, DataSpec]:
    """Return the filling of the cache, or the making of one token.

    KerasHub pads the prompt to the whole length, and fills the cache for all of it.
    """
    import keras

    hub = workload.hub
    assert hub
    prompt = keras.KerasTensor((1, hub.cache_tokens), "int32")
    try:
        _, cache = output_spec(model._build_cache, prompt)
        shape, dtype = cache.shape[1:], str(cache.dtype)
    except (AttributeError, TypeError, ValueError):
        raise UsageError(
            f"how {workload.reference} generates text is not known",
            why="it has no cache of keys and values as other models of KerasHub have",
            remedy="leave --prompt out: the forward pass of a whole sample is told then",
        ) from None
    last = hub.cache_tokens - 1

    def token(given: Value) -> Value:
        logits, _, kept = model.call_with_cache(given["token_ids"], given["cache"], last)
        return logits, kept

    tokens = hub.cache_tokens if step == "prefill" else 1
    x = {"token_ids": Leaf(shape=(tokens,), dtype="int32", name="token_ids")}
    if step == "prefill":
        return _model_of(model, lambda given: model._build_cache(given["token_ids"])), DataSpec(x=x)
    x["cache"] = Leaf(shape=shape, dtype=dtype, name="cache")
    return _model_of(model, token), DataSpec(x=x)


def _image_step(backbone: Model, workload: Workload, step: str) -> tuple[Model, DataSpec]:
    """Return the encoding of prompts, one step of diffusion, or the making of pixels.

    ``generate`` of KerasHub calls the same three methods of the backbone.
    """
    import keras

    hub = workload.hub
    assert hub
    parts = ("encode_text_step", "denoise_step", "decode_step", "latent_shape")
    if not all(hasattr(backbone, part) for part in parts):
        raise UsageError(
            f"how {workload.reference} makes images is not known",
            why="it has not the steps that Stable Diffusion 3 has in KerasHub",
            remedy="give a script that makes them",
        )
    names = [name for name in _PLACES if getattr(backbone, name, None) is not None]
    latents = Leaf(shape=backbone.latent_shape[1:], dtype="float32", name="latents")

    def encode(given: Value) -> Value:
        texts = ({name: given[mark + name] for name in names} for mark in ("", "negative_"))
        return backbone.encode_text_step(*texts)

    def denoise(given: Value) -> Value:
        embedded = tuple(given[name] for name in _EMBEDDED)
        scale = GUIDANCE if hub.guidance else None
        return backbone.denoise_step(given["latents"], embedded, 0, 1, scale)

    if step == "image":
        return (
            _model_of(backbone, lambda given: backbone.decode_step(given["latents"])),
            DataSpec(x={"latents": latents}),
        )
    prompts = {mark + name: _PLACES[name] for mark in ("", "negative_") for name in names}
    if step == "text":
        tokens = {
            key: Leaf(shape=(size,), dtype="int32", name=key) for key, size in prompts.items()
        }
        return _model_of(backbone, encode), DataSpec(x=tokens)
    asked = {key: keras.KerasTensor((1, size), "int32") for key, size in prompts.items()}
    found = zip(_EMBEDDED, output_spec(encode, asked), strict=True)
    embedded = {
        name: Leaf(shape=tuple(one.shape[1:]), dtype=str(one.dtype), name=name)
        for name, one in found
    }
    backbone.configure_scheduler(1)
    return _model_of(backbone, denoise), DataSpec(x={"latents": latents, **embedded})


def _model_of(model: Model, call: Callable[[Value], Value]) -> Model:
    """Return a model that holds all that another holds, and makes one call of it."""
    import keras

    class Step(keras.Model):
        """One call of what ``generate`` repeats."""

        def __init__(self) -> None:
            super().__init__(dtype=model.dtype_policy)
            self.whole_model = model
            self.built = True

        def call(self, given: Value) -> Value:
            return call(given)

    return Step()


def prompt_places(config: dict[str, Any]) -> int:
    """Return the places of a prompt in a diffusion transformer: CLIP's, then T5's or as many more.

    Where there is no T5, KerasHub pads by the places of CLIP.
    """
    return _PLACES["clip_l"] + _PLACES["t5" if config.get("t5") else "clip_l"]
