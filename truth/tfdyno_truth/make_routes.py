"""Compile the steps of ``truth/routes.toml`` by the product's own jobs and store their kernels."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.jobs.choose.compile import compile_exact
from tfdyno.jobs.choose.trace import Traced, trace
from tfdyno_truth.make_records import workload_of
from tfdyno_truth.plan import Planned, Timed, read_timed, store_timed
from tfdyno_truth.records import Key, Record, path_of, read_record, write_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tfdyno.core.choose.program import Program

    Tell = Callable[[str], None]


def make_missing(
    steps: Iterable[Planned], folder: Path, quick: Path, *, again: bool, timed: Path, tell: Tell
) -> int:
    """Compile what is missing, smallest first, one at a time; returns how many steps failed.

    Everything is stored as soon as it is known, so a stop loses one compile at most.

    Args:
        steps: What is wanted.
        folder: Compiled kernels, one folder for each GPU family.
        quick: Kernels of the quick route; their number tells what is small.
        again: Make existing ones anew.
        timed: Table of the seconds, ``truth/routes.csv``.
        tell: Is given a line about every compile.
    """
    known = {(one.key, one.family) for one in read_timed(timed)}
    missing = []
    for step in steps:
        families = [f for f in step.families if again or not _made(folder, step, f, known)]
        if families:
            missing.append(replace(step, families=tuple(families)))
    missing.sort(key=lambda step: _launches(quick, step.key))
    failures = 0
    for number, step in enumerate(missing, 1):
        try:
            for one in _make(folder, step):
                store_timed([one], timed)
                tell(f"{number}/{len(missing)} {_words(one)}")
        except TfdynoError as error:
            failures += 1
            tell(f"{number}/{len(missing)} FAILED {' '.join(step.key)}: {error}")
    return failures


def _made(folder: Path, step: Planned, family: str, known: set[tuple[Key, str]]) -> bool:
    return (step.key, family) in known and path_of(folder / family, step.key).exists()


def _launches(quick: Path, key: Key) -> int:
    record = read_record(quick, key)
    return sum(kernel.count for kernel in record.program.kernels) if record else 0


def _make(folder: Path, step: Planned) -> Iterator[Timed]:
    """Trace a step, count it and compile it for its families, in a cache of its own: all is new."""
    function, mode, policy = step.key
    workload = workload_of(step.key)
    with _empty_cache():
        start = time.perf_counter()
        traced = trace(workload)
        trace_s = time.perf_counter() - start
        count_s = seconds_to_count(traced)
        for family in step.families:
            program = _compiled(traced, family)
            (folder / family).mkdir(parents=True, exist_ok=True)
            write_record(folder / family, step.key, _record(program, traced))
            yield Timed(
                function=function,
                mode=mode,
                policy=policy,
                family=family,
                compiled_batch_size=program.batch_size,
                trace_s=round(trace_s, 2),
                count_s=round(count_s, 3),
                compile_s=round(program.seconds_s, 2),
                compiler=program.versions.get("jax-cuda12-pjrt", ""),
                day=time.strftime("%Y-%m-%d", time.gmtime()),
            )


@contextlib.contextmanager
def _empty_cache() -> Iterator[None]:
    """A cache without anything that was traced or compiled before, gone when the block ends."""
    before = os.environ.get("TFDYNO_CACHE")
    with tempfile.TemporaryDirectory(prefix="tfdyno-routes-") as folder:
        os.environ["TFDYNO_CACHE"] = folder
        try:
            yield
        finally:
            os.environ.pop("TFDYNO_CACHE")
            os.environ |= {"TFDYNO_CACHE": before} if before else {}


def seconds_to_count(traced: Traced) -> float:
    """Time of the quick route's own part: from the stored StableHLO to kernels and buffers.

    The compiled route's seconds are from the same file to the same result.
    """
    from tfdyno.runtime.trace.quick import program_of
    from tfdyno.runtime.trace.stablehlo import read_module

    about = traced.trace
    start = time.perf_counter()
    program_of(
        read_module(traced.stablehlo_path),
        batch_size=about.batch_size,
        marker=about.marker,
        trace_sha256=about.stablehlo_sha256,
        tensors=about.tensors,
        mode=about.workload.mode,
    )
    return time.perf_counter() - start


def _compiled(traced: Traced, family: str) -> Program:
    """The program of the family itself, also where the product takes that of another family."""
    alone = replace(traced, trace=replace(traced.trace, policy=""))  # no policy: nothing is shared
    return compile_exact(alone, family=family)


def _record(program: Program, traced: Traced) -> Record:
    """A compiled program is for XLA only: the other program of a record has no kernels."""
    return Record(
        program=program,
        per_op=replace(program, kernels=()),
        policy=traced.trace.policy,
        trainable_parameter_count=traced.trace.trainable_parameter_count,
    )


def _words(one: Timed) -> str:
    return (
        f"{' '.join(one.key)} {one.family}: traced {one.trace_s:.1f} s, counted "
        f"{one.count_s:.2f} s, compiled {one.compile_s:.1f} s"
    )
