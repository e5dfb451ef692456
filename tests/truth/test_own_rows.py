from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno_truth.make_records import FOLDER, workload_of
from tfdyno_truth.own_rows import STEPS, OwnStep, own_rows, own_steps
from tfdyno_truth.records import path_of, read_record
from tfdyno_truth.rows import TABLES, TRUTH, Row, read_rows

if TYPE_CHECKING:
    from pathlib import Path


@lru_cache(maxsize=1)
def steps() -> tuple[tuple[Row, OwnStep], ...]:
    return tuple(own_steps())


def damaged(folder: Path, text: str) -> str:
    """What is said about a file whose third line is ``text``."""
    good = STEPS.read_text().splitlines()[:2]
    path = folder / "steps.jsonl"
    path.write_text("\n".join([*good, text]) + "\n")
    with pytest.raises(UsageError) as caught:
        own_rows(path)
    assert str(caught.value).startswith(f"{path}, line 3")
    return str(caught.value)


def changed(**values: object) -> str:
    return json.dumps({**json.loads(STEPS.read_text().splitlines()[0]), **values})


def test_a_measured_step_becomes_a_row_of_its_own_table() -> None:
    row, step = steps()[0]  # ResNet-50, H200, batch 64, XLA
    assert (row.table, row.slug, row.batch_size) == ("own", "h200-sxm-141gb", 64)
    assert (row.framework, row.engine, row.version) == ("tensorflow", "tensorflow", "2.21.0")
    assert (row.execution, row.precision, row.mode) == ("xla", "mixed_float16", "train")
    assert row.step_s == pytest.approx(12.3633e-3)
    assert (row.memory_bytes, row.memory_kind) == (3_280_800_768.0, "allocated")
    assert (step.first_step_s, step.process_bytes) == (72.6, 10_332_667_904)


def test_every_measured_step_has_a_record_of_todays_keras() -> None:
    for row, _ in steps():
        assert row.record[0] == f"today.{row.function}"
        assert path_of(FOLDER, row.record).exists()
        assert workload_of(row.record).reference == f"{TRUTH / 'zoo_today.py'}:{row.function}"


def test_a_record_has_the_parameters_of_the_model_that_was_measured() -> None:
    for row, step in steps():
        record = read_record(FOLDER, row.record)
        assert record
        # Statistics of batch normalisation are not trained: 0.05 of 25.61 million in ResNet-50.
        assert record.trainable_parameter_count == pytest.approx(step.params_m * 1e6, rel=0.01)


def test_keras_itself_passes_twice_over_the_data_for_its_statistics() -> None:
    key = ("resnet50_224", "train", "mixed_float16")
    once, twice = (read_record(FOLDER, (f"{zoo}{key[0]}", *key[1:])) for zoo in ("", "today."))
    assert once
    assert twice
    assert len(twice.per_op.kernels) > len(once.per_op.kernels)


def test_numbers_are_unique_over_all_tables() -> None:
    rows = [*read_rows(tables=tuple(TABLES)), *own_rows()]
    assert len({row.number for row in rows}) == len(rows)


def test_keys_of_later_measurements_do_not_disturb(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_text(changed(trace_s=1.5) + "\n\n")
    (row,) = own_rows(path)
    assert row.function == "resnet50_224"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model": "resnet51"}, "no builder 'resnet51'"),
        ({"gpu": "NVIDIA H300"}, "H300"),
        ({"precision": "fp8"}, "precision"),
        ({"execution": "eager"}, "execution"),
        ({"batch": 0}, "batch"),
        ({"batch": "64"}, "batch"),
        ({"step_ms": -1.0}, "step_ms"),
        ({"step_ms": 50.0}, "outside its window_ms"),
        ({"window_ms": []}, "window_ms"),
        ({"peak_bytes": 1}, "below current_bytes"),
    ],
)
def test_a_row_that_cannot_be_is_named_with_its_line(
    values: dict[str, object], said: str, tmp_path: Path
) -> None:
    assert said in damaged(tmp_path, changed(**values))


@pytest.mark.parametrize("text", ["{", "[1]", '{"model": "mlp"}', '{"batch": NaN}'])
def test_a_damaged_line_is_named(text: str, tmp_path: Path) -> None:
    assert "is not a measured step" in damaged(tmp_path, text)
