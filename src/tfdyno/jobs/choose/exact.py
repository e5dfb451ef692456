"""The compiled programs of a prediction: those in the cache, and those still to be made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.families import family_of
from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import ToolError
from tfdyno.core.base.settings import MOST_SAMPLES
from tfdyno.jobs.choose.compile import TooLargeError, cached_exact, compile_exact
from tfdyno.jobs.choose.predict import family_name
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Program
    from tfdyno.jobs.choose.predict import Predictor

SMALLER = 0.8
"""The next batch that is tried where a tensor has more elements than XLA counts."""


def families_of(gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """Return the families that can be compiled for, in the order of the cards, each once."""
    found = dict.fromkeys(map(family_of, gpus))
    return tuple(family.slug for family in found if family.supported)


def left_out(gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """Return a sentence for every family of the cards that cannot be compiled for."""
    return tuple(
        _kept(family.slug, family.reason)
        for family in dict.fromkeys(map(family_of, gpus))
        if not family.supported
    )


def _kept(families: str, reason: str) -> str:
    return say(
        "compute capability {families} keeps the quick answer: {reason}.",
        families=families,
        reason=reason.rstrip("."),
    )


def add_cached(predictor: Predictor, gpus: Iterable[Gpu]) -> Predictor:
    """Add the programs that are in the cache already; compiles nothing."""
    found: dict[str, Program] = {}
    for family in families_of(gpus):
        program = cached_exact(predictor.traced, family=family)
        if program:
            found[family] = program
    return replace(predictor, exact={**predictor.exact, **found})


def add_compiled(
    predictor: Predictor,
    gpus: Sequence[Gpu],
    *,
    progress: Callable[[str], None],
) -> tuple[Predictor, tuple[str, ...]]:
    """Compile once per family of the cards, most wanted first.

    Args:
        predictor: What it has compiled already is kept.
        gpus: The cards to serve, most wanted first.
        progress: Called with a line at every stage.

    Returns:
        The predictor with the compiled programs, and a sentence for every family that has none:
        its cards keep the quick answer.
    """
    reasons: dict[str, str] = {}
    for family in families_of(gpus):
        if family not in predictor.exact:
            predictor, reason = add_family(predictor, family, progress=progress)
            reasons |= {family: reason} if reason else {}
    return predictor, (*left_out(gpus), *kept_quick(reasons))


def add_family(
    predictor: Predictor, family: str, *, progress: Callable[[str], None]
) -> tuple[Predictor, str]:
    """Compile for one family; with the reason where that fails, else an empty one."""
    try:
        program = compile_exact(
            predictor.traced, family=family, batch_size=predictor.batch_size, progress=progress
        )
    except ToolError as error:
        return predictor, str(error)
    return replace(predictor, exact={**predictor.exact, family: program}), ""


def kept_quick(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for every reason why families keep the quick answer."""
    families: dict[str, list[str]] = {}
    for family, reason in reasons.items():
        families.setdefault(reason, []).append(family)
    return tuple(_kept(", ".join(names), reason) for reason, names in families.items())


def verified_limit(
    predictor: Predictor, estimate: Estimate, progress: Callable[[str], None]
) -> Estimate:
    """Check the largest batch by a compile at that very batch, lowering it until one fits.

    It is compiled for the memory of the card itself: where XLA has to compute values again to keep
    to that, the estimate says so.

    Returns:
        The estimate with ``max_batch_verified``; unchanged where nothing can be compiled or the
        step runs without XLA, and where the largest batch is not known or at the end of what is
        estimated.
    """
    gpu, limit = find(estimate.gpu), estimate.max_batch_size
    if limit in (None, MOST_SAMPLES) or estimate.execution != "xla":
        return estimate
    family = family_name(gpu)
    while limit and family in predictor.exact:
        try:
            program = compile_exact(
                predictor.traced, family=family, batch_size=limit, real=True, gpu=gpu,
                progress=progress,
            )  # fmt: skip
        except TooLargeError:
            limit = int(limit * SMALLER)
            continue
        at_limit = replace(predictor, exact={family: program}).estimate(
            gpu, replicas=estimate.replicas, batch_size=limit
        )
        if at_limit.device_memory_bytes.best <= at_limit.usable_memory_bytes:
            return replace(
                estimate,
                max_batch_size=limit,
                max_batch_verified=True,
                max_batch_rematerialisation=at_limit.rematerialisation,
            )
        limit = min(limit - 1, int(limit * 0.97))
    return replace(estimate, max_batch_size=limit) if family in predictor.exact else estimate
