"""catalog/product_rates: what ships is whole and says where it is from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.gpus import all_gpus
from tfdyno.catalog.product_rates import FILE, product_rates, read_product_rates
from tfdyno.catalog.tables import DATA
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


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
    path = tmp_path / FILE
    path.write_text((DATA / FILE).read_text().replace("\n[law]", "\n[law]\nwaves = 1"))
    with pytest.raises(UsageError, match=FILE) as caught:
        read_product_rates(path)
    assert "waves" in str(caught.value.why)
