"""A model on a small device: what the device has, whether the model fits and how long it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Runtime = Literal["litert", "litert-micro", "edgetpu", "tensorrt"]
LatencyClass = Literal["real_time", "interactive", "batch"]
Bound = Literal["compute", "memory_bandwidth", "dispatch"]

REAL_TIME_S = 1 / 30
"""A frame of a camera at 30 per second."""
INTERACTIVE_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRuntime:
    """What runs a .tflite file (or, on a Jetson, the ONNX beside it) on a class of devices."""

    slug: Runtime
    name: str
    code_bytes: int
    """Bytes of the program that it adds, before the operators that a model needs."""
    memory_bytes: int
    """That it needs itself, without the model's values."""
    tensor_bytes: int
    """Bytes of its own tables, for each tensor."""
    operator_bytes: int
    on_chip_bytes: int
    """Weights up to so many stay beside the arithmetic from run to run; 0: none do."""
    fastest_ratio: float
    """Highest share of the peak that is counted on."""
    slowest_ratio: float
    """Lowest share."""
    dispatch_s: float
    """The least time to start one operator."""
    slow_dispatch_s: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDevice:
    """A board, phone class or chip; rates are peaks of its maker or follow from its clock."""

    slug: str
    name: str
    kind: str
    """jetson, board, accelerator, phone or microcontroller."""
    runtime: EdgeRuntime
    memory_bytes: int
    storage_bytes: int
    """Flash that a program and its model share; 0: a file system, which is not the limit."""
    float_ops_per_s: float
    half_ops_per_s: float
    integer_ops_per_s: float
    """Operations on 8 bits; a multiplication with its addition counts as two in all three."""
    memory_bytes_per_s: float
    rule: str
    """How the rates follow from what the source says."""
    seen: str
    """Date of the source."""
    source: str
    unverified: str = ""
    """Which of its figures were never held against a source; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeNeed:
    """What a model needs of any device, read from its file."""

    file_bytes: int
    weight_bytes: int
    live_bytes: int
    """Most bytes of values that are alive at once, in the order in which the file runs."""
    arena_bytes: int = 0
    """That LiteRT's interpreter lays out here for them, with room for the kernels of this CPU; 0:
    it could not be read."""
    peak_operator: str
    """Where that is, as ``OPERATION of layer``."""
    float_arithmetic: int
    integer_arithmetic: int
    moved_bytes: int
    """Read and written by all operators, weights included."""
    port_bytes: int
    """Bytes of one sample's inputs and outputs."""
    operators: int
    """That one sample runs: those of a loop as often as it does."""
    table_operators: int
    """The number of operators in the file."""
    tensors: int
    kinds: tuple[str, ...]
    """Kinds of operators, each once."""
    custom: tuple[str, ...]
    open_batch: bool
    loops_unknown: bool
    """A loop runs as often as its data says: it is counted once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeVerdict:
    """One model on one device; nothing of it was measured there."""

    device: str
    name: str
    runtime: str
    fits: bool
    storage_needed_bytes: int
    storage_bytes: int
    memory_needed_bytes: int
    memory_bytes: int
    unsupported: tuple[str, ...]
    """Operators that its runtime does not have."""
    latency_s: tuple[float, float]
    """Fastest and slowest that is to be expected."""
    latency_class: LatencyClass
    """The class of the slower end."""
    best_class: LatencyClass
    """The class of the faster end."""
    bound_by: Bound
    obstacles: tuple[str, ...]
    """Why it does not fit, in sentences; empty: it fits."""
    advice: tuple[str, ...]
    source: str
    unverified: str = ""
    """Which of the device's figures were never held against a source; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTiming:
    """Single calls of the model on this CPU by LiteRT."""

    threads: int
    median_s: float
    interval_s: tuple[float, float]
    """The interval of the median, 96 %: between the second and the last but one of the rounds."""
    rounds: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgePort:
    """An input or output as the code of an application needs to know it."""

    name: str
    index: int
    """Among the inputs, or the outputs, of the interpreter."""
    dtype: str
    shape: tuple[int, ...]
    """1 where the length is open."""
    open_axes: tuple[int, ...] = ()
    scale: float = 0.0
    """Real value = scale × (integer − zero point); 0: not quantised."""
    zero_point: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeReport:
    """The whole answer of ``tfdyno edge``."""

    model: str
    converted_from: str = ""
    need: EdgeNeed
    inputs: tuple[EdgePort, ...]
    outputs: tuple[EdgePort, ...]
    signature: str
    float_operators: tuple[str, ...]
    timings: tuple[EdgeTiming, ...] = ()
    cpu: str = ""
    verdicts: tuple[EdgeVerdict, ...]
