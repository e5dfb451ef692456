"""What a predicted memory figure rests on, in words, and what may be typed next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.words.base.language import ENGLISH, say, say_later, spoken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.program import Rematerialisation
    from tfdyno.core.choose.workload import Workload

UNVERIFIED = say_later("unverified on a device")
"""No figure was compared with the memory that a GPU really held."""


def standing(estimate: Estimate) -> str:
    """Say how far an estimate's memory is verified: the label, or the card it was measured on."""
    measured = estimate.memory_measured_on
    return say("compared with {card}", card=_bare(measured)) if measured else say(UNVERIFIED)


def standings(estimates: Sequence[Estimate]) -> str:
    """Say the same of several, where cards of one generation may have been measured or not."""
    known = dict.fromkeys(one.memory_measured_on for one in estimates)
    if len(known) == 1:
        return standing(estimates[0])
    cards = say(" and ").join(_bare(one) for one in known if one)
    return say(
        "compared with {cards} for cards of that generation, else {unverified}",
        cards=cards,
        unverified=say(UNVERIFIED),
    )


def _bare(card: str) -> str:
    """Return ``an H200`` as it is; without its article where the language has none."""
    return card if spoken() == ENGLISH else card.removeprefix("an ").removeprefix("a ")


def taken(estimate: Estimate) -> str:
    """Return what nvidia-smi shows beside it, and why; empty where that is not known."""
    if (found := estimate.process_memory_bytes) is None:
        return ""
    low, high = (format_bytes(size, 2) for size in (found.low, found.high))
    return say(
        "nvidia-smi shows {low} to {high}: TensorFlow keeps what growth and autotuning took",
        low=low,
        high=high,
    )


def recomputed(found: Rematerialisation | None) -> str:
    """Write ``needs 20.1 GiB; XLA recomputes to hold it in 13.3 GiB``; empty: all is kept."""
    if found is None:
        return ""
    need, held = (format_bytes(size, 3) for size in (found.need_bytes, found.held_bytes))
    words = say("needs {need}; XLA recomputes to hold it in {held}", need=need, held=held)
    if found.limit_met:
        return words
    return say(
        "{words}, short of the {limit_bytes} that it aims at",
        words=words,
        limit_bytes=format_bytes(found.limit_bytes, 3),
    )


def slower(estimate: Estimate) -> str:
    """Return a sentence on what recomputing means for the time; empty where all is kept."""
    words = recomputed(estimate.rematerialisation)
    if not words:
        return ""
    count = estimate.rematerialisation.instruction_count if estimate.rematerialisation else 0
    kernels = (
        say("{count:,} operations run twice", count=count)
        if count
        else say("some operations run twice")
    )
    return say(
        "The step {words}: {kernels}, which the time shown leaves out.",
        words=words,
        kernels=kernels,
    )


def proof(estimate: Estimate) -> str:
    """Say what stands behind ``fits``, after its figures; empty without a compile at the batch."""
    if not estimate.fits_verified:
        return ""
    words = recomputed(estimate.rematerialisation)
    if words:
        return say(", compiled at this very batch: {words}", words=words)
    return say(", compiled at this very batch")


def train_command(workload: Workload, recipe: str) -> str:
    """Return what trains by a recipe, with a place for the data where the workload brings none.

    A preset is a model without its weights; the script is the reader's own.
    """
    if workload.hub:
        return shlex.join(["tfdyno", "train", "SCRIPT.py", "--recipe", recipe])
    data = ("--data", "FILE.py:FUNCTION") if workload.has_no_data else ()
    return typed("train", workload, *data, "--recipe", recipe)


def typed(verb: str, workload: Workload, *words: str) -> str:
    """Write ``tfdyno train 'my run.py' --recipe fit.toml -- --deep``, ready to be typed."""
    of_script = ["--", *workload.script_arguments] if workload.script_arguments else []
    tuned = fine_tune_options(workload)
    return shlex.join(["tfdyno", verb, workload.reference, *tuned, *words, *of_script])


def fine_tune_options(workload: Workload) -> list[str]:
    """Return how a preset is trained, as options: ``--lora 8``; none: it is no preset."""
    if workload.hub is None:
        return []
    asked = workload.hub.fine_tune
    given = {
        "--task": asked.task,
        "--seq": asked.sequence_length,
        "--lora": asked.lora_rank,
        "--quantize": asked.quantize,
    }
    return [word for name, value in given.items() if value for word in (name, str(value))]
