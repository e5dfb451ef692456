"""What was seen of a training's steps: times, input, host, operations, memory; no judgement."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.measure.software import Backend
from tfdyno.core.recipe.retreat import Retreat

OPERATION_CLASSES = (
    "gemm", "conv", "elementwise", "normalisation", "optimizer", "reduction", "data_movement",
    "collective", "random", "other",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFacts:
    """One stage of an input pipeline, sources first in the list that holds it."""

    title: str
    """How a person finds it in the script: ``map(decode)``, ``shuffle``."""
    kind: str
    """The method that makes it: ``map``, ``batch``, ``from_generator``."""
    place: str = ""
    """``train.py:41`` of the call that made it; empty: not known."""
    own_s: float = 0.0
    """Seconds per batch of its own threads, waiting included, without its inputs."""
    parallel_calls: int = 1
    """Elements it works on at once; -1: TensorFlow chooses."""
    runs_python: bool = False
    buffer_size: int = 0
    output_bytes: int = 0
    """Bytes that it gives per batch."""
    elements: float = 0.0
    """That it gives per batch; 0.0: not known."""
    operations: tuple[str, ...] = ()
    """Names of TensorFlow operations in its function: ``DecodeJpeg``, ``EagerPyFunc``."""
    keeps_order: bool = False
    """Works on several elements at once and yet gives them in their order; False: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFacts:
    """The pipeline by itself, with no model behind it."""

    batch_s: tuple[float, ...]
    """Seconds per batch, one after the other, start-up left out."""
    batch_bytes: int = 0
    samples_per_epoch: int = 0
    """0: not known."""
    stages: tuple[StageFacts, ...] = ()
    kind: Literal["dataset", "arrays", "generator", "pydataset", "other"] = "dataset"
    prefetches: bool = False
    workers: int = 0
    """Threads or processes of a PyDataset that make batches ahead; 0: none."""
    is_cached: bool = False
    cpu_ratio: float = 0.0
    """CPUs that it kept busy while it ran by itself, over those there are."""
    read_bytes_per_s: float = 0.0
    files: int = 0
    """Files that it reads, where they can be counted."""
    start_s: float = 0.0
    """The time until a new iterator gives its first batch: every epoch begins so; 0: one serves
    them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackFacts:
    """Time in one callback, or in validation or checkpoints (``name`` says which)."""

    name: str
    place: str = ""
    per_step_s: float = 0.0
    per_epoch_s: float = 0.0
    """Seconds in each epoch at its begin and end together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetraceFacts:
    """A ``tf.function`` that was traced again while steps ran."""

    function: str
    place: str = ""
    traces: int
    """The traces after the first."""
    calls: int
    seconds_s: float
    """Spent on tracing in the steps that were looked at."""
    differs: str = ""
    """What changed: ``argument x: shape (32, 8) -> (31, 8)``, ``argument step: 3 -> 4``,
    ``a new tf.function for each call``."""
    callback: str = ""
    """In which of the user's callbacks it was; empty: in none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthFacts:
    """Memory that grows with the steps."""

    where: Literal["host", "device"]
    bytes_per_step: float
    low_bytes_per_step: float
    """Lower end of the slope's interval: above 0, it grows."""
    high_bytes_per_step: float = 0.0
    """Upper end; 0: not known."""
    suspects: tuple[str, ...] = ()
    """``list of 1,204 tensors held by train.py:31 (losses)``, the fastest growing first."""
    kind: Literal["tensors", "functions", "logs", "iterators", "objects", "unknown"] = "unknown"
    """``logs``: what a callback keeps; ``objects``: what anything else in Python does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCourse:
    """How memory in use moved from step to step, the first steps left out."""

    where: str
    """``host``, or a device: ``GPU:0``."""
    counted_by: Literal["kernel", "allocator"]
    """``kernel``: pages of the process, which an allocator keeps after they were freed.
    ``allocator``: what is in use by its own account."""
    steps: int
    """Steps from the first to the last that the slope is told from."""
    low_bytes_per_step: float
    bytes_per_step: float
    high_bytes_per_step: float
    end_bytes: int
    """Bytes in use at the end."""
    free_bytes: int = 0
    """What was left then; 0: not known."""
    course_bytes: tuple[tuple[int, int], ...] = ()
    """Step and what was in use after it, over all that were read; thinned. Empty: not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitsFacts:
    """What stays in the host's memory when one fit is over and the next begins."""

    fits: int
    """That were run, the one whose steps were looked at included."""
    counted_by: Literal["kernel", "allocator"]
    """What counted it, as ``MemoryCourse`` has it."""
    begin_bytes: tuple[int, ...]
    """Bytes in use when each fit began, from the second on, garbage collected."""
    models: tuple[int, ...]
    """Keras models that were alive then."""
    low_bytes_per_fit: float = 0.0
    """Lower end of the slope's interval: above 0, it grows."""
    bytes_per_fit: float = 0.0
    high_bytes_per_fit: float = 0.0
    is_told: bool = False
    """Whether there were enough fits for a slope."""
    place: str = ""
    """Line of the user's that calls fit; empty: not known."""
    free_bytes: int = 0
    """Bytes free at the end; 0: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFacts:
    """Where the device's time went in a profile of steps on a batch that is held."""

    class_s: dict[str, float]
    """Seconds per step by ``OPERATION_CLASSES``; exclusive, over all devices' busiest."""
    count_per_step: float
    """Operations started per step."""
    busy_s: float
    """Seconds per step in which the device did something."""
    float64_s: float = 0.0
    host_only: tuple[str, ...] = ()
    """Operations that ran on the CPU though a card was there, with their share of the step."""
    layout_s: float = 0.0
    """The part of ``class_s["data_movement"]`` that turns the order of channels of pictures."""
    copied_bytes: float = 0.0
    """Between devices, per step."""
    copy_s: float = 0.0
    fed_s: float = 0.0
    """The part of ``copy_s`` from the host to a card."""
    fed_bytes: float = 0.0
    """The part of ``copied_bytes`` from the host to a card."""
    collective_exposed_s: float = 0.0
    """The time of a step in exchange between replicas while nothing was computed."""
    collective_hidden_s: float = 0.0
    """The same behind computing."""
    collectives_per_step: float = 0.0
    """Exchanges started per step: of one card, or of all logical devices of a CPU."""
    largest: tuple[tuple[str, float], ...] = ()
    """Names of the longest operations with seconds per step."""
    device_own_s: tuple[float, ...] = ()
    """Seconds per step in which each card did something else than exchange, in their order; empty:
    there are not several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """The same step on a held batch, started one by one and several in a call, in turns."""

    steps: int
    """The steps of one call."""
    single_s: tuple[float, ...]
    """Seconds of a step that has a call of its own, round after round."""
    together_s: tuple[float, ...]
    """Seconds of a step in a call of several, in the same rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What the host gave to the training."""

    cpus: int
    """Logical CPUs of the machine."""
    usable_cpus: float
    """CPUs by affinity or by the container's limit, whichever is less."""
    threads_intra: int = 0
    threads_inter: int = 0
    cpu_ratio: float = 0.0
    """CPUs kept busy during whole steps, over those usable."""
    other_cpu_ratio: float = 0.0
    """The share that other processes take."""
    throttled_ratio: float = 0.0
    """Share of time for which the container's CPU limit held it back."""
    offered_cpus: float = 0.0
    """Usable before the script ran; more than ``usable_cpus``: the script binds itself; 0: not
    known."""
    children_cpu_ratio: float = 0.0
    """CPUs kept busy by processes that the script started beside its training, over those
    usable."""
    memory_free_bytes: int = 0
    """What is free of the host's memory, for a cache; 0: not known."""


LONG_RATIO = 1.5
"""A step that takes more than so many typical ones is told by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StallFacts:
    """A step that took much longer than the others, with what is known to have been in it."""

    step: int
    """Counted from 1, of the steps of the timeline."""
    steps: int = 1
    """More: nothing but the mean of so many is known, of which ``step`` is the last."""
    whole_s: float
    input_s: float = 0.0
    """The time in reading data, where that could be timed by itself."""
    callback_s: float = 0.0
    """The time in callbacks, saving left out."""
    validation_s: float = 0.0
    checkpoint_s: float = 0.0
    retrace_s: float = 0.0
    is_first_of_epoch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineFacts:
    """Steps in the order in which they ran, those left out of the steady ones included."""

    whole_s: tuple[float, ...] = ()
    """Seconds of a step, from one to the next; each the mean over its ``steps_each``."""
    steps_each: tuple[int, ...] = ()
    """Empty: one each."""
    stalls: tuple[StallFacts, ...] = ()
    """The longest steps, in their order."""
    what: str = ""
    """Whose steps these are, where there is more to say: ``run 3 of 5``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """What a card was doing while steps ran, as its driver tells; 0: not known."""

    name: str = ""
    busy_ratio: float = 0.0
    """Share of the time in which it did anything at all."""
    power_w: float = 0.0
    power_limit_w: float = 0.0
    clock_hz: float = 0.0
    """The mean clock of its arithmetic."""
    clock_limit_hz: float = 0.0
    """The highest that is allowed."""
    lowered_ratio: float = 0.0
    """Share of the time in which it held its clock down."""
    reasons: tuple[str, ...] = ()
    """Why, the most frequent first: ``power_cap``."""
    other_memory_bytes: int = 0
    """Held by processes of others at most."""
    corrected_errors: int = 0
    """Errors of its memory that ECC corrected while steps ran."""
    uncorrected_errors: int = 0
    """That it could not correct since the driver was loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """Everything that one look at a training gave; times of steady steps, in seconds."""

    title: str
    device: Literal["cpu", "gpu"]
    source: Literal["run", "loop", "profile", "record"]
    """A call of ``fit``; a loop of the script's own; a profile from elsewhere; what ``train`` or
    ``bench`` wrote, which does not tell what a step does."""
    backend: Backend = "tensorflow"
    """Of Keras."""
    batch_size: int = 0
    replica_count: int = 1
    worker_count: int = 1
    precision: str = "float32"
    execution: Literal["xla", "graph", "eager"] = "graph"
    steps_per_execution: int = 1
    parameter_bytes: int = 0
    variable_count: int = 0
    steps_per_epoch: int = 0
    """0: not known."""
    epochs: int = 0
    """0: not known."""
    steps_seen: int = 0
    steps_watched: int = 0
    """Those of these steps in which tracing was timed: those after warm-up; 0: all of them."""
    step_s: tuple[float, ...]
    """Whole steps, with the user's data and callbacks: from one to the next."""
    held_s: tuple[float, ...] = ()
    """The same step on one batch that is held again and again, no callbacks."""
    calls: CallFacts | None = None
    """What a step takes where several go into one call; None: not looked at."""
    callback_s: float = 0.0
    """The time of a step in the user's callbacks."""
    python_s: float = 0.0
    """The time of a step between two calls of it, outside of callbacks and of reading data."""
    waits_s: float = 0.0
    """The time of a step in reading the data where that can be timed by itself (loops); 0: it
    cannot."""
    input: InputFacts | None = None
    callbacks: tuple[CallbackFacts, ...] = ()
    epoch_ends_s: float = 0.0
    """The time of an epoch from its last step on, of a record: in neither validation nor callbacks,
    as far as those were told apart."""
    epoch_saves_s: float = 0.0
    """The time of an epoch that a record's steps waited for the checkpoints of ``tfdyno train``
    itself."""
    retraces: tuple[RetraceFacts, ...] = ()
    growth: tuple[GrowthFacts, ...] = ()
    memory: tuple[MemoryCourse, ...] = ()
    """Whether it grows or not; the host's by each count there is."""
    fits: FitsFacts | None = None
    """What moved from fit to fit of a script that calls it again, where memory alone was looked at.
    """
    operations: OperationFacts | None = None
    host: HostFacts
    float64: tuple[str, ...] = ()
    """Variables and inputs of 64 bits: ``dense/kernel``, ``input x``."""
    devices: dict[str, int] = field(default_factory=dict)
    """Variables by device: ``CPU:0``: 12."""
    python_lines: tuple[tuple[str, float], ...] = ()
    """Lines of the user's own Python, ``train.py:31``, with seconds per step spent in them or in
    what they call, the step's own call left out; the longest first."""
    python_texts: dict[str, str] = field(default_factory=dict)
    """``python_lines`` as they are written, where that is known."""
    python_threads: tuple[tuple[str, float], ...] = ()
    """Other threads of the user's own Python while steps ran: the line where each was most often,
    and the CPUs that it kept busy."""
    python_steps: tuple[str, ...] = ()
    """Python that runs inside of each step: ``numpy_function in train.py:20``, ``run_eagerly``."""
    uncompiled_layers: tuple[str, ...] = ()
    """Layers for which Keras on JAX leaves the step uncompiled: ``word_ids (StringLookup)``."""
    read_each_step: tuple[str, ...] = ()
    """Callbacks for which Keras waits for each step, to give them its loss: ``Report in
    train.py:31``; looked at on JAX alone."""
    step_flops: float = 0.0
    peak_flops_per_s: float = 0.0
    peak_bytes_per_s: float = 0.0
    memory_used_bytes: int = 0
    memory_limit_bytes: int = 0
    compute_capability: str = ""
    """The compute capability of the card, ``8.0``; empty: not known."""
    unaligned: tuple[str, ...] = ()
    """Layers whose widths tensor cores cannot use in full: ``dense_1: 1001 units``."""
    worker_step_s: tuple[float, ...] = ()
    """Each worker's own work per step, without waiting for the others."""
    split_s: dict[str, float] = field(default_factory=dict)
    """Seconds per step by ``SPLIT_PARTS`` where a profile tells them all; they add up to the mean
    of ``step_s``."""
    timeline: TimelineFacts | None = None
    cards: tuple[CardFacts, ...] = ()
    retreats: tuple[Retreat, ...] = ()
    """Steps back from compiles that failed inside XLA."""
    notes: tuple[str, ...] = ()
