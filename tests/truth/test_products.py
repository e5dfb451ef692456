"""What measured matrix products teach, and what ships of it."""

from __future__ import annotations

import functools
import tomllib

import numpy as np
import pytest

from tfdyno.catalog.gpus import find
from tfdyno.catalog.tables import DATA
from tfdyno.catalog.time_model import PRODUCTS_FILE, product_rates
from tfdyno_truth import product_report
from tfdyno_truth.main import main
from tfdyno_truth.product_rows import bench_memory_s, card, read_attention, read_products
from tfdyno_truth.product_scores import Reached, generation_of, mean_of
from tfdyno_truth.products import AllProducts, all_products, fit_half, predict_products
from tfdyno_truth.sections import markdown

LAW = product_rates().law


@functools.cache
def judged() -> AllProducts:
    return all_products(product_rates())


def test_every_card_has_the_same_shapes_in_the_same_order() -> None:
    ours = [one.products for (_, dtype), one in read_products().items() if dtype == "bf16"]
    assert len(ours) == 9
    for one in ours:
        assert np.array_equal(one.m, ours[0].m)
        assert np.array_equal(one.n, ours[0].n)
        assert np.array_equal(one.k, ours[0].k)


def test_products_that_the_fit_has_not_seen_are_met_within_8_per_cent_on_every_card() -> None:
    held_out = judged().half.held_out
    assert len(held_out) == 9
    assert max(one.median for one in held_out.values()) <= 0.08
    # Four draws of half of the shapes.
    assert {one.kernels for one in held_out.values()} == {4 * 1129}


def test_leaving_more_out_errs_more() -> None:
    half = judged().half
    seen, unseen, apart = (
        np.mean([one.median for one in each.values()])
        for each in (half.held_out, half.card_out, half.generation_out)
    )
    assert seen < unseen < apart < 0.1


def test_attention_of_shapes_that_the_fit_has_not_seen_is_met_within_a_fifth() -> None:
    held_out = judged().attention.held_out
    assert set(held_out) == set(read_attention())
    assert max(one.median for one in held_out.values()) < 0.2


def test_what_ships_is_what_the_command_writes() -> None:
    written = tomllib.loads(
        product_report.text_of(product_rates(), product_report.rows_of(judged()))
    )
    shipped = tomllib.loads((DATA / PRODUCTS_FILE).read_text())
    assert written["law"] == shipped["law"]
    assert written["attention"] == shipped["attention"]
    for one, other in zip(written["rates"], shipped["rates"], strict=True):
        numbers = {name for name, value in one.items() if isinstance(value, float)}
        # A solver may end elsewhere in the last digit.
        assert {name: one[name] for name in numbers} == pytest.approx(
            {name: other[name] for name in numbers}, rel=0.02
        )
        assert {k: v for k, v in one.items() if k not in numbers} == {
            k: v for k, v in other.items() if k not in numbers
        }


def test_a_fit_finds_the_constants_that_made_the_seconds() -> None:
    one = read_products()["h100-sxm5-80gb", "bf16"].take(np.arange(0, 2258, 20))
    true = Reached(floor_s=4e-6, peak_ratio=0.6, bandwidth_ratio=0.9)
    made = type(one)(
        gpu=one.gpu,
        dtype=one.dtype,
        products=one.products,
        seconds=predict_products(one, true, LAW),
    )
    found = fit_half([made], LAW)
    assert found.floor_s == pytest.approx(4e-6, rel=1e-3)
    assert found.peak_ratio == pytest.approx(0.6, rel=1e-3)
    assert found.bandwidth_ratio == pytest.approx(0.9, rel=1e-3)


def test_weights_that_stay_in_the_cache_are_the_benchmarks_own() -> None:
    one = read_products()["l40s", "bf16"]
    products = one.products
    factors = (products.m + products.n) * products.k
    moved = products.batch * 2.0 * (factors + products.m * products.n)
    seconds = bench_memory_s(one, 0.8)
    cold = moved / (0.8 * one.gpu.memory_bytes_per_s)
    beyond = 2.0 * (products.m * products.k + products.n * products.k) > one.gpu.l2_bytes
    assert seconds[beyond] == pytest.approx(cold[beyond])
    small = np.argmin(moved)
    # 6.4 bytes per clock and SM: 142 x 2.52 GHz x 6.4 = 2,290 GB/s instead of 691.
    assert cold[small] / seconds[small] == pytest.approx(2290 / 691, rel=0.01)


def test_the_mean_counts_every_generation_once() -> None:
    one = Reached(floor_s=1e-6, peak_ratio=0.4, bandwidth_ratio=0.5)
    other = Reached(floor_s=4e-6, peak_ratio=0.9, bandwidth_ratio=0.5)
    found = mean_of([one, other])
    assert (found.floor_s, found.peak_ratio) == pytest.approx((2e-6, 0.6))


def test_the_card_outside_the_catalogue_is_of_the_generation_of_its_chips() -> None:
    assert generation_of(card("gb300")) == generation_of(find("b300-sxm-270gb")) == "Blackwell"


def test_the_page_says_what_was_left_out_and_lists_what_ships() -> None:
    whole = "\n".join(markdown(section) for section in product_report.sections(judged()))
    assert "| l40s | generation left out |" in whole
    assert "no constant has seen any" in whole
    assert "| cuda | others |" in whole
    assert "### Fused attention" in whole


def test_the_check_prints_every_card_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["products", "--check"]) == 0
    out, err = capsys.readouterr()
    assert out.count(": median error ") == 9
    assert err == ""
