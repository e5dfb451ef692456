"""Library calls in optimised HLO (cuDNN convolutions, cuBLAS products): their work and sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tfdyno.core.choose.program import Direction, KernelKind, Phase
from tfdyno.kernels.hlo.text import Instruction, Shape, leaves

if TYPE_CHECKING:
    from tfdyno.kernels.records import Sizes

CONVOLUTION = "__cudnn$conv"
PRODUCTS = ("__cublas$lt$matmul", "__cublas$gemm")
SCRATCH_DTYPES = frozenset({"u8", "s8"})
_SIDES, _KINDS = ("lhs", "rhs"), ("contracting", "batch")
_DIMS = re.compile(r'"(lhs|rhs)_(contracting|batch)_dimensions":\[([^\]]*)\]')


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """What a library call computes, in the terms of ``core.choose.program.Kernel``."""

    kind: KernelKind
    flops: int
    direction: Direction
    dims: dict[str, tuple[int, ...]]


def library_call(
    instruction: Instruction, operands: list[Shape], phase: Phase, sizes: Sizes
) -> LibraryCall | None:
    """Return the work of a custom call to cuDNN or cuBLAS; None for every other instruction."""
    target = instruction.attribute("custom_call_target").strip('"')
    if target.startswith(CONVOLUTION) and len(operands) >= 2:
        return _convolution(instruction, operands, target, phase, sizes)
    if target.startswith(PRODUCTS) and len(operands) >= 2:
        named = {(side, what): _numbers(text.replace('"', ""))
                 for side, what, text in _DIMS.findall(instruction.attributes)}  # fmt: skip
        contract, batch = (tuple(named.get((side, what), ()) for side in _SIDES) for what in _KINDS)
        return matrix_product(operands[0], operands[1], contract, batch)
    return None


def dot(instruction: Instruction, operands: list[Shape]) -> LibraryCall:
    """Return a matrix product that XLA left inside a fusion of its own."""
    contract = tuple(_numbers(instruction.group(f"{side}_contracting_dims")) for side in _SIDES)
    batch = tuple(_numbers(instruction.group(f"{side}_batch_dims")) for side in _SIDES)
    return matrix_product(operands[0], operands[1], contract, batch)


def matrix_product(
    left: Shape,
    right: Shape,
    contract: tuple[tuple[int, ...], ...],
    batch: tuple[tuple[int, ...], ...],
) -> LibraryCall:
    """Return FLOPs (two per multiply-add) and ``m n k batch`` of a product of two arrays."""
    inner = prod(left.dims[i] for i in contract[0])
    outer = prod(left.dims[i] for i in batch[0])
    rows = left.elements // max(1, inner * outer)
    columns = right.elements // max(1, inner * outer)
    flops = 2 * outer * rows * columns * inner
    return LibraryCall(
        "gemm", flops, "", {"m": (rows,), "n": (columns,), "k": (inner,), "batch": (outer,)}
    )


def scratch_bytes(instruction: Instruction) -> int:
    """Return a custom call's workspace: its result's last array, where that is raw bytes."""
    results = leaves(instruction.type)
    if instruction.opcode == "custom-call" and len(results) > 1:
        last = results[-1]
        return last.bytes if last.dtype in SCRATCH_DTYPES and len(last.dims) == 1 else 0
    return 0


def _convolution(
    instruction: Instruction, operands: list[Shape], target: str, phase: Phase, sizes: Sizes
) -> LibraryCall:
    """Return what the call itself computes, told as the pass of the forward convolution that it is.

    ``2 * batch * spatial(output) * prod(kernel)``; kernels of a grouped convolution are small
    already, and zeros that XLA put between the elements of a gradient are computed with.
    """
    data, kernel, output = operands[0], operands[1], leaves(instruction.type)[0]
    direction: Direction = "forward"
    if "BackwardFilter" in target:
        data, kernel, output, direction = operands[0], output, operands[1], "weight_gradient"
    elif "BackwardInput" in target:
        data, kernel, output, direction = output, operands[1], operands[0], "input_gradient"
    labels = [_label(part) for part in re.split("_|->", instruction.attribute("dim_labels"))]
    n, cin, x = _dims(data, labels[0], "bf")
    cout, inner, window = _dims(kernel, labels[1], "oi")
    y = _dims(output, labels[2], "bf")[2]
    flops = 2 * n * prod(y) * kernel.elements
    stride = _window(instruction, "stride") or (1,) * len(window)
    if direction == "forward" and phase == "backward":
        if _sums_over_batch(kernel, window, y, sizes):
            direction, n, cin, window, y = "weight_gradient", inner, n, y, window
        elif max(stride, default=1) == 1:
            direction, cin, cout, x, y = "input_gradient", cout, cin, y, x
    dims = {
        "n": (n,),
        "cin": (cin,),
        "cout": (cout,),
        "groups": (int(instruction.attribute("feature_group_count") or 1),),
        "window": window,
        "stride": stride,
        "input": x,
        "output": y,
    }
    return LibraryCall("convolution", flops, direction, dims)


def _sums_over_batch(
    kernel: Shape, window: tuple[int, ...], output: tuple[int, ...], sizes: Sizes
) -> bool:
    """Return whether a forward call going backward is a weight gradient: a batch is its kernel."""
    return sizes.grows(kernel.elements) if sizes.marker else prod(window) > prod(output)


def _dims(shape: Shape, label: dict[str, int], names: str) -> tuple[int, int, tuple[int, ...]]:
    """Return the two named dimensions of an array and its spatial ones in order."""
    spatial = sorted(key for key in label if key.isdigit())
    first, second = (shape.dims[label[name]] for name in names)
    return first, second, tuple(shape.dims[label[key]] for key in spatial)


def _label(text: str) -> dict[str, int]:
    return {character: position for position, character in enumerate(text)}


def _window(instruction: Instruction, key: str) -> tuple[int, ...]:
    match = re.search(rf"{key}=([\dx]+)", instruction.group("window"))
    return tuple(int(size) for size in match[1].split("x")) if match else ()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())
