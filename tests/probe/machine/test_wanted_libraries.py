"""Which libraries a TensorFlow loads, by the CUDA that it was built for."""

from __future__ import annotations

import pytest

from tfdyno.core.doctor.machine_facts import BuildInfo
from tfdyno.probe.machine.libraries import wanted


def names(cuda: str, cudnn: str = "9") -> dict[str, str]:
    found = wanted(BuildInfo(is_cuda_build=True, cuda=cuda, cudnn=cudnn), "linux")
    return {one.soname: one.package for one in found}


def test_cudnn_and_nccl_bring_the_package_of_their_cuda() -> None:
    found = names("12.5.1")
    assert found["libcudnn.so.9"] == "nvidia-cudnn-cu12"
    assert found["libnccl.so.2"] == "nvidia-nccl-cu12"


def test_before_cuda_12_nccl_is_inside_the_wheel() -> None:
    assert "libnccl.so.2" not in names("11.8", "8")


@pytest.mark.parametrize(("cuda", "alike"), [("12.99", "12.5"), ("12", "12.0")])
def test_a_toolkit_that_is_not_in_the_table_takes_the_one_before_it(cuda: str, alike: str) -> None:
    assert names(cuda).keys() == names(alike).keys()


def test_an_unknown_build_wants_no_library_of_the_toolkit() -> None:
    assert not [name for name in names("", "") if "cudart" in name]
