"""Trace every measured model through the product's own quick route and store its kernels."""

from __future__ import annotations

import os
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import Failure, TfdynoError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.messages.trace import TraceStep
from tfdyno_truth.own_rows import own_rows
from tfdyno_truth.records import Key, Record, path_of, write_record
from tfdyno_truth.rows import OF_JAX, TABLES, TRUTH, ZOO, Row, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.program import Lowering

FOLDER = TRUTH / "kernels"
MODELS_PER_PROCESS = 20
"""JAX keeps what it traced; a fresh process now and then bounds the memory."""


def make_missing(folder: Path, *, again: bool, only: str, tell: Callable[[str], None]) -> int:
    """Make the records that are missing, most useful first; returns how many failed.

    Args:
        folder: Where the records are.
        again: Make existing records anew.
        only: Only builders whose name contains this.
        tell: Is given a line about every record.
    """
    folder.mkdir(exist_ok=True)
    rows = [*read_rows(tables=tuple(TABLES)), *own_rows()]
    keys = [key for key in keys_of(rows) if only in key[0]]
    missing = [key for key in keys if again or not path_of(folder, key).exists()]
    os.environ |= {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1"}
    failures = number = 0
    # zoo.py replaces a part of Keras for good: no process may build the models of two files.
    for zoo in sorted({zoo_of(key) for key in missing}):
        with get_context("spawn").Pool(1, maxtasksperchild=MODELS_PER_PROCESS) as pool:
            mine = [(folder, key) for key in missing if zoo_of(key) == zoo]
            for line in pool.imap(_store, mine):
                number += 1
                tell(f"{number}/{len(missing)} {line}")
                failures += line.startswith("FAILED")
    return failures


def keys_of(rows: list[Row]) -> list[Key]:
    """Keys of all records that the rows need, those of most rows first."""
    return [key for key, _ in Counter(row.record for row in rows).most_common()]


def zoo_of(key: Key) -> str:
    """File of a record's builder."""
    where, dot, _ = key[0].rpartition(".")
    return f"zoo_{where.removesuffix(OF_JAX)}.py" if dot else ZOO


def lowering_of(key: Key) -> Lowering:
    """How the software lowers the step that the rows of a record were measured with."""
    where, dot, _ = key[0].rpartition(".")
    if not dot:
        return "before"
    return "jax" if where.endswith(OF_JAX) else "tensorflow"


def workload_of(key: Key) -> Workload:
    """What a record is of: one builder of a file in ``truth``."""
    function, mode, policy = key
    return Workload(
        reference=f"{TRUTH / zoo_of(key)}:{function.rpartition('.')[2]}",
        kind="function",
        mode="train" if mode == "train" else "infer",
        precision=policy,
    )


def make_record(key: Key) -> Record:
    """Trace one builder as the tool's trace child does, by the lowering of its key."""
    from tfdyno.runtime.trace.child import handle

    workload = workload_of(key)
    nowhere = Path(os.devnull)
    request = TraceStep(
        workload=workload, path_reason="records", stablehlo=nowhere, hlo=nowhere, count=True,
        lowering=lowering_of(key),
    )  # fmt: skip
    found = handle(request, lambda _: None)
    if isinstance(found.trace, Failure):
        raise found.trace.error
    assert found.programs
    return Record(
        program=found.programs.program,
        per_op=found.programs.per_op,
        per_primitive=found.programs.per_primitive,
        policy=workload.precision,
        trainable_parameter_count=found.trace.trainable_parameter_count,
    )


def _store(request: tuple[Path, Key]) -> str:
    """Make one record in a worker process; returns a line about it."""
    folder, key = request
    start = time.monotonic()
    try:
        write_record(folder, key, make_record(key))
    except TfdynoError as error:
        return f"FAILED {' '.join(key)}: {error}"
    return f"{' '.join(key)}: {time.monotonic() - start:.1f} s"
