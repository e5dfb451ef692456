"""Measured all-reduces against the links of the catalogue."""

from __future__ import annotations

import pytest

from tfdyno_truth.all_reduces import read_all_reduces, section
from tfdyno_truth.sections import markdown

HOPPER_OR_BLACKWELL = ("h100", "h200", "b200", "b300")


def test_links_of_hopper_and_blackwell_meet_what_large_messages_take() -> None:
    found = [one for one in read_all_reduces() if one.gpu.startswith(HOPPER_OR_BLACKWELL)]
    assert {(one.gpu[:4], one.ranks) for one in found} == {
        (gpu, ranks) for gpu in HOPPER_OR_BLACKWELL for ranks in (2, 4, 8)
    }
    for one in found:
        assert abs(one.bias["4 to 64 MiB"]) < 0.10, one
        assert abs(one.bias["above 64 MiB"]) < 0.10, one


def test_small_messages_are_taken_for_slower_than_they_are() -> None:
    found = {(one.gpu, one.ranks): one.bias["below 256 KiB"] for one in read_all_reduces()}
    # 2 x 7 hops of 3.4 us for 16 to 20 us.
    assert found["h100-sxm5-80gb", 8] == pytest.approx(1.9, abs=0.2)


def test_the_page_says_what_each_link_errs_by() -> None:
    told = markdown(section("a source"))
    assert "| h100-sxm5-80gb | 2 | nvlink4-nvswitch-h100-2 |" in told
    assert "gb300" not in told
