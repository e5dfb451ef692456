"""From a log of exhausted memory to a batch that fits: the workload's own estimate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find, parse_list
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.estimate import EstimateRequest, estimate
from tfdyno.jobs.choose.reference import parse_reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.jobs.doctor.doctor import Examined


def with_fitting_batch(
    examined: Examined, workload: str, gpu: str, progress: Callable[[str], None]
) -> Examined:
    """Add what the estimate says of the workload on the card of the log.

    Args:
        examined: The explained log.
        workload: Script, function, file or ``keras:Name``.
        gpu: The card; empty takes the one that the log names.
        progress: Called with a line at every stage.

    Raises:
        UsageError: The log shows no exhausted memory, or no card is known, or the workload cannot
            be traced.
    """
    if not any(one.cause == "mem.oom_model" for one in examined.diagnosis.findings):
        raise UsageError("--workload has no use here", why="the log shows no exhausted GPU memory")
    cards = parse_list(gpu) if gpu else named_cards(examined)
    answer = estimate(
        EstimateRequest(workload=parse_reference(workload), gpus=cards), progress=progress
    )
    said = tuple(
        fitting_sentence(workload, card, one)
        for card, one in zip(cards, answer.estimates, strict=True)
    )
    diagnosis = examined.diagnosis
    return replace(examined, diagnosis=replace(diagnosis, memory=(*said, *diagnosis.memory)))


def fitting_sentence(workload: str, card: Gpu, found: Estimate) -> str:
    """Return what the estimate says of the largest batch, as a sentence."""
    most = found.max_batch_size
    if most is None:
        said = "the batch is part of the model, so that no smaller one can be named"
    elif most == 0:
        said = "not even a batch of 1 per replica fits"
    else:
        said = f"a batch of up to {most:,} per replica fits"
    how = "compiled" if found.max_batch_verified else "computed"
    return f"{workload} on {card.name}: {said}, by tfdyno estimate ({how})."


def named_cards(examined: Examined) -> tuple[Gpu, ...]:
    """Return the card that a log names; raises ``UsageError`` where it names none."""
    slugs = [card.slug for card in examined.facts.gpus or () if card.slug]
    if not slugs:
        raise UsageError("the log does not name the GPU", remedy="say it with --gpu")
    return (find(slugs[0]),)
