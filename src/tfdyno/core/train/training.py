"""A training run: what is asked of it beside the recipe, and what came out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import HOUR_S, MINUTE_S
from tfdyno.core.doctor.finding import Finding
from tfdyno.core.measure.software import Software
from tfdyno.core.recipe.retreat import Retreat
from tfdyno.core.train.layout import Layout

History = dict[str, list[float]]
"""The history as Keras' ``History.history`` has it: one value per epoch of every metric; NaN as
null in JSON."""
CHECKPOINTS, MODEL = "checkpoints", "model.keras"
"""What lies in the folder of a run."""
NAN_LOSS, NAN_WEIGHTS = "NaN loss", "NaN weights"
"""Why a training ended early that has nothing to go on with but an earlier checkpoint."""
SPOT_NOTICE = "spot notice"
"""Why it ended where the cloud takes its machine away."""
MARKERS = "step-*.json"
"""The files in ``CHECKPOINTS`` that make a checkpoint count."""
_TIME = re.compile(r"([\d.]+)\s*(s|min|h)")
_UNITS_S = {"s": 1.0, "min": MINUTE_S, "h": HOUR_S}


def how_often(asked: object, what: str) -> tuple[int, float]:
    """Return a number of steps, or a time as 30s, 10min, 1h; as (steps, seconds), one of them 0.

    Args:
        asked: As typed, or a number.
        what: Its name in the message.

    Raises:
        UsageError: It is neither, or not above 0.
    """
    text = str(asked).strip()
    if time := _TIME.fullmatch(text):
        return 0, settings.positive(time[1], what) * _UNITS_S[time[2]]
    if not re.fullmatch(r"[-+]?[\d_.]+", text):
        remedy = "write a number of steps, as 500, or a time, as 30s, 10min or 1h"
        raise UsageError(f"{what} {text} cannot be read", remedy=remedy)
    return settings.whole(text, what), 0.0


def seconds_text(seconds_s: float) -> str:
    """Return a time as ``how_often`` reads it, every digit of it: ``90s``, ``1000000s``."""
    plain = f"{Decimal(repr(seconds_s)):f}"
    return f"{plain.rstrip('0').rstrip('.') if '.' in plain else plain}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What a run does beside training; none of it changes a number that is learned."""

    output: str = ""
    """Folder of the run; empty: nothing is written."""
    resume: bool = False
    """Go on from the newest checkpoint in ``output``."""
    checkpoint_steps: int = 0
    """A checkpoint every so many steps; 0: by time alone."""
    checkpoint_s: float = 300.0
    """A checkpoint every so many seconds, 0: by steps alone; each epoch ends with one."""
    keep: int = 3
    """So many of the newest checkpoints are kept."""
    epochs: int = 0
    """0: as many as the workload's own call of fit, or 1."""
    steps_per_epoch: int = 0
    """0: the whole data."""
    tensorboard: bool = False
    """Scalars for TensorBoard."""
    norms_steps: int = 0
    """Norms of gradients and activations of every layer each so many steps; 0: none."""
    reshuffle: bool = False
    """Whether nobody has set a seed but tfdyno: arrays then come in another order in each epoch."""
    save_model: bool = True
    """Whether the trained model is kept as ``model.keras``."""
    first_weights: str = ""
    """File (``.npz``) of the weights to begin with, made where it is not there; empty: the model's
    own."""
    only_losses: bool = False
    """Only its losses are wanted: what the workload writes goes into a folder beside and away at
    the end, and a script is left after the fit that is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A setting and what TensorFlow or Keras says of it after the first step."""

    name: str
    asked: str
    reported: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast the steps of a session came, its first one left out."""

    samples_s: tuple[float, ...] = ()
    """Seconds per step, each the mean over its ``steps_per_sample``: half a second or more."""
    steps_per_sample: tuple[int, ...] = ()
    firsts: tuple[int, ...] = ()
    """Places of samples that begin an epoch: its iterator and the checkpoint before are in them."""
    epochs: int = 0
    """That ended."""
    epoch_end_s: float = 0.0
    """The time from the last step of an epoch to the end of its validation and callbacks, of all
    epochs."""
    validation_s: float = 0.0
    """The part of that in validation."""
    callback_s: float | None = None
    """The part of that in the user's callbacks; None: not told apart."""
    save_s: float = 0.0
    """That the training waited for checkpoints, those at ends of epochs included."""
    saves: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOutcome:
    """What a run left behind."""

    history: History
    epochs: int
    """Whole epochs that were trained, earlier sittings of the run included."""
    steps: int
    """Calls of the train step (batches), earlier sittings included."""
    updates: int
    """Updates of the weights: fewer than ``steps`` with accumulation."""
    skipped_updates: int = 0
    """Left out because a gradient overflowed in float16."""
    seconds_s: float = 0.0
    """The time of this session, from its first step on."""
    samples_per_s: float = 0.0
    """The rate of this session, without its first step."""
    replica_count: int = 1
    global_batch_size: int = 0
    seed: int | None = None
    parameter_count: int = 0
    peak_memory_bytes: int = 0
    memory_kind: str = "process"
    """``allocator`` of the GPU, or the memory of the ``process``."""
    stopped: str = ""
    """Why it ended early: ``SIGTERM``, ``Ctrl-C``, ``spot notice``, ``NaN loss``, ``NaN weights``;
    else empty."""
    resumed_from: str = ""
    """Checkpoint that this session began with."""
    checkpoints: tuple[str, ...] = ()
    """Paths, the newest last."""
    model_path: str = ""
    applied: tuple[Applied, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    software: Software = field(default_factory=Software)
    pace: Pace = Pace()
    retreats: tuple[Retreat, ...] = ()
    """Steps back from compiles that failed inside XLA, of all sittings."""
    layout: Layout | None = None
    """How the weights lie on the devices, where they are split."""
