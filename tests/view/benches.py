"""Measurements made up with a seed, as a bench would have found them, for tests of its page."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.measurements import ENVIRONMENT, TASK, measurement, run

from tfdyno.core.measure.measurement import BenchRun, Card, CardTelemetry, Measurement, Telemetry
from tfdyno.core.measure.measurement_document import MeasurementReport
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.model.measure.comparison import compare
from tfdyno.model.measure.steady_part import run_medians_s
from tfdyno.model.measure.summary import summary

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import Comparison

COUNT, WARM, STEPS = 60, 8, 4
GPU = replace(
    ENVIRONMENT,
    device="gpu",
    cards=(Card(name="NVIDIA L4", slug="l4", memory_bytes=24 << 30, power_limit_w=72.0,
                graphics_clock_limit_hz=2.04e9, ecc=True),),
    driver="550.54", cuda="12.5", cudnn="9.3", cpu="an 8-core CPU", cpu_count=8,
)  # fmt: skip


def told(one: Measurement) -> MeasurementReport:
    """With what follows from it."""
    return MeasurementReport(
        measurement=one, summary=summary(one), medians_s=run_medians_s(one.runs)
    )


def on_cpu(*, runs: int = 5, level_s: float = 0.052, **changes: object) -> Measurement:
    """Runs with a warm-up of 8 samples and some outliers, no card."""
    made = tuple(_run(order, order, level_s, cards=0) for order in range(runs))
    notes = ("callbacks of the script: ModelCheckpoint", "validation_data")
    task = replace(TASK, title="small_resnet", inputs=("float32[32,32,3]",), notes=notes)
    return replace(measurement([[0.1]]), runs=made, task=task, **changes)  # type: ignore[arg-type]


def on_gpu(*, cards: int = 1, runs: int = 6) -> Measurement:
    """Runs on a card that lowers its clock in the last of them."""
    made = tuple(_run(order, order, 0.021, cards=cards, hot=order == runs - 1)
                 for order in range(runs))  # fmt: skip
    place = replace(GPU, cards=GPU.cards * cards)
    whole = replace(measurement([[0.1]]), runs=made, environment=place)
    return replace(whole, task=replace(TASK, replica_count=cards, samples_per_epoch=50000))


def pair(*, ratio: float = 1.05, runs: int = 6) -> tuple[list[MeasurementReport], Comparison]:
    """A and B, ``ratio`` times slower, whose runs took turns."""
    sides = []
    for side in (0, 1):
        orders = [2 * at + (side if at % 2 == 0 else 1 - side) for at in range(runs)]
        made = tuple(_run(17 * side + at, order, 0.052 * (ratio if side else 1.0), cards=0)
                     for at, order in enumerate(orders))  # fmt: skip
        sides.append(replace(on_cpu(), runs=made, session="s", id=f"{side}" * 12,
                             recipe=Recipe(threads_intra=side)))  # fmt: skip
    return [told(one) for one in sides], compare(*sides)


def _run(seed: int, order: int, level_s: float, *, cards: int, hot: bool = False) -> BenchRun:
    draw = random.Random(seed)
    level_s *= draw.gauss(1.0, 0.006)
    warm = [level_s * (1.0 + 0.9 / (at + 1)) for at in range(WARM)]
    steady = [level_s * (1.0 + abs(draw.gauss(0.0, 0.012))) for _ in range(COUNT)]
    steady[30] *= 2.5
    samples_s = [*warm, *steady]
    base = run(samples_s, order=order, steps_per_sample=(STEPS,) * len(samples_s),
               steady_from=WARM, first_step_s=2.1, import_s=3.0)  # fmt: skip
    ends_s = 5.6 + STEPS * sum(samples_s)
    at_s = tuple(0.5 * at for at in range(1, int(2 * ends_s) + 1))
    return replace(base, telemetry=_telemetry(draw, at_s, cards, hot))


def _telemetry(draw: random.Random, at_s: tuple[float, ...], cards: int, hot: bool) -> Telemetry:
    def noisy(before: float, after: float) -> tuple[float, ...]:
        return tuple((after if t > 5.6 else before) * draw.gauss(1.0, 0.03) for t in at_s)

    def card(index: int) -> CardTelemetry:
        late = [hot and t > 9.0 for t in at_s]
        clock = [(1.4e9 if low else 2.0e9) * draw.gauss(1.0, 0.004) for low in late]
        return CardTelemetry(
            index=index,
            utilisation_ratio=tuple(min(1.0, value) for value in noisy(0.05, 0.93)),
            memory_bytes=tuple(int(value) for value in noisy(1 << 29, 9 << 30)),
            other_memory_bytes=(1 << 28,) * len(at_s),
            power_w=noisy(17.0, 68.0),
            temperature_celsius=tuple(45.0 + 2.0 * min(t, 18.0) for t in at_s),
            graphics_clock_hz=tuple(clock),
            memory_clock_hz=(6.25e9,) * len(at_s),
            throttle=tuple(("power_cap",) if low else () for low in late),
        )

    return Telemetry(
        at_s=at_s,
        cpu_ratio=tuple(min(1.0, value) for value in noisy(0.4, 0.85)),
        other_cpu_ratio=tuple(-1 if t == 6.0 else 0.03 for t in at_s),
        memory_bytes=tuple(int(value) for value in noisy(4e8, 1.1e9)),
        disk_read_bytes=tuple(int(9e8 * min(t, 3.0)) for t in at_s),
        disk_write_bytes=tuple(int(2e5 * t) for t in at_s),
        cards=tuple(card(index) for index in range(cards)),
        cost_ratio=0.0021,
    )
