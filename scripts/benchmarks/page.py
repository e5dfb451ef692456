"""Figures -> ``performance.json``, and from it ``performance.md``."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import tfdyno
from benchmarks.figure import Figure
from tfdyno.core.base.codec import from_builtins, to_builtins, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PACKAGES = ("keras", "jax", "jaxlib", "jax-cuda12-pjrt", "tensorflow-cpu", "tensorflow")
HEADINGS = {
    "startup": (
        "Start-up",
        "CPU time (user and system) of the whole process, median: what the machine does besides "
        "does not count. *Over python -c pass*: the least of each, in turns.",
    ),
    "trace": (
        "Trace",
        "One train step from nothing, quick program included: seconds on the clock, Python's and "
        "the framework's start included; memory is the most that the child process held.",
    ),
    "compile": (
        "Exact compile",
        "ResNet-50, mixed_float16, marker batch, for one GPU family without a GPU: seconds of the "
        "whole job (start of the child, XLA, reading what it made), then XLA alone.",
    ),
    "advise": (
        "Advise",
        "`tfdyno advise keras:ResNet50 --batch-size 64 --precision mixed_float16 --epochs 90 "
        "--samples 1281167`, and of a script of 180 lines (MobileNetV2, `tests/data/scripts/"
        "photos.py`): seconds on the clock from the start of the command to the first words of "
        "its answer, and to its end, standard output being no terminal. First with an empty "
        "cache; *again* is the same once more. *Before* is a former version, asked in turns "
        "(`--former COMMIT`); medians.",
    ),
    "explain": (
        "Explain a log",
        "`tfdyno doctor --explain LOG`: size of the log by the CPU time of the whole process, one "
        "core; memory is the most that the process held. The target of a speed is the least.",
    ),
    "fit": (
        "Train on one device",
        "How much longer a step of `tfdyno train` takes than one of Keras' own `fit`, as a graph: "
        "both train the same model in one process, in turns of some 20 ms, so that what disturbs "
        "the machine meets both. Median of turn beside turn over the epochs, with its 95 % "
        "interval; the first epoch, in which the step is built, and the turns in which an epoch "
        "ends do not count. *Keras beside itself* is a second `fit` in the same ring: it should "
        "be 0. The tiny MLP is the worst case, for nothing hides what is done between its steps.",
    ),
    "fit-jax": (
        "Train on one device, on JAX",
        "The same for `tfdyno train --backend jax` beside plain Keras on JAX. Without a callback "
        "for batches Keras lets several steps be under way there, so the turns are epochs of some "
        "0.4 s, from their first batch to the loss that is read at their end; no checkpoints. CPU "
        "time of the process: what the machine does besides does not count. Median of an epoch "
        "beside those next to it, with its 95 % interval; the first three epochs do not count.",
    ),
    "replicas": (
        "Train on two replicas",
        "How many times as fast a step of `tfdyno train` is as one of Keras' own `fit` under "
        "MirroredStrategy, both on two logical devices of one CPU, measured in the same way. Two "
        "replicas share the cores of one here, and what they exchange never leaves the memory: "
        "what this shows is the work of the host for a step, and what XLA saves on a CPU. Only "
        "several GPUs will show what counts there: kernels that XLA fuses, launches that it "
        "saves, and gradients exchanged while others are still computed.",
    ),
    "again": (
        "Start again",
        "What compiled programs that are kept save: a training of one step in a process of its "
        "own with an empty cache, then the next process with what the first kept. Ratios of the "
        "second to the first by CPU time, which other work on the machine changes least; their "
        "median over the pairs. *XLA* is its own part, from the graph in XLA's form to a program "
        "that can run, by TensorFlow's log and JAX's monitoring; the whole first step has what is "
        "done anew in each process as well: Keras' and TensorFlow's tracing, and the way into "
        "XLA's form. On a CPU, where XLA tries out nothing.",
    ),
    "look": (
        "Diagnose",
        "How much longer a step takes while `tfdyno diagnose` looks at it, by a callback of the "
        "training's own: trainings in turns in one process, plain and looked at, A B B A. Each "
        "round gives a ratio; their median, with its 95 % interval. What a whole diagnosis takes "
        "is on "
        "[the page of the suite](bottlenecks.md).",
    ),
}


def document(figures: Iterable[Figure], earlier: dict[str, Any]) -> dict[str, Any]:
    """The JSON document: figures by group, each group with its date and the load at that time.

    Groups that were not measured now are kept from ``earlier`` if machine and versions are the
    same.
    """
    machine, versions = _machine(), _versions()
    same = (earlier.get("machine"), earlier.get("versions")) == (machine, versions)
    groups: dict[str, Any] = dict(earlier.get("groups", {})) if same else {}
    measured: dict[str, list[Figure]] = {}
    for figure in figures:
        measured.setdefault(figure.group, []).append(figure)
    for name, rows in measured.items():
        groups[name] = {
            "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "load_average": round(os.getloadavg()[1], 1),
            "figures": to_builtins(rows),
        }
    return {"machine": machine, "versions": versions, "groups": groups}


def page(made: dict[str, Any]) -> str:
    """The Markdown of a document."""
    lines = [
        "# Performance",
        "<!-- Generated by scripts/bench: measure again, do not change this page. -->",
        "What tfdyno itself costs. Targets are upper limits; a figure without one is for "
        "information.",
        f"Machine: {made['machine']}. No GPU.",
        "Versions: " + ", ".join(f"{k} {v}" for k, v in made["versions"].items()) + ".",
    ]
    for name, (title, text) in HEADINGS.items():
        if group := made["groups"].get(name):
            load = f"load average {group['load_average']} over the last five minutes"
            rows = [
                from_builtins(row, Figure, where="performance.json") for row in group["figures"]
            ]
            lines += [f"## {title}", text, f"Measured {group['measured']}; {load}.", _table(rows)]
    return "\n\n".join(lines) + "\n"


def write(folder: Path, made: dict[str, Any]) -> None:
    """Write both files, each whole or not at all."""
    for name, data in (
        ("performance.json", to_json(made)),
        ("performance.md", page(made).encode()),
    ):
        part = folder / f".{name}.part"
        part.write_bytes(data)
        part.replace(folder / name)


def _table(figures: Iterable[Figure]) -> str:
    rows = list(figures)
    has_former = any(row.former is not None for row in rows)
    more, line = (" before |", " --: |") if has_former else ("", "")
    head = [
        f"| what | measured |{more} target | met | runs | note |",
        f"| --- | --: |{line} --: | --- | --: | --- |",
    ]
    return "\n".join([*head, *(_line(row, has_former=has_former) for row in rows)])


def _line(figure: Figure, *, has_former: bool) -> str:
    met = {None: "", True: "yes", False: "no"}[figure.is_met]
    note = figure.note.replace("|", "\\|")
    if figure.value is None:
        note = f"not measured: {note}"
    value, target = _amount(figure.value, figure.unit), _amount(figure.target, figure.unit)
    former = f" {_amount(figure.former, figure.unit)} |" if has_former else ""
    return f"| {figure.name} | {value} |{former} {target} | {met} | {figure.runs} | {note} |"


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    digits = 0 if value >= 100 or unit in ("ms", "MB") else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores ({platform.machine()}), {memory:.0f} GiB of memory, {platform.system()}, "
        f"Python {platform.python_version()}"
    )


def _versions() -> dict[str, str]:
    found = {"tfdyno": tfdyno.__version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
