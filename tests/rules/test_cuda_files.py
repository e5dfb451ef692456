"""File names of CUDA libraries and the toolkits that hold them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.rules.cuda_files import first_cuda, parse, toolkits_with


@pytest.mark.parametrize(
    ("name", "toolkits"),
    [
        ("libcudart.so.11.0", "11"),
        ("libcudart.so.12", "12"),
        ("libcudart.so.10.1", "10.1"),
        ("/usr/local/cuda/lib64/libcusolver.so.10", "10.1–11.0"),
        ("libcusolver.so.11.4.1", "11.1–12.9"),
        ("libcufft.so.9.2", "9.2"),
        ("cudart64_110.dll", "11"),
        ("cudart64_101.dll", "10.1"),
        ("cudart64_90.dll", "9.0"),
        (r"C:\CUDA\bin\cublas64_12.dll", "12"),
    ],
)
def test_a_file_name_tells_its_toolkits(name: str, toolkits: str) -> None:
    assert str(toolkits_with(name)) == toolkits


@pytest.mark.parametrize("name", ["libcudnn.so.8", "libnvinfer.so.7", "libcuda.so.1", "", "x.dll"])
def test_other_libraries_tell_none(name: str) -> None:
    assert toolkits_with(name) is None


def test_a_toolkit_without_a_minor_version_may_be_any_of_its_major() -> None:
    toolkits = toolkits_with("libcusolver.so.10")
    assert toolkits
    assert toolkits.holds("11")
    assert toolkits.holds("11.0.3")
    assert not toolkits.holds("11.1")
    assert not toolkits.holds("12")


def test_what_two_files_have_in_common() -> None:
    one, other = toolkits_with("libcudart.so.11.0"), toolkits_with("libcusolver.so.10")
    assert one
    assert other
    assert str(one.overlap(other)) == "11.0"
    newer = toolkits_with("libcudart.so.12")
    assert newer
    assert other.overlap(newer) is None


def test_a_card_needs_a_cuda_that_knows_it() -> None:
    assert first_cuda("8.6") == (11, 1)
    assert first_cuda("12.0") == (12, 8)
    assert first_cuda("99.0") == ()


@given(st.text(max_size=40))
def test_no_name_is_an_error(name: str) -> None:
    toolkits = toolkits_with(name)
    assert toolkits is None or parse(str(toolkits))


def test_a_number_of_thousands_of_digits_is_no_error() -> None:
    assert toolkits_with("libcudart.so." + "9" * 5000) is None
    assert parse("9" * 5000 + ".2")
