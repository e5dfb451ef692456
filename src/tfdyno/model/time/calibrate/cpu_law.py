"""Seconds of a step as TensorFlow's graph runs it on the CPUs of a machine that were swept.

Keras compiles nothing on a machine without GPUs, so the step is one of TensorFlow's graph: the
kernels of ``kernels/unfused/per_primitive.py``, without what only GPUs need (``on_cpus``). One
takes ::

    (start + FLOPs / peak + bytes / bandwidth) * exp(residual)

with start, peak and bandwidth of the sweep, and the residual of measured kernels of its kind
(``neighbours``). A step is their sum and a call: one operation has all processors at a time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.model.time.calibrate.neighbours import Residuals, carried

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tfdyno.core.choose.card_file import CardFile
    from tfdyno.core.choose.program import Kernel

    Floats = NDArray[np.float64]

ELEMENT_BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "pred": 1}
ALIKE = {
    "rsqrt": "sqrt", "cbrt": "sqrt", "log": "exponential", "log_plus_one": "exponential",
    "exponential_minus_one": "exponential", "erf": "erfc", "minimum": "maximum", "group": "maximum",
    "abs": "negate", "sign": "negate", "scale": "square", "and": "compare", "or": "compare",
    "not": "compare", "cosine": "tanh", "sine": "tanh",
}  # fmt: skip
"""Operations that were not swept -> one that computes about as much for an element."""
PLAIN = "multiply"
"""Stands for every other operation on elements."""
ROWS = {"add": "subtract", "square": "square", "multiply": "multiply", "subtract": "subtract"}
"""Operations with an operand of another shape -> the one that was swept."""
Group = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rough:
    """The law without residuals."""

    start_s: float
    flops_per_s: float
    bytes_per_s: float

    def seconds(self, kernel: Kernel, batch_size: float) -> float:
        """Return the seconds of one launch."""
        count = max(1, kernel.count)
        moved = (kernel.read_bytes + kernel.write_bytes).at(batch_size)
        done = kernel.flops.at(batch_size) if kernel.kind in ("gemm", "convolution") else 0.0
        return self.start_s + (done / self.flops_per_s + moved / self.bytes_per_s) / count


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """Kernels of a step: arrays of one length."""

    kernel_s: Floats
    """The time of all launches of each."""
    deviation: Floats
    """One standard deviation of log(time)."""
    groups: tuple[Group, ...]


def rough_law(card: CardFile) -> Rough:
    """Start, peak and bandwidth of a sweep."""
    rows = card.kernels
    done = [one.kernel.flops.fixed / one.kernel_s for one in rows
            if one.kernel.kind in ("gemm", "convolution")]  # fmt: skip
    moved = [(one.kernel.read_bytes.fixed + one.kernel.write_bytes.fixed) / one.kernel_s
             for one in rows if one.kernel.kind == "loop"]  # fmt: skip
    return Rough(
        start_s=min(one.kernel_s for one in rows),
        flops_per_s=float(np.quantile(done, 0.9)),
        bytes_per_s=float(np.quantile(moved, 0.5)),
    )


def price(kernels: Sequence[Kernel], batch_size: float, grown: float, card: CardFile) -> Priced:
    """Price the kernels of a step.

    Args:
        kernels: As ``on_cpus`` leaves them.
        batch_size: Samples of the step.
        grown: The batch over that of the program, whose sizes ``Kernel.dims`` holds.
        card: The sweep.
    """
    law = rough_law(card)
    measured = _residuals(card, law)
    found = np.array([law.seconds(one, batch_size) for one in kernels])
    deviation = np.zeros(len(kernels))
    groups = tuple(_swept_group(one, measured) for one in kernels)
    for group in set(groups):
        chosen = np.array([index for index, one in enumerate(groups) if one == group])
        sizes = np.array([sizes_of(kernels[index], grown, batch_size) for index in chosen])
        log_ratio, spread = carried(measured[group], sizes)
        found[chosen] *= np.exp(log_ratio)
        deviation[chosen] = spread
    counts = np.array([float(max(1, one.count)) for one in kernels])
    return Priced(kernel_s=found * counts, deviation=deviation, groups=groups)


def _residuals(card: CardFile, law: Rough) -> dict[Group, Residuals]:
    rows: defaultdict[Group, list[tuple[tuple[float, ...], float, float]]] = defaultdict(list)
    for one in card.kernels:
        ratio = float(np.log(one.kernel_s / law.seconds(one.kernel, 1.0)))
        rows[group_of(one.kernel)].append((sizes_of(one.kernel, 1.0), ratio, one.spread_ratio))
    return {
        group: Residuals(
            sizes=np.array([size for size, _, _ in held]),
            log_ratio=np.array([ratio for _, ratio, _ in held]),
            noise=np.array([spread for _, _, spread in held]),
        )
        for group, held in rows.items()
    }


def group_of(kernel: Kernel) -> Group:
    """Return kernels that are alike but for their sizes."""
    if kernel.kind == "gemm":
        many = kernel.size("batch") > 1
        return ("gemm", kernel.direction, "batched" if many else "")
    if kernel.kind == "convolution":
        return ("convolution", kernel.direction, "depthwise" if kernel.size("groups") > 1 else "")
    if kernel.kind == "reduce":
        return ("reduce", kernel.name, "")
    if kernel.kind == "loop":
        return ("loop", kernel.name, "row" if _in_rows(kernel) else "")
    return (kernel.kind, kernel.name if kernel.kind == "scatter" else "", "")


def _swept_group(kernel: Kernel, measured: Iterable[Group]) -> Group:
    """Return the group of a kernel, or of what is most alike among those that were swept."""
    kind, name, form = group_of(kernel)
    tries = [(kind, name, form)]
    if kind == "loop" and form == "row":
        tries.append((kind, ROWS.get(name, PLAIN), form))
    if kind == "loop":
        tries += [(kind, ALIKE.get(name, PLAIN), ""), (kind, PLAIN, "")]
    elif kind == "reduce":
        tries.append((kind, "reduce", ""))
    elif kind in ("gemm", "convolution"):
        tries += [(kind, "forward", form), (kind, "forward", "")]
    else:
        tries.append(("loop", PLAIN, ""))
    known = set(measured)
    return next((one for one in tries if one in known), tries[0])


def sizes_of(kernel: Kernel, grown: float, batch_size: float = 1.0) -> tuple[float, ...]:
    """Return log2 of the sizes that decide a kernel's rate; of one length in a group."""

    def size(name: str) -> float:
        return kernel.size(name, grown)

    if kernel.kind == "gemm":
        long, short = sorted((size("m"), size("n")), reverse=True)
        values: tuple[float, ...] = (long, short, size("k"), size("batch"))
    elif kernel.kind == "convolution":
        places = size("n") * size("output")
        values = (places, size("cin"), size("cout"), size("window"), size("stride"))
    elif kernel.kind == "reduce":
        values = (size("outer"), size("summed"), size("inner"))
    else:
        values = (size("elements") if "elements" in kernel.dims else _elements(kernel, batch_size),)
    return tuple(float(np.log2(max(1.0, value))) for value in values)


def _elements(kernel: Kernel, batch_size: float) -> float:
    larger = max(kernel.read_bytes.at(batch_size), kernel.write_bytes.at(batch_size))
    return larger / max(1, kernel.count) / ELEMENT_BYTES.get(kernel.dtype, 4)


def _in_rows(kernel: Kernel) -> bool:
    """Return whether an operand has another shape than the result."""
    several = kernel.size("elements") > 1
    whole = kernel.name in ("tile", "convert", "select")
    return several and not whole and kernel.dims.get("per_thread") == (1,)


def on_cpus(kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """Return the kernels of a step that TensorFlow runs on CPUs.

    Images stay as Keras orders them. Grappler and oneDNN make one kernel of a convolution, or a
    product of two matrices, with its bias and rectifier, and of the gradients of a convolution's
    weight and bias; the clipping of a rectifier is one kernel.
    """
    layers = {one.layer for one in kernels if one.kind == "convolution"}
    kept: list[Kernel] = []
    for one in kernels:
        image = one.layer in layers
        moved = image and one.kind == "transpose"
        bias = image and one.kind == "reduce" and one.phase == "backward"
        mask = one.dtype == "pred" and one.phase == "forward" and one.kind == "loop"
        if not (moved or bias or mask or _joined(one, kept)):
            kept.append(one)
    return tuple(kept)


def _joined(kernel: Kernel, before: Sequence[Kernel]) -> bool:
    """Return whether a kernel is the bias or rectifier of the library call before it."""
    if not before or kernel.phase != "forward" or kernel.name not in ("add", "maximum"):
        return False
    last = before[-1]
    whole = last.kind == "convolution" or (last.kind == "gemm" and last.size("batch") == 1)
    return whole and last.layer == kernel.layer and last.write_bytes == kernel.write_bytes
