"""Flat values of a machine: the names that conditions and texts use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.catalog.releases import all_releases, cuda_drivers, release_of
from tfdyno.core.choose.software import Knowledge, WheelSupport
from tfdyno.core.doctor.machine_facts import Distribution, GpuFacts, MachineFacts, PythonFacts
from tfdyno.rules.values import values

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value


def of(**facts: Any) -> dict[str, str]:
    given = MachineFacts(**facts)
    knowledge = Knowledge(release=release_of(given.tensorflow), releases=all_releases())
    return values(given, knowledge)


def test_nothing_known_is_nothing_said() -> None:
    assert values(MachineFacts(), Knowledge()) == {"pip": "python -m pip"}


@pytest.mark.parametrize(
    ("facts", "platform", "driver"),
    [
        ({"system": "linux"}, "linux", "525.60.13"),
        ({"system": "linux", "is_wsl": True}, "wsl", "528.33"),
        ({"system": "linux", "is_jetson": True}, "jetson", "525.60.13"),
        ({"system": "windows"}, "windows", "528.33"),
    ],
)
def test_the_platform_decides_which_driver_is_needed(
    facts: dict[str, Any], platform: str, driver: str
) -> None:
    known = of(tensorflow="2.21.0", **facts)
    assert (known["platform"], known["system"]) == (platform, facts["system"])
    assert known["min_driver"] == driver


def test_a_release_says_what_it_needs() -> None:
    known = of(tensorflow="2.14.1")
    wanted = {
        "tensorflow_minor": "2.14", "needed_cuda": "11.8", "needed_cuda_major": "11",
        "needed_cudnn": "8.7", "python_versions": "3.9, 3.10, 3.11",
        "requirement": "tensorflow[and-cuda]==2.14.1", "newest_tensorflow": "2.21",
    }  # fmt: skip
    assert wanted.items() <= known.items()
    assert "needed_cuda" not in of(tensorflow="0.11")


def test_installed_packages_and_the_manager_are_told() -> None:
    python = PythonFacts(
        version="3.11.7",
        manager="uv",
        distributions=(Distribution(name="numpy", version="2.1.0"),
                       Distribution(name="tensorflow", version="2.18.0")),
    )  # fmt: skip
    known = values(MachineFacts(python=python), Knowledge())
    assert (known["numpy"], known["tensorflow"], known["pip"]) == ("2.1.0", "2.18.0", "uv pip")
    assert known["python_minor"] == "3.11"


def test_of_two_cards_the_one_that_fares_worst_speaks() -> None:
    def support(slug: str, verdict: Value) -> WheelSupport:
        return WheelSupport(
            gpu=slug, tensorflow="2.20", verdict=verdict, library_kernels="-", detail="d",
            elementwise_kernels="-", smallest_native="", smallest_runnable="2.21",
            driver_linux="570", source="s", has_old_libraries=False,
        )  # fmt: skip

    cards = (GpuFacts(name="RTX 3090", slug="a", compute_capability="8.6"),
             GpuFacts(name="RTX 5090", slug="b", compute_capability="12.0"))  # fmt: skip
    knowledge = Knowledge(support=(support("a", "native"), support("b", "cannot")))
    known = values(MachineFacts(gpus=cards), knowledge)
    assert (known["gpu"], known["capability"], known["wheel_verdict"]) == (
        "RTX 5090",
        "12.0",
        "cannot",
    )
    assert known["gpu_count"] == "2"


def test_the_tables_of_releases_and_toolkits_are_read() -> None:
    assert [one.tensorflow for one in all_releases()][::22] == ["1.15", "2.21"]
    windows_gpu = [one.tensorflow for one in all_releases() if one.has_native_windows_gpu]
    assert windows_gpu[-1] == "2.10"
    drivers = {one.cuda: one for one in cuda_drivers()}
    assert (drivers["12.8"].linux, drivers["12.8"].oldest_linux) == ("570.26", "525.60.13")
    assert (drivers["10.1"].linux, drivers["10.1"].oldest_linux) == ("418.39", "418.39")
    assert release_of("2.9.3") != release_of("2.10.1")
    assert release_of("") is release_of("99.1") is None


def test_the_backend_of_keras_comes_from_the_variables() -> None:
    known = of(environment={"KERAS_BACKEND": "jax", "TF_USE_LEGACY_KERAS": "1"})
    assert (known["keras_backend"], known["legacy_keras"]) == ("jax", "1")
    assert not {"keras_backend", "legacy_keras"} & of().keys()
