from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.gpus import all_gpus
from tfdyno.catalog.tables import DATA
from tfdyno.catalog.time_model import (
    PRODUCTS_FILE,
    memory_model,
    product_rates,
    read_product_rates,
    read_time_model,
    time_model,
)
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
version = "1"

[parameters.e_loop]
value = 0.5
prior = 0.5
low = 0.1
high = 1.0
unit = "share"
fitted = true
source = "test"

[sustained_clock]
t4 = { ratio = 0.5, source = "test" }

[intervals]
default = { log_half_width_ratio = 0.3, groups = 12 }
"""


def read(folder: Path, text: str) -> None:
    path = folder / "time_model.toml"
    path.write_text(text)
    read_time_model(path)


def test_every_constant_has_a_source_a_unit_and_lies_in_its_range() -> None:
    for parameter in (*time_model().parameters.values(), *memory_model().parameters.values()):
        assert parameter.source
        assert parameter.unit
        assert parameter.low <= parameter.value <= parameter.high


def test_a_constant_is_found_by_name(tmp_path: Path) -> None:
    read(tmp_path, GOOD)
    assert read_time_model(tmp_path / "time_model.toml")["e_loop"] == 0.5


def test_every_clock_that_is_not_held_has_a_source() -> None:
    model = time_model()
    assert set(model.sustained_clock_source) == set(model.sustained_clock)
    assert all(model.sustained_clock_source.values())


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ("value = 0.5", "value = 1.5", "e_loop"),
        ("value = 0.5", 'value = "high"', "e_loop"),
        ("fitted = true", "fitted = true\nweight = 3", "weight"),
        ("ratio = 0.5", "ratio = 2.0", "sustained_clock.t4"),
        ("default =", "cnn =", "default"),
        ("groups = 12", "groups = 0", "intervals.default"),
        ("_ratio = 0.3", "_ratio = -0.3", "intervals.default"),
        ("[sustained_clock]", "[other]", "wrong tables"),
        ('version = "1"', "version = ", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_by_name(
    tmp_path: Path, wrong: str, right: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read(tmp_path, GOOD.replace(wrong, right))


def test_every_row_has_a_source_and_names_cards_that_exist() -> None:
    known = {f"{gpu.rates.compute_capability} {gpu.rates.variant}" for gpu in all_gpus()}
    for rate in product_rates().rates:
        assert rate.source
        assert set(rate.cards) <= known


def test_measured_rows_err_less_than_what_they_say_of_others() -> None:
    half = [rate for rate in product_rates().rates if rate.unit == "half"]
    (common,) = (rate for rate in half if not rate.cards)
    assert len(half) == 6
    assert all(rate.median_error_ratio < common.median_error_ratio for rate in half if rate.cards)


def test_an_unknown_key_is_told_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / PRODUCTS_FILE
    path.write_text((DATA / PRODUCTS_FILE).read_text().replace("\n[law]", "\n[law]\nwaves = 1"))
    with pytest.raises(UsageError, match=PRODUCTS_FILE) as caught:
        read_product_rates(path)
    assert "waves" in str(caught.value.why)
