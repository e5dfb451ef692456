"""Generating text or images as terminal text: the answer for each card, then the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.units import format_bytes, significant
from tfdyno.view.base.documents import fields_of, trace_document
from tfdyno.view.base.text import WIDTH, table, wrapped
from tfdyno.view.choose.estimate_text import FITS
from tfdyno.words.base.amounts import batch_cell, gib, of_gib, short_time, table_ms_range
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import brief, fit_state
from tfdyno.words.memory.basis import UNVERIFIED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.generating import ImageGeneration, TextGeneration
    from tfdyno.core.choose.workload import Trace

_STEP = ("step_s", "device_memory_bytes", "bound_by", "max_batch_size", "fits")


def text_generation_text(
    found: Sequence[TextGeneration],
    prefill: Trace,
    names: Mapping[str, str],
    *,
    notes: Sequence[str] = (),
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return a sentence for the first card and a row for each."""
    first = found[0]
    head = say(
        "{title} on {card} makes {tokens:,} tokens from a prompt of {prompt:,}, {batch:,} at a "
        "time, in {whole} ({low} to {high}): {rate} tokens per second. {fits}: {memory}, "
        "{standing}.",
        tokens=first.new_tokens,
        prompt=first.prompt_tokens,
        batch=first.batch_size,
        rate=significant(first.new_tokens_per_s.best, 2),
        **_about(first, prefill, names),
    )
    headers = (
        "GPU",
        say("prefill ms"),
        say("token ms"),
        say("tokens/s"),
        "GiB",
        say("fits"),
        say("max batch"),
        say("a token is bound by"),
    )
    rows = [
        (
            brief(names[one.gpu]),
            table_ms_range(one.prefill.step_s),
            table_ms_range(one.token.step_s),
            significant(one.new_tokens_per_s.best, 2),
            gib(one.device_memory_bytes.best),
            named(one.fits),
            batch_cell(one.max_batch_size),
            named(one.token.bound_by),
        )
        for one in found
    ]
    body = table(headers, rows, align="<>>>><><", width=width, elastic=0, spare=(7,), colour=colour)
    told = (
        say("Keys and values of the batch take {size}.", size=format_bytes(first.cache_bytes, 3)),
        say(
            "KerasHub pads the prompt: the prefill works on all {tokens:,} tokens. A token is told "
            "with the cache full; what samples it is not in it.",
            tokens=first.prompt_tokens + first.new_tokens,
        ),
        say("No making of text was measured on a card: the ranges are those of other steps."),
        *dict.fromkeys((*first.token.warnings, *notes)),
    )
    return _answer(head, body, told, width)


def image_generation_text(
    found: Sequence[ImageGeneration],
    step: Trace,
    names: Mapping[str, str],
    *,
    notes: Sequence[str] = (),
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return a sentence for the first card and a row for each."""
    first = found[0]
    how_many = (
        say("an image") if first.batch_size == 1
        else say("{batch:,} images at a time", batch=first.batch_size)
    )  # fmt: skip
    head = say(
        "{title} on {card} makes {images} in {steps:,} steps of diffusion, in {whole} ({low} to "
        "{high}): {rate} images per minute. {fits}: {memory}, {standing}.",
        images=how_many,
        steps=first.steps,
        rate=significant(60 * first.images_per_s.best, 2),
        **_about(first, step, names),
    )
    headers = (
        "GPU",
        say("prompts ms"),
        say("step ms"),
        say("pixels ms"),
        say("images/min"),
        "GiB",
        say("fits"),
        say("max batch"),
        say("a step is bound by"),
    )
    rows = [
        (
            brief(names[one.gpu]),
            table_ms_range(one.text.step_s),
            table_ms_range(one.denoise.step_s),
            table_ms_range(one.image.step_s),
            significant(60 * one.images_per_s.best, 2),
            gib(one.device_memory_bytes.best),
            named(one.fits),
            batch_cell(one.max_batch_size),
            named(one.denoise.bound_by),
        )
        for one in found
    ]
    body = table(
        headers, rows, align="<>>>>><><", width=width, elastic=0, spare=(8,), colour=colour
    )
    guided = say(
        "Each step works on two prompts, what the image shall show and what not; --no-guidance "
        "leaves the second out."
    )
    told = (
        *((guided,) if first.guidance else ()),
        say("The encoders of text and the maker of pixels stay on the card all the time."),
        say("No making of images was measured on a card: the ranges are those of other steps."),
        *dict.fromkeys((*first.denoise.warnings, *notes)),
    )
    return _answer(head, body, told, width)


def _about(
    first: TextGeneration | ImageGeneration, trace: Trace, names: Mapping[str, str]
) -> dict[str, str]:
    """Return what the sentence says of either: model, card, the whole time, whether it fits."""
    return {
        "title": trace.title.partition(",")[0],
        "card": brief(names[first.gpu]),
        "whole": short_time(first.whole_s.best),
        "low": short_time(first.whole_s.low),
        "high": short_time(first.whole_s.high),
        "fits": say(FITS[fit_state(first.fuller)]),
        "memory": of_gib(first.device_memory_bytes.best, first.fuller.usable_memory_bytes),
        "standing": say(UNVERIFIED),
    }


def _answer(head: str, body: str, told: Sequence[str], width: int) -> str:
    lines = "\n".join(wrapped(one, width=width, first="- ", rest="  ") for one in told)
    return f"{wrapped(head, width=width)}\n\n{body}\n\n{lines}"


def text_generation_document(
    found: Sequence[TextGeneration], prefill: Trace, token: Trace, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Write ``{"generation": […], "prefill_trace": …, "token_trace": …, "notes": […]}``."""
    return {
        "generation": [
            {
                **_common(one),
                **fields_of(one, "prompt_tokens", "new_tokens", "cache_bytes"),
                "new_tokens_per_s": to_builtins(one.new_tokens_per_s),
                "prefill": fields_of(one.prefill, *_STEP),
                "token": fields_of(one.token, *_STEP),
            }
            for one in found
        ],
        "prefill_trace": trace_document(prefill),
        "token_trace": trace_document(token),
        "notes": list(notes),
    }


def image_generation_document(
    found: Sequence[ImageGeneration], step: Trace, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Write ``{"generation": […], "denoise_trace": …, "notes": […]}``."""
    return {
        "generation": [
            {
                **_common(one),
                **fields_of(one, "steps", "guidance"),
                "images_per_s": to_builtins(one.images_per_s),
                "text": fields_of(one.text, *_STEP),
                "denoise": fields_of(one.denoise, *_STEP),
                "image": fields_of(one.image, *_STEP),
            }
            for one in found
        ],
        "denoise_trace": trace_document(step),
        "notes": list(notes),
    }


def _common(one: TextGeneration | ImageGeneration) -> dict[str, Any]:
    return {
        **fields_of(one, "gpu", "batch_size", "fits", "max_batch_size"),
        "whole_s": to_builtins(one.whole_s),
        "device_memory_bytes": to_builtins(one.device_memory_bytes),
        "usable_memory_bytes": one.fuller.usable_memory_bytes,
    }
