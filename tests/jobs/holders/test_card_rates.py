"""What the cards of this machine can do at most, by the catalogue."""

from __future__ import annotations

from tests.jobs.holders.test_found_cards import Mixed
from tests.probe.fake_nvml import on

from tfdyno.catalog.gpus import find
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.holders.card_rates import BYTES_PER_S, card_peaks, card_rates
from tfdyno.jobs.holders.found_cards import found_cards
from tfdyno.model.time.peaks import peak_flops_per_s


def test_each_card_has_the_peak_of_each_dtype_and_its_memory_rate() -> None:
    slugs = [one.gpu.slug for one in on(Mixed(), found_cards)]
    rates = on(Mixed(), card_rates, Recipe(), None)
    assert set(rates) == {"float32", "float16", "bfloat16", BYTES_PER_S}
    assert rates["float16"] == [peak_flops_per_s(find(slug), "fp16_tensor") for slug in slugs]
    assert rates[BYTES_PER_S] == [find(slug).memory_bytes_per_s for slug in slugs]


def test_strict_float32_has_no_tensor_cores() -> None:
    strict = on(Mixed(), card_peaks, Recipe(precision="float32"), None)
    usual = on(Mixed(), card_peaks, Recipe(), None)
    slugs = [one.gpu.slug for one in on(Mixed(), found_cards)]
    assert strict["float32"] == [peak_flops_per_s(find(slug), "fp32") for slug in slugs]
    assert any(a < b for a, b in zip(strict["float32"], usual["float32"], strict=True))


def test_without_a_driver_nothing_is_known() -> None:
    assert card_rates(Recipe(), "-1") == {}


def test_a_card_that_the_catalogue_has_not_is_no_failure() -> None:
    class Unknown(Mixed):
        def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
            return b"NVIDIA Unheard-of 1"

    assert on(Unknown(), card_rates, Recipe(), None) == {}
