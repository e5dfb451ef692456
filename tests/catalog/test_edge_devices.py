"""Small devices of the catalogue: rates follow from clocks, names are found or guessed at."""

from __future__ import annotations

import re

import pytest

from tfdyno.catalog import gpus
from tfdyno.catalog.edge_devices import KINDS, all_devices, operations, parse_list, unverified
from tfdyno.core.base.errors import UsageError

DEVICES = {device.slug: device for device in all_devices()}


def test_every_kind_is_there_with_its_sources() -> None:
    assert {device.kind for device in DEVICES.values()} == set(KINDS)
    for device in DEVICES.values():
        assert device.source, device.slug
        assert re.fullmatch(r"2026-\d\d-\d\d", device.seen)
        assert device.memory_bytes > 0


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("gpus.csv, same slug; memory that the system keeps: unverified (memory)",
         "memory that the system keeps"),
        ("A datasheet (240 MHz; 512 KB); 8 MB flash: B; the rest: unverified (memory)", "the rest"),
        ("A datasheet (64 MHz; 256 KB RAM); unverified (memory)", "all figures"),
        ("unverified (memory)", "all figures"),
        ("A datasheet (64 MHz; 256 KB RAM)", ""),
    ],
)  # fmt: skip
def test_a_source_says_which_figures_are_unverified(source: str, expected: str) -> None:
    assert unverified(source) == expected


def test_no_device_hides_that_a_figure_is_unverified() -> None:
    for device in DEVICES.values():
        assert bool(device.unverified) == ("unverified" in device.source), device.slug


def test_rates_are_cores_times_clock_times_width() -> None:
    pi = DEVICES["raspberry-pi-5"]  # 4 cores x 2.4 GHz x two 128-bit multiply-adds
    assert pi.float_ops_per_s == pytest.approx(153.6e9)
    assert pi.integer_ops_per_s == pytest.approx(614.4e9)
    assert DEVICES["coral-usb"].integer_ops_per_s == pytest.approx(4e12)  # the maker's


def test_a_jetson_has_the_rates_of_its_gpu() -> None:
    orin, card = DEVICES["jetson-orin-nano-8gb"], gpus.find("jetson-orin-nano-8gb")
    assert orin.memory_bytes_per_s == card.memory_bytes_per_s
    assert orin.float_ops_per_s == pytest.approx(1.28e12, rel=0.01)  # 8 SM x 625 MHz x 256
    assert orin.integer_ops_per_s == pytest.approx(20.48e12, rel=0.01)


def test_integers_are_never_slower_than_floats() -> None:
    for device in DEVICES.values():
        assert device.integer_ops_per_s >= device.float_ops_per_s, device.slug
        assert 0 < device.runtime.slowest_ratio < device.runtime.fastest_ratio < 1


def test_lists_take_slugs_kinds_and_parts_of_names() -> None:
    assert [d.slug for d in parse_list("ESP32-S3, raspberry pi 5")] == [
        "esp32-s3", "raspberry-pi-5",
    ]  # fmt: skip
    assert {d.kind for d in parse_list("phones,jetson")} == {"phone", "jetson"}
    assert len(parse_list("all,esp32-s3")) == len(DEVICES)
    assert [d.slug for d in parse_list("orin-nano-super")] == ["jetson-orin-nano-super"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("jetsn-nano", "did you mean jetson-nano"),
        ("orin-nx", "did you mean jetson-orin-nx-16gb or jetson-orin-nx-8gb?"),
        ("zzz", "'tfdyno edge --list' names all"),
        (" , ", "no device was named"),
    ],
)
def test_an_unknown_device_is_answered_with_the_nearest(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        parse_list(text)


def test_operators_of_each_runtime_are_listed() -> None:
    assert {"CONV_2D", "FULLY_CONNECTED", "SOFTMAX"} <= (
        operations("litert-micro") & operations("edgetpu") & operations("gpu-delegate")
    )
    assert "GELU" not in operations("litert-micro")
    assert operations("nobody") == frozenset()


def test_a_peak_that_was_assumed_is_called_an_assumption() -> None:
    source = DEVICES["raspberry-pi-5"].runtime.source
    assert "118 GFLOP/s, an assumption" in source
