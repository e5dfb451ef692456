"""Proof that the recommended card holds the step: one compile at the very batch of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.errors import ToolError
from tfdyno.jobs._predict import family_name
from tfdyno.jobs.compile import compile_exact
from tfdyno.view.advice_words import card

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.advice import Candidate
    from tfdyno.core.hardware import Gpu
    from tfdyno.jobs._predict import Predictor


def prove(
    predictor: Predictor, candidate: Candidate, gpu: Gpu, *, progress: Callable[[str], None]
) -> tuple[Predictor, str]:
    """Compile the step of a candidate at its own batch; the cache keeps the program.

    Returns:
        The predictor that knows what the step holds on this card, and on those of its family with
        more memory if XLA keeps everything here, and nothing; or the predictor as it was, and a
        sentence that says why there is no proof.
    """
    family, batch_size = family_name(gpu), candidate.estimate.batch_size
    if candidate.estimate.execution != "xla":
        return predictor, unproven(candidate, "the step runs without XLA there")
    if family not in predictor.exact:
        return predictor, unproven(candidate, "nothing could be compiled for it")
    progress(f"verifying that {card(candidate)} holds batch {batch_size:,}")
    try:
        return proved(predictor, gpu, batch_size, progress), ""
    except ToolError as error:
        return predictor, unproven(candidate, str(error).rstrip("."))


def proved(
    predictor: Predictor, gpu: Gpu, batch_size: int, progress: Callable[[str], None]
) -> Predictor:
    """The predictor that knows what a step of this very batch holds on this card.

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
    """The sentence that says why no compile at the batch itself stands behind a candidate."""
    return (
        f"Memory of {card(candidate)} was not verified by a compile at batch "
        f"{candidate.estimate.batch_size:,} itself: {reason}."
    )
