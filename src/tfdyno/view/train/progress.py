"""The events of a training that runs, read from its lines of progress and put in words."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.units import HOUR_S, format_bytes, significant
from tfdyno.words.base.amounts import short_hours
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Mapping

_KNOWN = frozenset((
    "event", "epoch", "epochs", "step", "steps", "seconds", "samples_per_s", "mfu", "eta_s",
    "memory_bytes", "model", "samples_per_step", "metrics", "xla",
))  # fmt: skip
_MOST_METRICS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainEvent:
    """A training at one moment; 0 and None mean that something is not known."""

    kind: str
    """``begin``, ``steps`` or ``epoch``."""
    epoch: int = 1
    """Counted from 1."""
    epochs: int = 1
    step: int = 0
    """The step of this epoch."""
    steps: int = 0
    """The steps of a whole epoch."""
    metrics: dict[str, float | None] = field(default_factory=dict)
    """None: not a number."""
    samples_per_s: float | None = None
    mfu_ratio: float | None = None
    eta_s: float | None = None
    memory_bytes: int = 0


def read_event(line: str) -> TrainEvent | None:
    """Return the event in a line of progress; None where the line is the name of a stage."""
    if not line.startswith("{"):
        return None
    try:
        raw: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    if not isinstance(raw, dict) or "event" not in raw:
        return None
    told = raw.get("metrics") or {k: v for k, v in raw.items() if k not in _KNOWN}
    return TrainEvent(
        kind=str(raw["event"]),
        epoch=int(raw.get("epoch") or 1),
        epochs=int(raw.get("epochs") or 1),
        step=int(raw.get("step") or 0),
        steps=int(raw.get("steps") or 0),
        metrics={str(name): value for name, value in told.items() if _is_metric(value)},
        samples_per_s=raw.get("samples_per_s"),
        mfu_ratio=raw.get("mfu"),
        eta_s=raw.get("eta_s"),
        memory_bytes=int(raw.get("memory_bytes") or 0),
    )


def _is_metric(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def place_words(event: TrainEvent) -> str:
    """Write ``epoch 2/10``."""
    return say("epoch {epoch}/{epochs}", epoch=event.epoch, epochs=event.epochs)


def step_words(event: TrainEvent) -> str:
    """Write ``120/500``, or ``120`` where nobody knows how many there are."""
    return f"{event.step:,}/{event.steps:,}" if event.steps else f"{event.step:,}"


def metric_words(event: TrainEvent) -> str:
    """Write ``loss 0.312  accuracy 0.91``: the loss first, and not more than fit a line."""
    return "  ".join(named_metrics(event.metrics)[:_MOST_METRICS])


def named_metrics(metrics: Mapping[str, float | None]) -> list[str]:
    """Write ``loss 0.312``, ``accuracy 0.91``: the loss first, those of the validation last."""
    names = sorted(metrics, key=lambda name: (name.startswith("val_"), name != "loss"))
    return [f"{name} {_number(metrics[name])}" for name in names]


def speed_words(event: TrainEvent) -> str:
    """Write ``812 samples/s  MFU 31 %  1.2 GiB``; what is not known is left out."""
    parts = []
    if event.samples_per_s:
        parts.append(say("{rate} samples/s", rate=significant(event.samples_per_s)))
    if event.mfu_ratio is not None:
        parts.append(f"MFU {event.mfu_ratio:.0%}")
    if event.memory_bytes:
        parts.append(format_bytes(event.memory_bytes))
    return "  ".join(parts)


def eta_words(event: TrainEvent) -> str:
    """Write ``ETA 12 min``; empty where it is not known."""
    return say("ETA {time}", time=short_hours(event.eta_s / HOUR_S)) if event.eta_s else ""


def line_words(event: TrainEvent) -> str:
    """Return all of it in one line."""
    at = "" if event.kind == "epoch" else step_words(event)
    parts = (place_words(event), at, metric_words(event), speed_words(event), eta_words(event))
    return "  ".join(filter(None, parts))


def _number(value: float | None) -> str:
    return "NaN" if value is None or math.isnan(value) else significant(value, 4)
