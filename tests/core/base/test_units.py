from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base import units
from tfdyno.core.base.errors import UsageError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (24 * 1024**3, "24 GiB"),
        (81157 * 1024**2, "79.3 GiB"),
        (1536, "1.50 KiB"),
    ],
)
def test_bytes_are_printed_in_binary_units(value: float, text: str) -> None:
    assert units.format_bytes(value) == text


def test_rates_have_a_decimal_prefix() -> None:
    assert units.format_si(311.9e12, "FLOP/s") == "312 TFLOP/s"
    assert units.format_si(2.039e12, "B/s") == "2.04 TB/s"


@pytest.mark.parametrize(
    ("text", "value"),
    [("24 GiB", 24 * 1024**3), ("24GB", 24e9), ("512M", 512e6), ("1,000", 1000), ("1.5kb", 1500)],
)
def test_memory_is_read_as_written(text: str, value: float) -> None:
    assert units.parse_bytes(text) == value


@pytest.mark.parametrize("text", ["", "GB", "24 apples", "--1", "nan", "inf", "1x", "$"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        units.parse_bytes(text)


@given(st.floats(min_value=1, max_value=1e15))
def test_printed_bytes_read_back_within_half_a_percent(value: float) -> None:
    assert units.parse_bytes(units.format_bytes(value)) == pytest.approx(value, rel=0.0051)


@given(st.floats(min_value=-1e12, max_value=1e12), st.integers(1, 6))
def test_significant_digits_are_kept(value: float, digits: int) -> None:
    text = units.significant(value, digits)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits))
