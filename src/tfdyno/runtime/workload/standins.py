"""The data sets of ``keras.datasets`` without a download: zeros of the same size and type.

A step costs the same whatever the values are, and the machine that asks may have no network.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.keras_internals import modules_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Value

TABLE = Path(__file__).parents[1] / "tables" / "keras_datasets.csv"


def stand_in() -> list[str]:
    """Replace ``load_data`` of every data set; returns a list that collects the names in use."""
    used: list[str] = []
    with TABLE.open(newline="") as file:
        for row in csv.DictReader(file):
            name = row["dataset"]
            load = _loader(row, used)
            for module in modules_of(f"datasets.{name}"):
                module.load_data = load
    return used


def _loader(row: dict[str, str], used: list[str]) -> Callable[..., Any]:
    def load_data(*_args: Any, **_options: Any) -> Value:
        if row["dataset"] not in used:
            used.append(row["dataset"])
        train, test = int(row["train_samples"]), int(row["test_samples"])
        return (_part(row, train), _part(row, test))

    return load_data


def _part(row: dict[str, str], samples: int) -> tuple[Any, Any]:
    """Return inputs and targets; the labels go through all classes in turn."""
    import numpy

    if row["x_dtype"] == "tokens":
        x = numpy.empty(samples, dtype=object)
        x[:] = [[1] * int(row["x_shape"])] * samples
    else:
        x = numpy.zeros((samples, *_sizes(row["x_shape"])), row["x_dtype"])
    labels = numpy.arange(samples) % max(1, int(row["classes"]))
    return x, labels.astype(row["y_dtype"]).reshape((samples, *_sizes(row["y_shape"])))


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split("x") if size)
