from __future__ import annotations

import math

import pytest
from tests.model.time.calibrate.test_constants import CARD, MODEL, priced
from tests.swept import card_file, loop, product

from tfdyno.core.choose.card_file import Condition, Pace
from tfdyno.core.choose.explanation import Width
from tfdyno.model.time.calibrate.constants import program_of
from tfdyno.model.time.calibrate.steps import (
    CPU_LOG_WIDTH,
    SEEN_LOG_WIDTH,
    THIN_LOG_WIDTH,
    load_log_width,
    step_on_cpus,
    swept_width,
    with_sweep,
)

PLAIN = Width(bucket="kernels/default", log_half_width_ratio=0.457, groups=56, reasons=())
SWEPT = card_file(*priced(loop(2**26, 1.0), loop(2**27, 1.0)), card=CARD.slug)


def test_a_step_on_processors_is_the_sum_of_its_kernels_and_a_call() -> None:
    rows = (loop(2**16, 5e-5), loop(2**20, 8e-4), product(512, 3e-3))
    card = card_file(*rows, pace=Pace(call_s=1e-4, beside_step_s=2e-3))
    step, causes = step_on_cpus(program_of(rows), 1.0, card, train=False)
    assert step.step_s[0] == pytest.approx(5e-5 + 8e-4 + 3e-3 + 1e-4, rel=0.03)
    trained, _ = step_on_cpus(program_of(rows), 1.0, card, train=True)
    assert trained.step_s[0] - step.step_s[0] == pytest.approx(2e-3)
    assert float(causes.compute_s[2]) > 2.9e-3
    assert float(causes.compute_s[0]) == 0.0


def test_a_swept_card_has_a_narrower_range_but_never_below_the_laws_own_error() -> None:
    model = with_sweep(MODEL, CARD, SWEPT, same_software=True)
    assert model.swept is not None
    found = swept_width(PLAIN, program_of(SWEPT.kernels), 1.0, CARD, model.swept, object())
    assert SEEN_LOG_WIDTH < found.log_half_width_ratio < PLAIN.log_half_width_ratio
    assert "2026-11-26 (TensorFlow 2.21.0)" in found.reasons[0]


def test_other_software_keeps_half_of_the_squared_range() -> None:
    same = with_sweep(MODEL, CARD, SWEPT, same_software=True).swept
    other = with_sweep(MODEL, CARD, SWEPT, same_software=False).swept
    assert same
    assert other
    program = program_of(SWEPT.kernels)
    found = swept_width(PLAIN, program, 1.0, CARD, other, object())
    silicon = other.log_width_ratio
    assert found.log_half_width_ratio == pytest.approx(math.sqrt((silicon**2 + 0.457**2) / 2))
    assert "its silicon alone" in other.words


def test_the_law_of_older_software_keeps_its_range() -> None:
    swept = with_sweep(MODEL, CARD, SWEPT, same_software=True).swept
    assert swept_width(PLAIN, program_of(SWEPT.kernels), 1.0, CARD, swept, None) is PLAIN


def test_without_a_sweep_nothing_changes() -> None:
    assert swept_width(PLAIN, program_of(SWEPT.kernels), 1.0, CARD, None, object()) is PLAIN


def test_a_sweep_with_few_windows_has_a_wider_range() -> None:
    thin = card_file(loop(4096, 1e-6, windows=3), loop(1, 1e-6, windows=4), loop(2, 1e-6))
    swept = with_sweep(MODEL, CARD, thin, same_software=True).swept
    assert swept
    assert swept.log_width_ratio == pytest.approx(math.hypot(CPU_LOG_WIDTH, THIN_LOG_WIDTH))


def test_load_of_others_widens_the_range() -> None:
    # Half of the processors taken: a step may be twice as fast, half of log 2 either way.
    assert load_log_width(0.5, 8) == pytest.approx(0.5 * math.log(2))
    assert load_log_width(0.0, 8) == 0.0
    assert load_log_width(1.0, 8) == pytest.approx(0.5 * math.log(8))  # no more than there are
    assert load_log_width(0.9, 1) == 0.0  # one processor is had or not: its work is known
    busy = card_file(loop(4096, 1e-6), condition=Condition(other_cpu_ratio=0.5))
    swept = with_sweep(MODEL, CARD, busy, same_software=True).swept
    assert swept
    assert swept.log_width_ratio == pytest.approx(math.hypot(CPU_LOG_WIDTH, 0.5 * math.log(2)))
