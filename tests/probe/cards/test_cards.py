"""Cards through the bindings: faked in Python, compiled in C, and missing as on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.probe.fake_nvml import FakeNvml, NoNvml, nvml_is

from tfdyno.core.measure.measurement import Card
from tfdyno.probe.cards import cards
from tfdyno.probe.cards.cards import Reading

if TYPE_CHECKING:
    from pathlib import Path

BUSY = Reading(
    utilisation_ratio=0.97,
    memory_bytes=41_000_000_000,
    processes=((7, 40_000_000_000), (8, 0)),
    power_w=612.345,
    temperature_celsius=71.0,
    graphics_clock_hz=1.755e9,
    memory_clock_hz=2.619e9,
    throttle=("software power cap",),
    corrected_errors=0,
    uncorrected_errors=0,
)
WITH_BINDINGS = """
import dataclasses, json
from tfdyno.probe.cards import cards
with cards.opened() as nvml:
    found = cards.handles(nvml)
    print(json.dumps({
        "driver": cards.text(cards.ask(nvml, "nvmlSystemGetDriverVersion")),
        "cards": [dataclasses.asdict(cards.card(nvml, one, str.lower)) for _, one in found],
        "readings": [dataclasses.asdict(cards.reading(nvml, one)) for _, one in found],
    }))
"""


def test_a_reading_is_in_the_units_that_its_names_say() -> None:
    nvml = FakeNvml()
    nvml.processes = [(7, 40_000_000_000), (8, None)]
    assert cards.reading(nvml, 0) == BUSY


def test_a_lost_card_tells_nothing_and_raises_nothing() -> None:
    nvml = FakeNvml()
    nvml.lost = {0}
    assert cards.reading(nvml, 0) == Reading()


def test_what_one_card_lacks_leaves_the_rest() -> None:
    nvml = FakeNvml()
    nvml.unsupported = {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetEccMode"}
    found = cards.reading(nvml, 0)
    assert (found.utilisation_ratio, found.temperature_celsius) == (None, 71.0)
    assert cards.card(nvml, 0, lambda _: "").ecc is None


def test_a_clock_held_down_for_two_reasons_names_both() -> None:
    nvml = FakeNvml()
    nvml.reasons = 0x1 | 0x4 | 0x40  # idle holds nothing down
    assert cards.reading(nvml, 0).throttle == ("software power cap", "hardware thermal slowdown")
    nvml.reasons = 0x1
    assert cards.reading(nvml, 0).throttle == ()


def test_the_facts_of_a_card_come_with_its_row_of_the_catalogue() -> None:
    names = {"NVIDIA H100 80GB HBM3": "h100-sxm5-80gb"}
    assert cards.card(FakeNvml(), 0, names.__getitem__) == Card(
        name="NVIDIA H100 80GB HBM3",
        slug="h100-sxm5-80gb",
        memory_bytes=85520809984,
        power_limit_w=700.0,
        graphics_clock_limit_hz=1.98e9,
        ecc=True,
        mig=False,
    )


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [0, 1, 2]),
        ("1", [1]),
        ("2, 0", [2, 0]),
        ("GPU-1a", [1]),
        ("-1", []),
        ("", []),
        ("0,-1,2", [0]),  # CUDA reads up to the first that it does not know
        ("MIG-8f00", [0, 1, 2]),  # whose slice it is cannot be told
    ],
)
def test_only_the_visible_cards_count_in_the_order_that_cuda_gives_them(
    visible: str | None, expected: list[int]
) -> None:
    assert [index for index, _ in cards.handles(FakeNvml(3), visible)] == expected


def test_there_are_no_cards_without_nvml() -> None:
    with nvml_is(NoNvml()), cards.opened() as nvml:
        assert nvml is None
        assert cards.handles(nvml) == ()


def test_the_real_bindings_answer_from_a_library_in_c(nvidia: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITH_BINDINGS],
        env={**os.environ, "LD_LIBRARY_PATH": str(nvidia)},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert told["driver"] == "550.54.14"
    first, second = told["cards"]
    assert first == {
        "name": "NVIDIA H100 80GB HBM3", "slug": "nvidia h100 80gb hbm3",
        "memory_bytes": 85520809984, "power_limit_w": 700.0, "graphics_clock_limit_hz": 1.98e9,
        "ecc": True, "mig": True,
    }  # fmt: skip
    assert (second["ecc"], second["mig"]) == (False, None)
    busy, other = told["readings"]
    assert (busy["utilisation_ratio"], busy["power_w"]) == (0.97, 612.345)
    assert (busy["graphics_clock_hz"], busy["memory_clock_hz"]) == (1.755e9, 2.619e9)
    assert busy["throttle"] == ["software power cap", "hardware thermal slowdown"]
    assert [memory for _, memory in busy["processes"]] == [1 << 30, 0]
    assert (other["utilisation_ratio"], other["processes"]) == (None, [])


def test_the_real_bindings_without_a_library_are_no_error() -> None:
    with cards.opened() as nvml:
        assert isinstance(cards.handles(nvml), tuple)
