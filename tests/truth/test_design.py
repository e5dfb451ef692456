from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.truth.test_records import RECORD
from tests.truth.test_rows import a_row

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.settings import EXECUTIONS
from tfdyno.model.time import kernel_time, step
from tfdyno.model.time.kernel_table import KernelTable
from tfdyno.model.time.precision import is_single, tf32_allowed
from tfdyno_truth.design import Design, design_of
from tfdyno_truth.records import program_of, read_record, write_record

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno_truth.rows import Row


def made(rows: list[Row], folder: Path) -> Design:
    for row in rows:
        write_record(folder, row.record, RECORD)
    return design_of(rows, folder, time_model().sustained_clock)


def alone(row: Row, folder: Path) -> float:
    """Seconds of one row as the product works them out."""
    record = read_record(folder, row.record, row.precision)
    assert record
    table = KernelTable.of(program_of(record, row.execution, row.accumulation))
    model = time_model()
    cards = kernel_time.targets(
        [(find(row.slug), tf32_allowed(row.precision))], model.sustained_clock
    )
    how = step.factors(
        step.Setting(
            execution=row.execution, mode=row.mode, fused_optimizer=not is_single(row.precision)
        ),
        model,
    )
    priced = kernel_time.rates(table.classes, cards, model)
    found = step.step_time(table.work(row.batch_size), table.classes, priced, how, model)
    return float(found.step_s[0])


@pytest.mark.parametrize("precision", ["float32", "tf32", "mixed_float16", "mixed_bfloat16"])
def test_all_rows_at_once_are_predicted_as_each_alone(precision: str, tmp_path: Path) -> None:
    rows = [
        a_row(execution=execution, precision=precision, slug=slug, accumulation=steps)
        for execution in EXECUTIONS
        for slug in ("t4", "a100-sxm4-40gb")
        for steps in (1, 4)
    ]
    design = made(rows, tmp_path)
    expected = [alone(row, tmp_path) for row in rows]
    assert design.predict(time_model()) == pytest.approx(expected)
    assert np.exp(design.log_step) == pytest.approx([row.step_s for row in rows])


def test_rows_of_one_model_ask_for_the_work_of_their_own_execution(tmp_path: Path) -> None:
    base = a_row(precision="mixed_float16")
    rows = [replace(base, execution=execution) for execution in ("xla", "graph", "eager-torch")]
    launches = made(rows, tmp_path).work.launches.sum(axis=1)
    assert launches.tolist() == [2.0, 4.0, 4.0]


def test_accumulated_steps_are_another_kind_of_run(tmp_path: Path) -> None:
    base = a_row(precision="mixed_float16", execution="graph")
    rows = [base, replace(base, accumulation=4)]
    design = made(rows, tmp_path)
    assert design.work.launches.sum(axis=1).tolist() == [4.0, 3.0]  # its optimizer rounds to none
    assert design.predict(time_model())[1] < design.predict(time_model())[0]


def test_a_row_without_a_record_is_left_out(tmp_path: Path) -> None:
    known, unknown = a_row(), a_row(function="never_traced")
    write_record(tmp_path, known.record, RECORD)
    assert design_of([unknown, known], tmp_path, {}).rows == (known,)
