"""GPUs are picked by numbers and words of their rows, and come in a natural order."""

from __future__ import annotations

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.lookup.gpus import SORT_KEYS, card, choose

GIB = 1024**3


@pytest.mark.parametrize("text", ["memory>=24GB", "memory >= 24 GiB", "memory>=24"])
def test_the_label_on_a_card_counts_1024(text: str) -> None:
    found = choose([text])
    assert {"rtx-4090", "l4"} <= {gpu.slug for gpu in found}
    assert min(gpu.memory_bytes for gpu in found) == 24 * GIB


def test_every_filter_must_hold() -> None:
    found = choose(["market=datacenter", "cc>=9.0", "memory<100GB"])
    assert "h100-sxm5-80gb" in {gpu.slug for gpu in found}
    for gpu in found:
        assert gpu.market == "datacenter"
        assert float(gpu.compute_capability) >= 9.0
        assert gpu.memory_bytes < 100 * GIB


def test_a_filter_and_its_opposite_share_the_catalogue() -> None:
    everything = {gpu.slug for gpu in choose()}
    with_ecc, without = ({gpu.slug for gpu in choose([f"ecc{sign}yes"])} for sign in ("=", "!="))
    assert with_ecc | without == everything
    assert with_ecc & without == set()


def test_words_must_all_occur() -> None:
    assert choose(["4090 rtx"])[0].slug == "rtx-4090"
    assert all(gpu.rates.tensor_cores > 0 for gpu in choose(["tensor"]))
    assert len(choose(["tensor"])) < len(choose())


def test_names_are_ordered_as_a_person_counts() -> None:
    slugs = [gpu.slug for gpu in choose()]
    for first, then in [("l4", "l20"), ("a40", "a100-pcie-40gb"), ("rtx-a400", "rtx-a1000")]:
        assert slugs.index(first) < slugs.index(then)


@pytest.mark.parametrize("key", SORT_KEYS[1:])
def test_a_number_sorts_the_largest_first(key: str) -> None:
    first, *_, last = choose(sort=key)
    assert choose([f"{key}>=0"], sort=key)[0] == first
    assert first != last


def test_bandwidth_is_in_gigabytes_per_second() -> None:
    a100 = {gpu.slug for gpu in choose(["bandwidth>2000", "bandwidth<2100"])}
    assert "a100-sxm4-80gb" in a100  # 2,039 GB/s


def test_slices_are_listed_only_when_asked_for() -> None:
    assert not any(":" in gpu.slug for gpu in choose())
    assert any(":" in gpu.slug for gpu in choose(["a100"], slices=True))


@pytest.mark.parametrize(
    ("filters", "sort", "said"),
    [
        (["colour=red"], "name", "cannot filter by 'colour=red'; compare one of memory, "),
        (["market>3"], "name", "cannot filter by 'market>3'"),
        (["cc>=new"], "name", "'cc>=new' does not compare with a number"),
        (["memory>=much"], "name", "'much' is not an amount of memory"),
        ([">=24GB"], "name", "'>=24GB' is not a filter; write it like memory>=24GB"),
        ([], "colour", "cannot sort by 'colour'; sort by name, memory, "),
    ],
)
def test_an_unknown_wish_is_told(filters: list[str], sort: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        choose(filters, sort)
    assert str(told.value).startswith(said)


def test_a_card_has_the_figures_that_follow_from_its_row() -> None:
    (gpu,) = [gpu for gpu in choose(["a100 sxm4 80gb"]) if gpu.slug == "a100-sxm4-80gb"]
    found = card(gpu)
    assert found.peak_flops_per_s["fp32"] / 1e12 == pytest.approx(19.5, abs=0.05)
    assert found.warnings["mixed_bfloat16"] == ""
    assert found.tensorflow.gpu == gpu.slug
    assert "a100-sxm4-80gb:3g.40gb" in found.slices


def test_a_card_that_is_newer_than_xla_says_so() -> None:
    found = card(find("rtx-5090"), "2.21")
    assert found.tensorflow.outcome == "graph"
    assert "jit_compile=False" in found.tensorflow.known_faults[0]
