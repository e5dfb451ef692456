"""What kept programs save of a second start: XLA's part, and the whole first step."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from benchmarks.clock import Failed, run
from benchmarks.figure import Figure
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.compiled.keeping import Compiling, with_programs
from tfdyno.model.measure.statistics import median

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfdyno.probe.python.compilers import Framework

PAIRS = 3
MOST_RATIO = 0.1
"""Of XLA's own time, from the issue."""
SUBJECTS: tuple[tuple[Framework, str, str], ...] = (
    ("tensorflow", "transformer", "small transformer, TensorFlow"),
    ("tensorflow", "resnet50", "ResNet-50, TensorFlow"),
    ("jax", "transformer", "small transformer, JAX"),
)


def compile_once(quick: bool) -> Iterator[Figure]:
    """Ratios of a start with kept programs to one that compiles, each in a process of its own."""
    for framework, model, title in SUBJECTS[:1] if quick else SUBJECTS:
        try:
            pairs = [_pair(framework, model) for _ in range(1 if quick else PAIRS)]
        except Failed as reason:
            yield Figure(group="again", name=title, unit="x", value=None, note=str(reason))
            continue
        for key, what, target in (
            ("xla_cpu_s", "XLA", MOST_RATIO),
            ("first_cpu_s", "whole first step", None),
        ):
            ratios = [kept[key] / made[key] for made, kept in pairs]
            made_s, kept_s = (
                median([one[key] for one in side]) for side in zip(*pairs, strict=True)
            )
            clock = key.replace("_cpu", "")
            made_clock_s, kept_clock_s = (
                median([one[clock] for one in side]) for side in zip(*pairs, strict=True)
            )
            yield Figure(
                group="again",
                name=f"{title}: {what}",
                unit="x",
                value=median(ratios),
                target=target,
                runs=len(pairs),
                note=f"{min(ratios):.3f} to {max(ratios):.3f}; {made_s:.2f} s of CPU compiled, "
                f"{kept_s:.2f} s kept; {made_clock_s:.1f} s and {kept_clock_s:.1f} s on the "
                f"clock; losses {_same(pairs)}",
            )


def _pair(framework: Framework, model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A start with an empty cache, and the next one."""
    with tempfile.TemporaryDirectory(prefix="tfdyno-") as folder:
        before = os.environ.get("TFDYNO_CACHE")
        os.environ["TFDYNO_CACHE"] = folder
        try:
            made, kept = _start(framework, model), _start(framework, model)
        finally:
            os.environ.pop("TFDYNO_CACHE")
            if before is not None:
                os.environ["TFDYNO_CACHE"] = before
    return made, kept


def _start(framework: Framework, model: str) -> dict[str, Any]:
    own = {"KERAS_BACKEND": framework, "PYTHONPATH": "scripts", "CUDA_VISIBLE_DEVICES": "-1",
           "JAX_PLATFORMS": "cpu"}  # fmt: skip

    def measure(programs: Mapping[str, str], _progress: Callable[[str], None]) -> dict[str, Any]:
        words = [sys.executable, "-m", "benchmarks.compiling", model]
        found: dict[str, Any] = json.loads(run(words, {**own, **programs}).stdout.splitlines()[-1])
        return found

    asked = Compiling(
        workload=parse_reference("keras:ResNet50"), recipe=Recipe(), framework=framework,
        python=sys.executable, variables=own, doing="benchmark",
    )  # fmt: skip
    return with_programs(asked, measure, silent)[0]


def _same(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    differs = sum(made["losses"] != kept["losses"] for made, kept in pairs)
    return f"differ in {differs}" if differs else "the same, bit for bit"
