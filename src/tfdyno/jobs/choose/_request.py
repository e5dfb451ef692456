"""What ``advise`` is asked, and how long the run is: as asked, as the script has it, or assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tfdyno.catalog.assumptions import assumed
from tfdyno.core.base.settings import Route
from tfdyno.core.choose.advice import Run
from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.core.measure.feed import Feed
from tfdyno.jobs.choose.market import Conditions
from tfdyno.jobs.choose.predict import StepSettings
from tfdyno.jobs.choose.trace import Traced


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(StepSettings):
    """A workload, how long it runs, and what the user rules out."""

    workload: Workload | Traced
    conditions: Conditions = field(default_factory=Conditions)
    batch_size: int = 0
    global_batch_size: int = 0
    steps: int = 0
    epochs: int = 0
    samples: int = 0
    """The samples of an epoch."""
    deadline_h: float = 0.0
    budget_usd: float = 0.0
    tensorflow: str = ""
    """Release whose wheel must run on the card; empty: the user's own, else the newest."""
    route: Route = "auto"
    fresh: bool = False
    card_files: bool = True
    """Whether the user's sweeps of cards count."""
    feed: Feed | None = None
    """The input pipeline as ``data bench`` measured it; None: data arrive in time."""
    all_fits: bool = False
    """Whether every call of ``fit`` in the script is added up, not one answered for."""
    details: bool = True
    """Whether picks are told kernel by kernel: a page shows that, the document leaves it out."""


def run_of(request: Request, trace: Trace, batch_size: int) -> Run:
    """Return how long the run is: as asked, else as the script's ``fit`` has it, else assumed."""
    per_epoch = request.samples or trace.samples_per_epoch
    epochs, source = request.epochs or trace.epochs or 1, "from the script"
    if request.steps:
        per_epoch, epochs, source = request.steps * batch_size, 0, "as asked"
    elif request.samples or (request.epochs and per_epoch):
        source = "as asked"
    elif not per_epoch:
        per_epoch, source = assumed().default_samples, "assumed"
    samples = per_epoch * max(1, epochs)
    validated, passes = _validation(request, trace, max(1, epochs))
    steps = -(-samples // batch_size)
    written = _checkpoint_bytes(trace, epochs=max(1, epochs), steps=steps)
    return Run(
        steps=steps,
        samples=samples,
        samples_per_epoch=per_epoch,
        epochs=epochs,
        deadline_h=request.deadline_h,
        budget_usd=request.budget_usd,
        scenario=request.conditions.scenario,
        holds="global batch" if request.global_batch_size else "batch per replica",
        length_source=source,
        validation_samples=validated,
        validation_passes=passes,
        checkpoint_bytes=written[1],
        fewest_checkpoint_bytes=written[0],
        length="steps" if request.steps else "samples",
    )


def _validation(request: Request, trace: Trace, epochs: int) -> tuple[int, int]:
    """Return samples of a pass over the validation data, and how often the run makes one.

    Where other data than the script's are asked for, they are taken to be split alike.
    """
    found = trace.validation
    if request.steps or trace.workload.mode == "infer" or not (found and found.samples):
        return 0, 0
    ratio = 1.0
    if request.samples and trace.samples_per_epoch:
        ratio = request.samples / trace.samples_per_epoch
    passes = found.passes(epochs)
    return (math.ceil(found.samples * ratio), passes) if passes else (0, 0)


def _checkpoint_bytes(trace: Trace, *, epochs: int, steps: int) -> tuple[int, int]:
    """Return bytes of all checkpoints that the callbacks of ``fit`` write: the fewest, the most.

    One holds the weights and the state of the optimizer; of the best alone there is one or more.
    """
    kept = ("weight", "state", "optimizer")
    one_bytes = sum(tensor.bytes for tensor in trace.tensors if tensor.role in kept)
    most = [one.times(epochs=epochs, steps=steps) for one in trace.savings]
    fewest = [
        min(times, 1) if one.only_best else times
        for one, times in zip(trace.savings, most, strict=True)
    ]
    return one_bytes * sum(fewest), one_bytes * sum(most)
