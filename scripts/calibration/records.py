"""Stored kernel records: the kernels of every measured model, so that a fit needs no tracing."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from tfdyno.core.codec import write_atomic
from tfdyno.core.program import Kernel, Program

if TYPE_CHECKING:
    from pathlib import Path

Key = tuple[str, str, str]
"""Builder in ``truth/zoo.py``, mode, Keras policy as traced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a traced model asks of a GPU."""

    program: Program
    policy: str
    trainable_parameter_count: int


def path_of(folder: Path, key: Key) -> Path:
    """File of a record."""
    return folder / f"{'.'.join(key)}.json.gz"


def write_record(folder: Path, key: Key, record: Record) -> None:
    """Store a record without names, layers and live curve: sizes only, a few kilobytes."""
    kernels = tuple(replace(kernel, name="", layer="") for kernel in record.program.kernels)
    buffers = replace(record.program.buffers, live_curve=(), largest=())
    program = replace(
        record.program, kernels=kernels, buffers=buffers, trace_sha256="", versions={}
    )
    data = msgspec.json.encode(replace(record, program=program))
    write_atomic(path_of(folder, key), gzip.compress(data, 9, mtime=0))


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
    kernels = tuple(_with_half(kernel, dtype) for kernel in record.program.kernels)
    return replace(record, program=replace(record.program, kernels=kernels))


def _with_half(kernel: Kernel, dtype: str) -> Kernel:
    changes = kernel.dtype in ("f16", "bf16") and kernel.dtype != dtype
    return replace(kernel, dtype=dtype) if changes else kernel
