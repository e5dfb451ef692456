"""Faults of XLA that a workload will meet, told before it is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.jobs.choose._programs import FUSED, fuses_attention
from tfdyno.rules.compiler import CompilePlace, faults_at, patterns_of, warning_of
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfdyno.core.choose.advice import Advice
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.jobs.choose.predict import Predictor


MOST_NAMES = 3
"""The most cards that a sentence names."""


def foretold(predictor: Predictor, gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """Say every known fault of the predictor's release, model and one of the cards.

    Args:
        predictor: Of the workload.
        gpus: Cards on which XLA would compile it.
    """
    software = predictor.traced.software
    patterns = patterns_of(predictor.traced.program)
    places = [
        CompilePlace(
            framework=software.framework,
            version=software.version,
            compute_capability=gpu.compute_capability,
        )
        for gpu in gpus
        if gpu.vendor.upper() == "NVIDIA"
    ]
    found = [warning_of(one, place) for place in places for one in faults_at(place, patterns)]
    return tuple(dict.fromkeys(found))


def without_xla(predictor: Predictor, gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """Return a sentence on cards for which XLA of the official wheel compiles nothing.

    They are answered for in graph execution, or in XLA where that was asked for.

    Args:
        predictor: Of the workload.
        gpus: Cards of the answer.
    """
    failing = {gpu.slug: gpu for gpu in gpus if predictor.xla_fails(gpu)}
    if predictor.execution == "xla":
        return foretold(predictor, failing.values())
    left = {slug: gpu for slug, gpu in failing.items() if predictor.leaves_xla(gpu)}
    if not left:
        return ()
    names = [gpu.name for gpu in left.values()]
    shown = say(", ").join((*names[:MOST_NAMES], *(["…"] if len(names) > MOST_NAMES else [])))
    who = (
        say("{card} is", card=shown)
        if len(names) == 1
        else say("{count} cards ({shown}) are", count=len(names), shown=shown)
    )
    capabilities = sorted({gpu.compute_capability for gpu in left.values()}, key=float)
    return (
        say(
            "{who} answered for in graph execution (jit_compile=False): XLA, the "
            "default of fit in Keras 3, fails on compute capability {capabilities} "
            "with the official wheel of {software}. XLA runs in NVIDIA's container or "
            "with CUDA 12.8 (--execution xla), and with Keras on JAX (--backend jax).",
            who=who,
            capabilities=say(", ").join(capabilities),
            software=predictor.traced.software.name,
        ),
    )


def _compiled_on(advice: Advice, gpus: Mapping[str, Gpu]) -> tuple[Gpu, ...]:
    """Return the cards of the picks on which XLA would compile the step, each once."""
    picked = (one.candidate for one in advice.picks)
    slugs = dict.fromkeys(one.gpu for one in picked if one.estimate.execution == "xla")
    return tuple(gpus[slug] for slug in slugs)


def notes_on_picks(
    predictor: Predictor, advice: Advice, gpus: Mapping[str, Gpu]
) -> tuple[str, ...]:
    """Say what faults the picks will meet, on which cards XLA compiles nothing, and what it is not.

    The last is attention where cuDNN computes it.
    """
    alone = [gpus[one.gpu] for one in advice.ranking if one.count == 1]
    compiled = _compiled_on(advice, gpus)
    fused = any(fuses_attention(predictor.traced, gpu) for gpu in compiled)
    told = (*foretold(predictor, compiled), *without_xla(predictor, alone))
    return tuple(dict.fromkeys((*told, *((say(FUSED),) if fused else ()))))
