"""What a bench measured: raw samples of every run, telemetry, environment; and comparisons."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.measure.software import Backend, DeviceKind
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import Retreat

PROTOCOL_VERSION = 1
"""Results of different versions do not compare."""
MISSING = -1
"""What stands in a list of telemetry for a point that could not be read: a card lost midway, for
example."""
DataMode = Literal["own", "synthetic", "synthetic-device", "real"]
"""The workload's own; one batch again and again through tf.data, or held on the device; a
packaged real data set (standard tasks only)."""
Verdict = Literal["faster", "slower", "no_difference", "not_comparable"]
InstabilityKind = Literal[
    "drift", "noise", "throttling", "busy_card", "busy_host", "no_steady_state", "few_samples"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The rules of a measurement; what differs here does not compare."""

    version: int = PROTOCOL_VERSION
    data: DataMode = "own"
    epochs: int = 0
    """Whole epochs that every run trains; 0: as long as the steady state takes."""
    least_runs: int = 5
    most_runs: int = 20
    least_samples: int = 30
    """The fewest samples of a run, in the steady state."""
    least_s: float = 5.0
    """The least time of a run in the steady state: a machine that others share swings within
    seconds."""
    most_s: float = 60.0
    """The longest time of a run, from the first step on, where no epochs are asked for."""
    target_ratio: float = 0.02
    """No more runs than ``least_runs`` once the interval of the median is this narrow (half of
    its width over the median)."""
    target_metric: str = ""
    """Train to a target: ``accuracy``, ``loss``; empty: none."""
    target_value: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchTask:
    """What is measured, as the child found it."""

    reference: str
    title: str
    """The model's own name."""
    mode: Literal["train", "infer"] = "train"
    backend: Backend = "tensorflow"
    """Of Keras."""
    parameter_count: int
    inputs: tuple[str, ...]
    """``float32[224,224,3]`` of every input, without the batch."""
    loss: str = ""
    optimizer: str = ""
    policy: str
    """Keras dtype policy that the model has."""
    execution: Literal["xla", "graph", "eager"]
    """What the model was compiled to."""
    batch_size: int
    """Samples of each replica; 0: it cannot be told, as in a loop without ``tf.function``."""
    replica_count: int = 1
    samples_per_epoch: int = 0
    """0: unknown."""
    is_loop: bool = False
    """Whether the script trains by a loop of its own, and not by Keras' ``fit``."""
    has_pipeline: bool = True
    """Whether it reads its own data by tf.data, which takes the input settings of a recipe."""
    data_set: str = ""
    """Name of the real data; empty for others."""
    notes: tuple[str, ...] = ()
    """What the protocol left out of the user's call of ``fit``."""
    retreats: tuple[Retreat, ...] = ()
    """Steps back from compiles that failed inside XLA: it ran otherwise than was asked."""

    @property
    def samples_per_step(self) -> int:
        """Samples over all replicas; where the batch is not told, a step counts as one sample."""
        return max(self.batch_size, 1) * self.replica_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A GPU that the run could use, as its driver tells of it."""

    name: str
    slug: str = ""
    """Its row of the catalogue; empty: not in it."""
    memory_bytes: int = 0
    power_limit_w: float = 0.0
    graphics_clock_limit_hz: float = 0.0
    """The highest clock that is allowed; 0: unknown."""
    ecc: bool | None = None
    mig: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Fingerprint of where a measurement was made; empty means unknown."""

    device: DeviceKind
    cards: tuple[Card, ...] = ()
    driver: str = ""
    cuda: str = ""
    """That TensorFlow was built for."""
    cudnn: str = ""
    tensorflow: str
    keras: str
    jax: str = ""
    """Empty: it computed with TensorFlow."""
    python: str
    tfdyno: str
    """Version, and commit where it runs from a repository."""
    system: str
    """``Linux 6.1 (Debian 12)``."""
    host: str
    """Name of the machine."""
    container: str = ""
    """``docker``, ... ; empty: none."""
    container_image: str = ""
    cpu: str
    cpu_count: int
    """Logical CPUs that the process may use."""
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTelemetry:
    """The points of one card; lists as long as ``Telemetry.at_s``."""

    index: int
    utilisation_ratio: tuple[float, ...] = ()
    memory_bytes: tuple[int, ...] = ()
    other_memory_bytes: tuple[int, ...] = ()
    """Held by processes that are not the child's."""
    power_w: tuple[float, ...] = ()
    temperature_celsius: tuple[float, ...] = ()
    graphics_clock_hz: tuple[float, ...] = ()
    memory_clock_hz: tuple[float, ...] = ()
    throttle: tuple[tuple[str, ...], ...] = ()
    """Reasons at each point; empty: none."""
    corrected_errors: tuple[int, ...] = ()
    """Errors of its memory that ECC corrected since the driver was loaded."""
    uncorrected_errors: tuple[int, ...] = ()
    """Likewise, that it could not correct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """One point every half second; lists of equal length, empty where nothing can be read.

    A single point that could not be read is ``MISSING``; its ``throttle`` is empty.
    """

    interval_s: float = 0.5
    at_s: tuple[float, ...] = ()
    """The time since the start of the child."""
    cpu_ratio: tuple[float, ...] = ()
    """CPUs that the child kept busy, over all that it may use."""
    other_cpu_ratio: tuple[float, ...] = ()
    """The same for all other processes of the machine."""
    memory_bytes: tuple[int, ...] = ()
    """Resident memory of the child."""
    disk_read_bytes: tuple[int, ...] = ()
    """Bytes read since the start of the child."""
    disk_write_bytes: tuple[int, ...] = ()
    cards: tuple[CardTelemetry, ...] = ()
    cost_ratio: float = 0.0
    """CPU time of the sampling itself over the time that it ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstResults:
    """What a run gave at first, from weights that both sides of an A/B begin with.

    Two backends that compute the same give the same here, whatever their speed.
    """

    steps: tuple[int, ...] = ()
    """After how many steps each of ``values`` was told; empty: nothing was kept."""
    values: tuple[float, ...] = ()
    """The loss that ``fit`` told; of the forward pass, the mean size of what it gave for the first
    batch. What is no number is left out."""
    random_layers: tuple[str, ...] = ()
    """Layers that draw random numbers in training: these differ between backends."""
    evaluated: float | None = None
    """The loss of the first batch with those layers at rest; None: not asked for, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """One fresh process: raw samples, in order, warm-up included."""

    samples_s: tuple[float, ...]
    """Seconds per step; each sample is the mean over ``steps_per_sample`` steps, the device
    synchronised at its end."""
    steps_per_sample: tuple[int, ...]
    steady_from: int
    """Index of the first sample of the steady state; the number of samples: none was found."""
    excluded: tuple[int, ...] = ()
    """Samples in the steady state that hold more than steps: the first of an epoch."""
    first_step_s: float
    """The time from the call of ``fit`` to the end of its first step: tracing and compiling
    included."""
    import_s: float
    build_s: float
    """The time of the user's code, up to ``fit``."""
    programs_kept: bool = False
    """Whether compiled programs came from an earlier process: ``first_step_s`` is without them."""
    beside_s: tuple[float, ...] = ()
    """A small computation of tfdyno's own, timed between samples: how fast the CPUs were. Empty on
    a GPU, and where the workload's own threads work on between its steps."""
    beside_places: tuple[int, ...] = ()
    """How many samples were before each of them."""
    peak_memory_bytes: int
    memory_kind: Literal["allocator", "process"]
    """``allocator``: the framework's on the first GPU; ``process``: resident, without one."""
    metrics: dict[str, float] = field(default_factory=dict)
    """The metrics of the last epoch, validation included; only where real data was trained for
    epochs."""
    seconds_to_target_s: float = 0.0
    """Training time until the target; 0: no target, or not reached."""
    telemetry: Telemetry = Telemetry()
    started_at: str
    """ISO 8601, UTC."""
    order: int = 0
    """Position among all runs of one session, both sides of an A/B together."""
    first: FirstResults = FirstResults()
    """Its first results; kept only where two backends are measured in turns."""

    @property
    def steady_places(self) -> tuple[int, ...]:
        """Indices of the samples that the run is judged by.

        Those of the steady state, or of the second half where none was found, without the ones
        that hold more than steps.
        """
        left_out, count = set(self.excluded), len(self.samples_s)
        start = self.steady_from if self.steady_from < count else count // 2
        return tuple(place for place in range(start, count) if place not in left_out)

    @property
    def steady_s(self) -> tuple[float, ...]:
        """The samples at ``steady_places``, in seconds per step."""
        return tuple(self.samples_s[place] for place in self.steady_places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run, with what was run and where."""

    run: BenchRun
    task: BenchTask
    environment: Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Instability:
    """A reason to trust a measurement less."""

    kind: InstabilityKind
    text: str
    """One sentence with its numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A bench of one workload with one recipe in one environment. Raw: summaries are computed."""

    id: str
    protocol: Protocol
    task: BenchTask
    recipe: Recipe
    environment: Environment
    runs: tuple[BenchRun, ...]
    session: str = ""
    """Measurements of one interleaved A/B share it."""
    label: str = ""
    created_at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What follows from a measurement's samples: see ``model.measure.summary``."""

    median_s: float
    """Median over runs of the median step of their steady state."""
    trimmed_mean_s: float
    interval_s: tuple[float, float]
    """Bootstrap, 95 %."""
    sample_count: int
    run_count: int
    throughput_per_s: float
    """Samples, over all replicas."""
    first_step_s: float
    peak_memory_bytes: int
    utilisation_ratio: float | None = None
    """The utilisation of the GPUs, in the steady state; None: not measured."""
    power_w: float | None = None
    energy_j_per_step: float | None = None
    instabilities: tuple[Instability, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SameResults:
    """Whether two backends compute the same, as far as their runs tell."""

    kind: Literal["steps", "at_rest", "not_proven"]
    """``steps``: their first losses agree; ``at_rest``: their losses without the layers that draw
    random numbers do, and what is learned was not compared; ``not_proven``: neither."""
    difference_ratio: float
    """The largest difference over the larger number; 0: there was nothing to compare."""
    tolerance_ratio: float
    text: str
    """What was compared, in one sentence or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """B against A."""

    verdict: Verdict
    ratio: float
    """Throughput of B over that of A, above 1: B is faster; 0: not comparable."""
    interval: tuple[float, float]
    """The interval of the ratio, at ``confidence_ratio``."""
    confidence_ratio: float
    paired: bool
    """Whether the runs of A and B alternated."""
    reason: str
    """One sentence: what decided the verdict; for ``not_comparable`` the field that differs."""
    differences: tuple[tuple[str, str, str], ...] = ()
    """Fields of recipe, task and environment that differ: name, A's value, B's value."""
    same: SameResults | None = None
    """Whether both compute the same; None: both ran on one backend."""
    scaling_efficiency_ratio: float | None = None
    """Where B has more replicas than A: ratio over the ratio of replicas."""
