"""Proof that the recommended card holds the step: one compile at the very batch of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.families import family_of
from tfdyno.core.base.errors import ToolError
from tfdyno.jobs.choose.compile import cached_real, compile_exact
from tfdyno.jobs.choose.predict import family_name
from tfdyno.words.base.language import say
from tfdyno.words.choose.advice import card

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tfdyno.core.choose.advice import Candidate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.jobs.choose.predict import Predictor

AMPLE_RATIO = 2.0
"""Usable memory over the estimated need from which no compile is needed to say that it fits."""


def needs_proof(predictor: Predictor, candidate: Candidate, gpu: Gpu) -> bool:
    """Return whether the estimate without any compile leaves open how the card holds the step.

    It does not where it sees room for twice the step: none of the 48 steps that were compiled
    beside their estimate (docs/accuracy.md, *Both routes by step*) held more than 1 / 0.70 of it,
    and XLA computes values again from about three quarters of the card.
    """
    uncompiled = replace(predictor, exact={}, proven={})
    found = uncompiled.estimate(
        gpu, replicas=candidate.count, batch_size=candidate.estimate.batch_size
    )
    roomy = AMPLE_RATIO * found.device_memory_bytes.best <= found.usable_memory_bytes
    return not (found.fits == "yes" and roomy)


def is_proof_kept(predictor: Predictor, candidate: Candidate, gpu: Gpu) -> bool:
    """Return whether ``prove`` finds its program in the cache, or compiles nothing at all."""
    family, estimate = family_of(gpu), candidate.estimate
    if estimate.execution != "xla" or not family.supported:
        return True
    kept = cached_real(
        predictor.traced, family=family.slug, batch_size=estimate.batch_size, gpu=gpu
    )
    return kept is not None


def prove(
    predictor: Predictor,
    candidate: Candidate,
    gpu: Gpu,
    *,
    failed: Collection[str] = (),
    progress: Callable[[str], None],
) -> tuple[Predictor, str]:
    """Compile the step of a candidate at its own batch; the cache keeps the program.

    Args:
        predictor: Of the step.
        candidate: Whose batch and execution it is.
        gpu: Its card, or the share of it.
        failed: Families for which a compile has failed already.
        progress: Called with a line at every stage.

    Returns:
        The predictor that knows what the step holds on this card, and on those of its family with
        more memory if XLA keeps everything here, and nothing; or the predictor as it was, and a
        sentence that says why there is no proof.
    """
    family, batch_size = family_of(gpu), candidate.estimate.batch_size
    if candidate.estimate.execution != "xla":
        return predictor, unproven(candidate, say("the step runs without XLA there"))
    if not family.supported or family.slug in failed:
        return predictor, unproven(candidate, say("nothing could be compiled for it"))
    progress(
        say(
            "verifying that {card} holds batch {batch:,}",
            card=card(candidate),
            batch=batch_size,
        )
    )
    try:
        return proved(predictor, gpu, batch_size, progress), ""
    except ToolError as error:
        return predictor, unproven(candidate, str(error).rstrip("."))


def proved(
    predictor: Predictor, gpu: Gpu, batch_size: int, progress: Callable[[str], None]
) -> Predictor:
    """Return the predictor that knows what a step of this very batch holds on this card.

    Raises:
        ToolError: It cannot be compiled.
    """
    family = family_name(gpu)
    program = compile_exact(
        predictor.traced,
        family=family,
        batch_size=batch_size,
        real=True,
        gpu=gpu,
        progress=progress,
    )
    proof = (family, batch_size, gpu.usable_memory_bytes)
    return replace(predictor, proven={**predictor.proven, proof: program})


def unproven(candidate: Candidate, reason: str) -> str:
    """Say why no compile at the batch itself stands behind a candidate."""
    return say(
        "Memory of {card} was not verified by a compile at batch {batch:,} itself: {reason}.",
        card=card(candidate),
        batch=candidate.estimate.batch_size,
        reason=reason,
    )
