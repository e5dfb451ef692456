from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.doctor.machine_facts import BuildInfo, MachineFacts
from tfdyno.probe.python.tensorflow_build import build_info, tensorflow_build, values

if TYPE_CHECKING:
    from tests.probe.conftest import Build

PATH = "/e/lib/python3.11/site-packages/tensorflow/python/platform/build_info.py"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "import collections\nbuild_info = collections.OrderedDict([('is_cuda_build', True), "
            "('cuda_version', '12.5.1'), ('cudnn_version', '9'), "
            "('cuda_compute_capabilities', ['sm_60', 'compute_90'])])",
            BuildInfo(
                is_cuda_build=True, cuda="12.5.1", cudnn="9",
                compute_capabilities=("sm_60", "compute_90"),
            ),
        ),
        (
            "is_cuda_build = True\nis_rocm_build = False\ncuda_version_number = '10.1'\n"
            "cudnn_version_number = '7'\nmsvcp_dll_names = 'msvcp140.dll'\n",
            BuildInfo(is_cuda_build=True, cuda="10.1", cudnn="7"),
        ),
        (
            "build_info = {'is_cuda_build': True, 'cuda_version': '64_112', "
            "'cudnn_version': '64_8', 'cudart_dll_name': 'cudart64_112.dll'}",
            BuildInfo(is_cuda_build=True, cuda="11.2", cudnn="8"),
        ),
        ("build_info = {'is_cuda_build': False}", BuildInfo(is_cuda_build=False)),
    ],
)  # fmt: skip
def test_every_age_of_the_file_is_read(source: str, expected: BuildInfo) -> None:
    assert build_info(values(source)) == expected


def test_nothing_in_the_file_is_run() -> None:
    assert values("build_info = dict(__import__('os').getpid())\nx = open('/etc/passwd')") == {}


@pytest.mark.parametrize("source", ["build_info = {", "x = 1", "build_info = [1, 2]"])
def test_a_strange_file_fails_in_words(build: Build, source: str) -> None:
    part = tensorflow_build(build({PATH: source}, python="/e/bin/python"), MachineFacts())
    assert (part.state, PATH in part.reason) == ("failed", True)


def test_without_tensorflow_it_is_not_run(build: Build) -> None:
    part = tensorflow_build(build({}, python="/e/bin/python"), MachineFacts())
    assert (part.state, part.reason) == ("not_run", "TensorFlow is not installed for this Python")
