"""Counters and histograms in the text form of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SECONDS = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0,
)  # fmt: skip
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
Labels = tuple[tuple[str, str], ...]


class Counter:
    """A number by labels that only grows."""

    def __init__(self) -> None:
        self._values: dict[Labels, float] = {}

    def add(self, amount: float = 1, **labels: str) -> None:
        """Add to the number of these labels."""
        key = tuple(labels.items())
        self._values[key] = self._values.get(key, 0) + amount

    def lines(self, name: str) -> list[str]:
        """Return the samples as text."""
        return [f"{name}{told(key)} {value:.15g}" for key, value in self._values.items()]


class Histogram:
    """How many values were at most each bound, by labels."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def add(self, value: float, **labels: str) -> None:
        """Count one value."""
        key = tuple(labels.items())
        if key not in self._counts:
            self._counts[key], self._sums[key] = [0] * (len(self._bounds) + 1), 0.0
        self._counts[key][bisect_left(self._bounds, value)] += 1
        self._sums[key] += value

    def lines(self, name: str) -> list[str]:
        """Return the samples as text: cumulated buckets, sum and count."""
        lines = []
        for key, counts in self._counts.items():
            seen = 0
            for bound, count in zip((*self._bounds, "+Inf"), counts, strict=True):
                seen += count
                lines.append(f"{name}_bucket{told((*key, ('le', f'{bound}')))} {seen}")
            lines.append(f"{name}_sum{told(key)} {self._sums[key]:.15g}")
            lines.append(f"{name}_count{told(key)} {seen}")
        return lines


def told(labels: Labels) -> str:
    """Return labels in braces, escaped."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class FrontMetrics:
    """All that the front counts; ``gauges`` are asked when the page is."""

    def __init__(self) -> None:
        self.requests, self.refused, self.rows = Counter(), Counter(), Counter()
        self.seconds, self.batch_rows = Histogram(SECONDS), Histogram(ROWS)
        self.call_seconds = Histogram(SECONDS)
        self.gauges: dict[str, tuple[str, Callable[[], Mapping[Labels, float]]]] = {}

    def page(self) -> str:
        """Return the text of ``/metrics``."""
        counted: list[tuple[str, str, str, Counter | Histogram]] = [
            ("tfdyno_requests_total", "counter", "Requests by route and status.", self.requests),
            ("tfdyno_refused_total", "counter", "Requests refused, by status.", self.refused),
            ("tfdyno_rows_total", "counter", "Rows computed, by model and version.", self.rows),
            ("tfdyno_request_seconds", "histogram", "Time to answer, by route.", self.seconds),
            ("tfdyno_batch_rows", "histogram", "Rows of one call to the model.", self.batch_rows),
            ("tfdyno_call_seconds", "histogram", "Time of one call to the model.",
             self.call_seconds),
        ]  # fmt: skip
        lines: list[str] = []
        for name, kind, text, metric in counted:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *metric.lines(name)]
        for name, (text, ask) in self.gauges.items():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
            lines += [f"{name}{told(key)} {value:.15g}" for key, value in ask().items()]
        return "\n".join(lines) + "\n"
