"""The figures that are measured, each with its target where there is one."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.advising import advice
from benchmarks.clock import Failed, run, tfdyno
from benchmarks.compile_once import compile_once
from benchmarks.figure import Figure
from benchmarks.logs import explained
from benchmarks.looking import looking
from benchmarks.training import overhead, overhead_on_jax, replicas
from tfdyno.catalog.families import all_families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SHORT = (("--help",), ("gpus",), ("doctor", "--quick"), ("offers",), ("estimate", "--help"))
BARE = [sys.executable, "-c", "pass"]
BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""Python may keep what it compiles, as it does for users."""
MOST_TIMES = 4.0
"""CPU time of a light command over that of a Python that does nothing."""
TRACES = (  # title, reference, most seconds, most bytes; from the issue
    ("ResNet-50", "keras:ResNet50", 5.0, None),
    ("BERT-base, 128 tokens", "tests/data/scripts/bert_base.py:build", None, None),
    ("decoder, 6.9 billion parameters", "tests/data/scripts/decoder_7b.py:build", 15.0, 1e9),
    ("own loop, by TensorFlow", "tests/data/scripts/loop.py", None, None),
)
RESNET = "keras:ResNet50"
QUICK_FAMILY = "8.x"


def startup(quick: bool) -> Iterator[Figure]:
    """CPU time of the commands that must feel instant, and over that of a bare Python in turns."""
    runs = 3 if quick else 25
    for words in SHORT:
        name, spent = " ".join(("tfdyno", *words)), list[tuple[float, float]]()

        def measure(
            words: tuple[str, ...] = words, spent: list[tuple[float, float]] = spent
        ) -> float:
            run(tfdyno(*words), BYTECODE)
            spent += [
                (run(tfdyno(*words), BYTECODE).cpu_s, run(BARE, BYTECODE).cpu_s)
                for _ in range(runs)
            ]
            return 1e3 * statistics.median(own_s for own_s, _ in spent)

        yield _figure("startup", name, "ms", measure, target=150.0, runs=runs)
        if spent:
            own_s, bare_s = (min(column) for column in zip(*spent, strict=True))
            yield Figure(
                group="startup", name=f"{name} over python -c pass", unit="times",
                value=own_s / bare_s, target=MOST_TIMES, runs=runs,
            )  # fmt: skip


def traces(quick: bool) -> Iterator[Figure]:
    """A trace from nothing: seconds of the whole job and peak memory of its child."""
    for title, reference, most_s, most_bytes in TRACES[: 1 if quick else None]:
        try:
            with _cache() as env:
                made = _job(env, "trace", reference)
        except Failed as reason:
            yield Figure(group="trace", name=title, unit="s", value=None, note=str(reason))
            continue
        yield Figure(group="trace", name=title, unit="s", value=made["wall_s"], target=most_s)
        peak = made["peak_bytes"] / 1e6
        most = most_bytes and most_bytes / 1e6
        yield Figure(
            group="trace", name=f"{title}: peak memory", unit="MB", value=peak, target=most
        )


def compiles(quick: bool) -> Iterator[Figure]:
    """One exact compile of ResNet-50 per family: the whole job, and XLA's own part of it."""
    with _cache() as env:
        made_for: set[str] = set()
        for family in all_families():
            if quick and family.slug != QUICK_FAMILY:
                continue
            name = f"ResNet-50 for {family.slug}"
            if not family.supported:
                yield Figure(group="compile", name=name, unit="s", value=None, note=family.reason)
                continue
            try:
                made = _job(env, "compile", RESNET, family.slug)
            except Failed as reason:
                yield Figure(group="compile", name=name, unit="s", value=None, note=str(reason))
                continue
            yield from _compile_figures(name, family.slug, made, made_for)


GROUPS: Mapping[str, Callable[[bool], Iterator[Figure]]] = {
    "startup": startup,
    "trace": traces,
    "compile": compiles,
    "advise": advice,
    "explain": explained,
    "fit": overhead,
    "fit-jax": overhead_on_jax,
    "replicas": replicas,
    "look": looking,
    "again": compile_once,
}


def _compile_figures(
    name: str, slug: str, made: dict[str, Any], made_for: set[str]
) -> Iterator[Figure]:
    if made["xla_s"] is None or made["served_by"] in made_for:
        note = f"the program made for {made['served_by']} serves it"
        yield Figure(group="compile", name=name, unit="s", value=made["wall_s"], note=note)
        return
    made_for.add(made["served_by"])
    note = f"{made['kernels']} kernels"
    yield Figure(group="compile", name=name, unit="s", value=made["wall_s"], note=note)
    yield Figure(group="compile", name=f"{name}: XLA's own part", unit="s", value=made["xla_s"])


def _figure(
    group: str,
    name: str,
    unit: str,
    measure: Callable[[], float],
    *,
    target: float | None = None,
    runs: int = 1,
) -> Figure:
    try:
        value, note = measure(), ""
    except Failed as reason:
        value, note = None, str(reason)
    return Figure(
        group=group, name=name, unit=unit, value=value, target=target, runs=runs, note=note
    )


def _job(env: Mapping[str, str], *words: str) -> dict[str, Any]:
    done = run([sys.executable, "-m", "benchmarks.job", *words], env)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@contextmanager
def _cache() -> Iterator[dict[str, str]]:
    """An empty cache of traces and programs, and modules of this folder for the children."""
    with tempfile.TemporaryDirectory(prefix="tfdyno-bench-") as folder:
        yield {"TFDYNO_CACHE": folder, "PYTHONPATH": "scripts"}
