"""Recipe, environment and raw samples of one or two measurements as tables."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, format_si, significant
from tfdyno.core.measure.measurement import Card, Environment
from tfdyno.core.recipe.composition import is_trainer_only
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.view.bench.runs import shown_runs
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.recipe.settings import value_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.measure.measurement_document import MeasurementReport
    from tfdyno.view.bench.runs import ShownRun

_TITLES = {
    "reference": say_later("Reference"),
    "title": say_later("Title"),
    "mode": say_later("Mode"),
    "parameter_count": say_later("Parameter count"),
    "inputs": say_later("Inputs"),
    "loss": say_later("Loss"),
    "optimizer": say_later("Optimizer"),
    "policy": say_later("Policy"),
    "execution": say_later("Execution"),
    "backend": say_later("Backend"),
    "batch_size": say_later("Batch size"),
    "replica_count": say_later("Replica count"),
    "samples_per_epoch": say_later("Samples per epoch"),
    "is_loop": say_later("Is loop"),
    "has_pipeline": say_later("Has a pipeline of tf.data"),
    "data_set": say_later("Data set"),
    "retreats": say_later("Retreats"),
    "protocol_version": say_later("Protocol version"),
    "protocol_data": say_later("Data"),
    "protocol_epochs": say_later("Epochs"),
    "protocol_least_runs": say_later("Runs at least"),
    "protocol_most_runs": say_later("Runs at most"),
    "protocol_least_samples": say_later("Steady samples of a run at least"),
    "protocol_least_s": say_later("Steady state of a run at least"),
    "protocol_most_s": say_later("Steps of a run at most"),
    "protocol_target_ratio": say_later("Interval that ends the runs"),
    "protocol_target_metric": say_later("Protocol target metric"),
    "protocol_target_value": say_later("Protocol target value"),
    "costs": say_later("Costs"),
    "device": say_later("Device"),
    "cards": say_later("Cards"),
    "driver": say_later("Driver"),
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "jax": "JAX",
    "python": "Python",
    "tfdyno": "tfdyno",
    "system": say_later("System"),
    "host": say_later("Host"),
    "container": say_later("Container"),
    "container_image": say_later("Container image"),
    "cpu": "CPU",
    "cpu_count": say_later("CPU count"),
    "memory_bytes": say_later("Memory||of the host"),
    "measured": say_later("Measured"),
    "id": say_later("Result"),
}
"""Of fields of the task, of the protocol and of the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A named value of one measurement, or of both."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the two are not equal."""
        return len(set(self.values)) > 1


def recipe_rows(told: Sequence[MeasurementReport]) -> tuple[Pair, ...]:
    """Return all settings that a bench takes; a default says what it means."""
    return tuple(
        Pair(name=field.name, values=tuple(
            value_words(field.name, getattr(one.measurement.recipe, field.name)).replace("'", "’")
            for one in told))
        for field in dataclasses.fields(Recipe) if not is_trainer_only(field.name)
    )  # fmt: skip


def task_rows(told: Sequence[MeasurementReport]) -> tuple[Pair, ...]:
    """Return what was run and by which protocol; what nobody knows is left out."""
    rows = [
        _row(field.name, [getattr(one.measurement.task, field.name) for one in told])
        for field in dataclasses.fields(told[0].measurement.task)
        if field.name != "notes"
    ]
    rows += [
        _row(f"protocol_{field.name}", [getattr(one.measurement.protocol, field.name)
                                        for one in told])
        for field in dataclasses.fields(told[0].measurement.protocol)
    ]  # fmt: skip
    rows.append(_row("costs", [" ".join(one.costs) for one in told]))
    return _known(rows)


def environment_rows(told: Sequence[MeasurementReport]) -> tuple[Pair, ...]:
    """Return the fingerprint of the machine; what is not known is left out."""
    rows = list(machine_rows([one.measurement.environment for one in told]))
    rows.append(_row("measured", [one.measurement.created_at for one in told]))
    rows.append(_row("id", [one.measurement.id for one in told]))
    return _known(rows)


def machine_rows(environments: Sequence[Environment]) -> tuple[Pair, ...]:
    """Return the fields of one fingerprint, or of two side by side."""
    fields = dataclasses.fields(environments[0])
    return _known([_row(f.name, [getattr(one, f.name) for one in environments]) for f in fields])


def raw_rows(told: Sequence[MeasurementReport]) -> tuple[tuple[str, str, str, str], ...]:
    """Return every sample: run, part of it, steps per sample, milliseconds per step in order."""
    return tuple(row for one in shown_runs(told) for row in _raw(one))


def _raw(one: ShownRun) -> list[tuple[str, str, str, str]]:
    count, excluded = len(one.run.samples_s), set(one.run.excluded)
    parts = (
        (say("warm-up"), [at for at in range(one.start) if at not in excluded]),
        (say("steady") if one.steady else say("second half"),
         [at for at in range(one.start, count) if at not in excluded]),
        (say("first of an epoch"), sorted(excluded)),
    )  # fmt: skip
    return [
        (one.name, part, _steps(one.run.steps_per_sample[at] for at in places),
         " ".join(f"{1e3 * one.run.samples_s[at]:.5g}" for at in places))
        for part, places in parts if places
    ]  # fmt: skip


def _steps(counts: Iterable[int]) -> str:
    found = sorted(set(counts))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,}–{found[-1]:,}"


def _row(name: str, values: Sequence[object]) -> Pair:
    return Pair(name=say(_TITLES[name]), values=tuple(_words(name, value) for value in values))


def _known(rows: Sequence[Pair]) -> tuple[Pair, ...]:
    return tuple(row for row in rows if any(row.values))


def _words(name: str, value: object) -> str:
    """Return a value in words, by the unit that its name ends in; empty where it is not known."""
    if isinstance(value, tuple):
        return ", ".join(_card(one) if isinstance(one, Card) else str(one) for one in value)
    if isinstance(value, bool):
        return named("yes" if value else "no")
    if value in ("", 0, 0.0, None):
        return ""
    if not isinstance(value, int | float):
        return str(value)
    if name.endswith("_bytes"):
        return format_bytes(value)
    if name == "protocol_target_ratio":
        return f"± {significant(100 * value)} %"
    text = f"{value:,}" if isinstance(value, int) else significant(value)
    return f"{text} s" if name.endswith("_s") else text


def _card(card: Card) -> str:
    parts = [card.name]
    if card.memory_bytes:
        parts.append(format_bytes(card.memory_bytes))
    if card.power_limit_w:
        parts.append(f"{significant(card.power_limit_w)} W")
    if card.graphics_clock_limit_hz:
        parts.append(format_si(card.graphics_clock_limit_hz, "Hz"))
    switches = [name for name, on in (("ECC", card.ecc), ("MIG", card.mig)) if on]
    return f"{parts[0]} ({'; '.join([*parts[1:], *switches])})" if parts[1:] else parts[0]
