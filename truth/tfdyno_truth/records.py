"""Stored kernel records: the kernels of every measured model, so that a fit needs no tracing."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.interval import Scaled
from tfdyno.core.base.settings import BY_OPERATION
from tfdyno.core.choose.program import BufferPlan, Kernel, Program

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Key = tuple[str, str, str]
"""Builder (after the file's name where that is not ``zoo.py``), mode, Keras policy as traced."""


_NOTHING = Scaled()
_NO_BUFFERS = BufferPlan(
    argument_bytes=_NOTHING,
    output_bytes=_NOTHING,
    aliased_bytes=_NOTHING,
    temporary_bytes=_NOTHING,
    peak_bytes=_NOTHING,
    parts_bytes={},
    largest=(),
    live_curve=(),
)
"""Of primitive operations: what they hold stands with ``per_op``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a traced model asks of a GPU."""

    program: Program
    """As XLA runs it."""
    per_op: Program
    """As a framework does that runs one operation after another, with TensorFlow's memory."""
    policy: str
    trainable_parameter_count: int
    per_primitive: Program | None = None
    """As Keras 3 on TensorFlow; None in records that were made before there was one."""


def path_of(folder: Path, key: Key) -> Path:
    """File of a record."""
    return folder / f"{'.'.join(key)}.json.gz"


def write_record(folder: Path, key: Key, record: Record) -> None:
    """Store a record without names, layers and live curve: sizes only, a few kilobytes."""
    primitive = record.per_primitive
    bare = replace(
        record,
        program=_bare(record.program),
        per_op=_bare(record.per_op),
        per_primitive=primitive and _merged(_bare(primitive)),
    )
    data = msgspec.json.encode(bare)
    write_atomic(path_of(folder, key), gzip.compress(data, 9, mtime=0))


def _bare(program: Program) -> Program:
    kernels = tuple(replace(kernel, name="", layer="") for kernel in program.kernels)
    buffers = replace(program.buffers, live_curve=(), largest=(), kept=None)
    return replace(
        program, kernels=kernels, buffers=buffers, trace_sha256="", versions={}, seconds_s=0.0
    )


def _merged(program: Program) -> Program:
    """The kernels of a program, equal ones as one with their number: there are thousands."""
    found: dict[str, list[Kernel]] = {}
    for kernel in program.kernels:
        found.setdefault(repr(kernel), []).append(kernel)
    kernels = tuple(_times(same[0], len(same)) for same in found.values())
    return replace(program, kernels=kernels, buffers=_NO_BUFFERS)


def _times(kernel: Kernel, number: int) -> Kernel:
    return replace(
        kernel,
        flops=kernel.flops.times(number),
        read_bytes=kernel.read_bytes.times(number),
        write_bytes=kernel.write_bytes.times(number),
        workspace_bytes=kernel.workspace_bytes.times(number),
        count=kernel.count * number,
    )


def read_record(folder: Path, key: Key, precision: str = "") -> Record | None:
    """Read a record; ``precision`` turns 16-bit kernels into the type that was measured."""
    path = path_of(folder, key)
    if not path.exists():
        return None
    record = msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Record)
    half = {"mixed_bfloat16": "bf16", "bfloat16": "bf16", "float16": "f16", "mixed_float16": "f16"}
    dtype = half.get(precision, "")
    if not dtype:
        return record
    return replace(
        record,
        program=_halved(record.program, dtype),
        per_op=_halved(record.per_op, dtype),
        per_primitive=record.per_primitive and _halved(record.per_primitive, dtype),
    )


def program_of(
    record: Record, execution: str, accumulation: int = 1, *, fused_attention: bool = False
) -> Program:
    """The program that an execution runs; of several accumulated steps, one of them.

    With ``accumulation`` the optimizer runs once for so many steps; what a step then adds to its
    gradients is less than a hundredth of it and left out. ``fused_attention`` says whether forward
    passes keep the scores of attention on the chip.
    """
    program = record.per_op if execution in BY_OPERATION else record.program
    if fused_attention:
        program = replace(program, kernels=with_fused_attention(program.kernels))
    if accumulation <= 1:
        return program
    kernels = tuple(_share(kernel, accumulation) for kernel in program.kernels)
    return replace(program, kernels=tuple(kernel for kernel in kernels if kernel.count))


def with_fused_attention(kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """Every product of queries and keys, its softmax and the product with the values, as one.

    One kernel does both products and moves queries, keys, values and result; the scores between
    them stay on the chip (Dao et al., "FlashAttention", arXiv 2205.14135, section 3.1).
    """
    found: list[Kernel] = []
    at = 0
    while at < len(kernels):
        three = kernels[at : at + 3]
        fused = len(three) == 3 and _is_attention(*three)
        found.append(_as_one(three[0], three[2]) if fused else three[0])
        at += 3 if fused else 1
    return tuple(found)


def _is_attention(first: Kernel, softmax: Kernel, second: Kernel) -> bool:
    """Whether two products, both sides of which grow with the batch, have a softmax between."""
    products = all(one.kind == "gemm" and one.dims_scaled == ("batch",) for one in (first, second))
    return products and softmax.kind == "reduce" and softmax.dims.get("inner") == (1,)


def _as_one(first: Kernel, second: Kernel) -> Kernel:
    """Both products without the scores, which the first writes and the second reads."""
    (scores,) = (m * n for m, n in zip(first.dims["m"], first.dims["n"], strict=True))
    m, n, k = (second.dims[name][0] for name in ("m", "n", "k"))
    values = 1.0 - scores / (m * k + k * n)
    return replace(
        first,
        flops=first.flops + second.flops,
        read_bytes=first.read_bytes + second.read_bytes.times(values),
        write_bytes=second.write_bytes,
    )


def _share(kernel: Kernel, steps: int) -> Kernel:
    if kernel.phase != "update":
        return kernel
    return replace(
        kernel,
        read_bytes=_shared(kernel.read_bytes, steps),
        write_bytes=_shared(kernel.write_bytes, steps),
        flops=_shared(kernel.flops, steps),
        count=round(kernel.count / steps),
    )


def _shared(amount: Scaled, steps: int) -> Scaled:
    return Scaled(fixed=amount.fixed / steps, per_sample=amount.per_sample / steps)


def _halved(program: Program, dtype: str) -> Program:
    kernels = tuple(_with_half(kernel, dtype) for kernel in program.kernels)
    return replace(program, kernels=kernels)


def _with_half(kernel: Kernel, dtype: str) -> Kernel:
    changes = kernel.dtype in ("f16", "bf16") and kernel.dtype != dtype
    return replace(kernel, dtype=dtype) if changes else kernel
