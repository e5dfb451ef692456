"""What an export is: formats, what stands in the way, how it compares, and the gates it passes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.measurement import Environment

Format = Literal[
    "savedmodel", "keras", "onnx", "tensorrt", "torch", "huggingface", "litert", "litert-fp16",
    "litert-int8",
]  # fmt: skip
ModelKind = Literal["keras_file", "function", "application", "savedmodel"]
FORMATS: tuple[Format, ...] = get_args(Format)
ENDINGS: dict[Format, str] = {
    "savedmodel": "",
    "keras": ".keras",
    "onnx": ".onnx",
    "tensorrt": "",
    "torch": "",
    "huggingface": "",
    "litert": ".tflite",
    "litert-fp16": ".tflite",
    "litert-int8": ".tflite",
}
"""The ending of the file that is written; empty: a folder."""
EXACT: frozenset[Format] = frozenset(
    ("savedmodel", "keras", "onnx", "tensorrt", "torch", "huggingface", "litert")
)
"""Formats that compute as the model does: their outputs differ by rounding alone."""
RECORD = "export.json"
MAX_DIFFERENCE = 1e-4
"""The difference that outputs up to 1 in size may have, where nobody asks for another; larger ones
in proportion."""
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The spacing of numbers just above 1 (IEEE 754 binary16; bfloat16 has 8 bits)."""
EPSILONS = 4.0
"""So many spacings may the outputs of a model that computes in half precision differ."""
CLEAR_LEAD_RATIO = 4 / 256
"""A share of 1, or of the largest score where that is above 1: four steps of a number with 8 bits.
A class that leads by less is a tie to such numbers: the classes of a model with random weights are.
"""
LEAST_CLEAR_TOP1_RATIO = 0.9
"""The share of rows with a clear class that have to keep it in a rounded format where nobody gives
a gate. It is no measure of quality: networks that converted well kept 98 to 100 % of them in 8
bits, trained or not; one that float16 broke named the same class in 16 % of all rows."""


_ONE_SIDED = 1.645
"""The normal distribution's quantile at 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """One input or output of a signature."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    """The shape with the batch; None: any size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a served model takes and gives, by name."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


RefusedNames = Mapping[str, Mapping[str, list[str]]]
"""By format, then by kind (``layer``, ``operation``, ``dtype``): what the tables refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObstacleFact:
    """Something in a model that a format cannot take, as it was found."""

    format: Format
    kind: str = ""
    """``layer``, ``operation``, ``dtype``; empty: a converter has told of it."""
    name: str
    layer: str = ""
    why: str = ""
    """Empty: the tables say it, and the remedy."""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Something in a model that a format cannot take, found before anything is converted."""

    format: Format
    layer: str
    """Empty: it belongs to no layer."""
    operation: str
    why: str
    remedy: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One output of the export against the same output of the model."""

    output: str
    max_abs: float
    mean_abs: float
    max_relative_ratio: float
    """The largest difference over the largest value of the model's own output."""
    largest_abs: float
    """Value of the model's own output."""
    top1_ratio: float | None = None
    """Rows in which both name the same class; None: the output names none."""
    clear_top1_ratio: float | None = None
    """The same of the rows whose class leads by ``CLEAR_LEAD_RATIO``; None: there are none."""
    varies: bool = True
    """Whether the model's own output differs from row to row."""
    not_finite_ratio: float = 0.0
    """The share of the model's own values that are NaN or infinite, which compare with nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Share of rows with the right class, before and after."""

    output: str
    rows: int
    """Rows in which the model names a class: not those where its scores are NaN or infinite."""
    before_ratio: float
    after_ratio: float
    commonest_ratio: float = 0.0
    """Rows of the class that most have: what naming it every time would get. 0: not counted."""

    @property
    def drop_ratio(self) -> float:
        """What the export lost; below 0 where it gained."""
        return self.before_ratio - self.after_ratio

    @property
    def is_chance(self) -> bool:
        """Whether the model itself cannot be told from naming the commonest class every time.

        By a one-sided test at 95 %; ``False`` where that class was not counted.
        """
        common = self.commonest_ratio
        spread = math.sqrt(common * (1.0 - common) / max(self.rows, 1))
        return common > 0.0 and self.before_ratio <= common + _ONE_SIDED * spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """One call of the model and of the export in turns, on the CPU of this machine."""

    batch_size: int
    rounds: int
    calls: int
    """Calls in each round, on each side."""
    original_s: Interval
    """Median call over rounds and its 95 % interval; the model as a TensorFlow graph."""
    exported_s: Interval
    speedup_ratio: Interval
    """Median over rounds of original over export, and its 95 % interval; above 1 it is faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The same inputs through the model and through what was exported."""

    data: str
    """Where the inputs come from, in words."""
    rows: int
    runner: str
    """What ran the export: ``onnxruntime 1.22``."""
    differences: tuple[Difference, ...]
    accuracy: Accuracy | None = None
    latencies: tuple[Latency, ...] = ()
    runner_dtypes: tuple[str, ...] = ()
    """Types that what ran the export rounds weights to, beside those that the model computes in."""
    made_floats: bool = False
    """Whether the model computes in whole numbers and the export in floats, which rounds less."""

    @property
    def max_abs(self) -> float:
        """The largest difference of all outputs."""
        return max((one.max_abs for one in self.differences), default=0.0)

    @property
    def top1_ratio(self) -> float | None:
        """The ratio of the first output that names a class."""
        return next((d.top1_ratio for d in self.differences if d.top1_ratio is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What an export has to pass to be put in place."""

    max_accuracy_drop_ratio: float | None = None
    max_difference: float | None = None
    """Absolute, of any output; None: ``MAX_DIFFERENCE`` for the formats that compute exactly."""

    @property
    def given(self) -> bool:
        """Whether any was asked for."""
        return self.max_difference is not None or self.max_accuracy_drop_ratio is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """One exported format."""

    format: Format
    path: str
    """Where it lies; where it would lie if it had passed."""
    kept: bool
    size_bytes: int
    sha256: str
    """The digest of the file; of a folder, that of the names and digests of its files."""
    signature: Signature
    verification: Verification
    failures: tuple[str, ...] = ()
    """Gates that it did not pass, as sentences."""
    seconds_s: float = 0.0
    """That the conversion took."""
    notes: tuple[str, ...] = ()
    details: dict[str, object] = field(default_factory=dict)
    """What the converter tells of its work: operations, layers that stayed float."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """What was exported."""

    reference: str
    kind: str
    title: str
    sha256: str
    """The digest of the file or folder that holds the model or the code that builds it; empty: none
    does."""
    weights_sha256: str
    """The digest of all weights in order; empty: a SavedModel."""
    parameter_count: int
    weights_bytes: int
    compute_dtypes: tuple[str, ...] = ()
    preprocess: str = ""
    postprocess: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """Every format of one model, verified."""

    source: Lineage
    artefacts: tuple[Artefact, ...]
    gates: Gates
    environment: Environment | None
    created_at: str
    tfdyno: str
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every format passed its gates."""
        return not any(one.failures for one in self.artefacts)


def allowed_difference(
    kind: Format,
    gates: Gates,
    difference: Difference,
    compute_dtypes: tuple[str, ...],
    *,
    made_floats: bool = False,
) -> float | None:
    """Return the largest difference that passes; None: any that is finite.

    Without ``--max-difference`` the formats that compute as the model does may differ by
    ``MAX_DIFFERENCE`` (float32) or ``EPSILONS`` spacings of the coarsest type that the model
    computes in, times the largest value of the output where that is above 1; not so where whole
    numbers were made floats.
    """
    if gates.max_difference is not None:
        return gates.max_difference
    if kind not in EXACT or made_floats:
        return None
    coarse = max((EPSILON[one] * EPSILONS for one in compute_dtypes if one in EPSILON), default=0.0)
    return max(MAX_DIFFERENCE, coarse) * max(1.0, difference.largest_abs)


def failures(
    kind: Format, gates: Gates, found: Verification, compute_dtypes: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the gates that an export does not pass, as sentences.

    An output without a finite value, with which nothing was compared, passes none, nor does a
    difference that is no number.

    Args:
        kind: The format.
        gates: What was asked for.
        found: What was measured.
        compute_dtypes: That the model computes in.
    """
    told, compute_dtypes = [], (*compute_dtypes, *found.runner_dtypes)
    for one in found.differences:
        allowed = allowed_difference(
            kind, gates, one, compute_dtypes, made_floats=found.made_floats
        )
        if text := _failure(gates, one, allowed):
            told.append(text)
    asked, drop = gates.max_accuracy_drop_ratio, found.accuracy
    if asked is None:
        return tuple(told)
    if drop is None:
        told.append("no row has an accuracy: the model's own scores are NaN or infinite in each")
    elif not drop.drop_ratio <= asked + 1e-12:
        told.append(
            f"accuracy falls by {drop.drop_ratio * 100:.2f} points, more than the "
            f"{asked * 100:.2f} allowed"
        )
    return tuple(told)


def _failure(gates: Gates, one: Difference, allowed: float | None) -> str:
    """Return why an output does not pass; empty: it does."""
    if one.not_finite_ratio >= 1.0:
        return (
            f"{one.output} is NaN or infinite throughout in the model itself: nothing was compared"
        )
    if not math.isfinite(one.max_abs):
        return f"{one.output} is NaN or infinite on one side where it is not on the other"
    if allowed is not None:
        over = f"{one.output} differs by {one.max_abs:.3g}, more than the {allowed:.3g} allowed"
        return "" if one.max_abs <= allowed else over
    same = one.clear_top1_ratio
    if gates.given or same is None or same >= LEAST_CLEAR_TOP1_RATIO:
        return ""
    return (
        f"{one.output} keeps the class in {same * 100:.1f} % of the rows where it is clear, fewer "
        f"than the {LEAST_CLEAR_TOP1_RATIO * 100:.0f} % that a rounded format needs without a gate"
    )
