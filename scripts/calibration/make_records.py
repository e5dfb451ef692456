"""Trace every measured model through the product's own quick route and store its kernels."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

from calibration.records import Key, Record, path_of, write_record
from calibration.rows import TRUTH, Row, read_rows
from tfdyno.core.codec import from_builtins, to_builtins
from tfdyno.core.errors import TfdynoError
from tfdyno.core.program import Program
from tfdyno.core.workload import Workload

FOLDER = TRUTH / "kernels"
MODELS_PER_PROCESS = 20
"""JAX keeps what it traced; a fresh process now and then bounds the memory."""


def main() -> int:
    """Make the records that are missing, most useful first; returns 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="make existing records anew")
    parser.add_argument("--only", default="", help="only builders whose name contains this")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    keys = [key for key in keys_of(read_rows()) if options.only in key[0]]
    missing = [key for key in keys if options.all or not path_of(options.folder, key).exists()]
    os.environ |= {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1"}
    failures = 0
    with get_context("spawn").Pool(1, maxtasksperchild=MODELS_PER_PROCESS) as pool:
        lines = pool.imap(_store, [(options.folder, key) for key in missing])
        for number, line in enumerate(lines, 1):
            print(f"{number}/{len(missing)} {line}", flush=True)
            failures += line.startswith("FAILED")
    return min(failures, 1)


def keys_of(rows: list[Row]) -> list[Key]:
    """Keys of all records that the rows need, those of most rows first."""
    return [key for key, _ in Counter(row.record for row in rows).most_common()]


def make_record(key: Key) -> Record:
    """Trace one builder of ``truth/zoo.py`` as the tool's trace child does."""
    from tfdyno.runtime.trace import handle

    function, mode, policy = key
    workload = Workload(
        reference=f"{TRUTH / 'zoo.py'}:{function}",
        kind="function",
        mode="train" if mode == "train" else "infer",
        precision=policy,
    )
    request = {
        "workload": to_builtins(workload),
        "batch_size": None,
        "path": "jax",
        "path_reason": "records",
        "stablehlo": os.devnull,
        "count": True,
    }
    result = to_builtins(handle(request, lambda _: None))
    if "declined" in result:
        raise TfdynoError(**result["declined"])
    return Record(
        program=from_builtins(result["program"], Program),
        policy=policy,
        trainable_parameter_count=result["trace"]["trainable_parameter_count"],
    )


def _store(task: tuple[Path, Key]) -> str:
    """Make one record in a worker process; returns a line about it."""
    folder, key = task
    start = time.monotonic()
    try:
        write_record(folder, key, make_record(key))
    except TfdynoError as error:
        return f"FAILED {' '.join(key)}: {error}"
    return f"{' '.join(key)}: {time.monotonic() - start:.1f} s"


if __name__ == "__main__":
    sys.exit(main())
