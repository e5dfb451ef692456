"""Free words and lines of a log become facts; what the user said wins."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.cases import CASES

from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.rules.log.explained import scan
from tfdyno.rules.told import machine_from_told, told_by_log


def capability(name: str) -> tuple[str, str]:
    return ("rtx-4090", "8.9") if "4090" in name else ("", "")


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ({"os": "Windows 11 23H2"}, {"system": "windows", "is_wsl": False}),
        ({"os": "win11"}, {"system": "windows"}),
        ({"os": "WSL2 docker"}, {"system": "linux", "is_wsl": True, "container": "docker"}),
        ({"os": "Windows 11 WSL2 Ubuntu 22.04"}, {"system": "linux", "is_wsl": True}),
        ({"os": "linux (Colab)"}, {"system": "linux", "container": "colab"}),
        ({"os": "Kaggle"}, {"system": "linux", "container": "kaggle"}),
        ({"os": "Kubeflow"}, {"system": "linux", "container": "kubernetes"}),
        (
            {"os": "JetPack 4.5.1"},
            {"system": "linux", "is_jetson": True, "architecture": "aarch64"},
        ),
        ({"os": "macOS 12.2"}, {"system": "macos", "is_wsl": False}),
        ({"os": "Ubuntu 22.04"}, {"system": "linux", "is_wsl": None}),
        ({"os": "Darwin"}, {"system": "macos"}),
        ({"os": "linux HPC modules"}, {"system": "linux", "container": ""}),
        ({"os": "AWS"}, {"system": "linux"}),
        ({}, {"system": "", "is_wsl": None, "gpus": None, "tensorflow": ""}),
        ({"tf": "2.21.0.dev20250722"}, {"tensorflow": "2.21.0"}),
        ({"tf": "serving 2.2.0"}, {"tensorflow": "2.2.0"}),
        ({"tf": "2.4 (CUDA 10.1 build)"}, {"tensorflow": "2.4"}),
        ({"tf": None, "cudnn": 8}, {"tensorflow": "", "cudnn": "8"}),
        ({"cuda_visible_devices": ""}, {"environment": {"CUDA_VISIBLE_DEVICES": ""}}),
    ],
)
def test_free_words_become_facts(told: dict[str, Any], wanted: dict[str, Any]) -> None:
    facts = machine_from_told(told, capability)
    assert {name: getattr(facts, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("gpu", "count", "names"),
    [
        ("4x RTX 4090", "", ["RTX 4090"] * 4),
        ("T4 x4", "", ["T4"] * 4),
        ("4 GPUs", "", [""] * 4),
        ("RTX 4090", "2", ["RTX 4090"] * 2),
        ("present", "", [""]),
        ("none", "", []),
        ("", "0", []),
        ("", "1", [""]),
        ("A100 MIG", "", ["A100 MIG"]),
        ("compute capability 9.0", "", ["compute capability 9.0"]),
    ],
)
def test_cards_are_counted_and_named(gpu: str, count: str, names: list[str]) -> None:
    facts = machine_from_told({"gpu": gpu, "gpu_count": count}, capability)
    assert [one.name for one in facts.gpus or ()] == names
    assert facts.gpus is not None


def test_a_card_has_the_capability_that_is_told_else_that_of_the_catalogue() -> None:
    def first(gpu: str) -> str:
        return (machine_from_told({"gpu": gpu}, capability).gpus or ())[0].compute_capability

    assert first("RTX 4090") == "8.9"
    assert first("compute capability 9.0") == "9.0"
    assert first("Jetson Nano 4GB (5.3)") == "5.3"
    assert first("Quadro 9") == ""


LOG = """\
2024-02-25 18:52:47.991396: I tensorflow/stream_executor/platform/default/dso_loader.cc:53] \
Successfully opened dynamic library libcudart.so.11.0
2024-02-25 18:52:47.991396: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] \
Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object \
file: No such file or directory; LD_LIBRARY_PATH: /usr/local/cuda-11.2/lib64
2024-02-25 18:52:48.0: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1510] Created device \
/job:localhost/replica:0/task:0/device:GPU:0 with 14248 MB memory:  -> device: 0, name: Tesla T4, \
pci bus id: 0000:00:1e.0, compute capability: 7.5
  File "/home/someone/miniconda3/envs/tf/lib/python3.9/site-packages/x.py", line 1, in <module>
TensorFlow version: 2.9.1
| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |
"""


def test_a_log_tells_versions_cards_libraries_and_platform() -> None:
    facts = told_by_log(scan([LOG], []), MachineFacts(), capability)
    assert (facts.tensorflow, facts.python.version, facts.system) == ("2.9.1", "3.9", "linux")
    assert (facts.driver.version, facts.driver.cuda) == ("470.57.02", "11.4")
    assert [(one.name, one.compute_capability) for one in facts.gpus or ()] == [("Tesla T4", "7.5")]
    assert {one.soname: bool(one.path) for one in facts.libraries} == {
        "libcudnn.so.8": False,
        "libcudart.so.11.0": True,
    }
    assert facts.environment == {"LD_LIBRARY_PATH": "/usr/local/cuda-11.2/lib64"}
    assert facts.python.manager == "conda"


def test_what_the_user_said_wins_over_the_log() -> None:
    told = machine_from_told({"tf": "2.4", "driver": "455", "gpu": "RTX 4090", "os": "Windows 10"})
    facts = told_by_log(scan([LOG], []), told)
    assert (facts.tensorflow, facts.driver.version, facts.system) == ("2.4", "455", "windows")
    assert [one.name for one in facts.gpus or ()] == ["RTX 4090"]


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        (r"File C:\Users\me\venv\Lib\site-packages\tensorflow\__init__.py", "system", "windows"),
        ("ImportError: DLL load failed while importing _x", "system", "windows"),
        ("dlopen(/opt/tf/libmetal_plugin.dylib, 6): Symbol not found", "system", "macos"),
        ("LD_LIBRARY_PATH: /usr/lib/wsl/lib", "is_wsl", True),
        ("Linux pc 5.15.90.1-microsoft-standard-WSL2 x86_64", "is_wsl", True),
        ("/usr/local/lib/python3.10/dist-packages/google.colab/x.py", "container", "colab"),
        ("File /kaggle/working/train.py", "container", "kaggle"),
        (
            "Found device 0 with properties: name: NVIDIA Tegra X1 major: 5 minor: 3",
            "is_jetson",
            True,
        ),
        ("tensorflow-2.3.1-cp36-cp36m-linux_aarch64.whl", "tensorflow", "2.3.1"),
        ("tf version: 2.15.0", "tensorflow", "2.15.0"),
    ],
)
def test_one_line_tells_one_fact(line: str, name: str, value: object) -> None:
    assert getattr(told_by_log(scan([line], []), MachineFacts()), name) == value


def test_a_card_of_an_old_log_has_its_capability_from_major_and_minor() -> None:
    line = "name: Tesla P100-SXM2-16GB major: 6 minor: 0 memoryClockRate(GHz): 1.4805"
    (card,) = told_by_log(scan([line], []), MachineFacts()).gpus or ()
    assert (card.name, card.compute_capability) == ("Tesla P100-SXM2-16GB", "6.0")


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("|   0  NVIDIA GeForce RTX 4090        On  |   00000000:01:00.0  On |      Off |", "NVIDIA GeForce RTX 4090"),  # noqa: E501
        ("|   0  NVIDIA A100-SXM4-40GB          Off | 00000000:00:04.0 Off |        0 |", "NVIDIA A100-SXM4-40GB"),  # noqa: E501
        ("|   1  NVIDIA GeForce RTX 2070      WDDM  | 00000000:01:00.0  On |      N/A |", "NVIDIA GeForce RTX 2070"),  # noqa: E501
        ("|   0  Tesla T4            Off  | 00000000:00:04.0 Off |                    0 |", "Tesla T4"),  # noqa: E501
    ],
)  # fmt: skip
def test_a_row_of_nvidia_smi_names_a_card(row: str, name: str) -> None:
    (card,) = told_by_log(scan([row], []), MachineFacts()).gpus or ()
    assert card.name == name


def test_every_case_has_a_machine() -> None:
    for case in CASES:
        facts = machine_from_told(case["env"], capability)
        assert facts.system or case["env"].get("os") in {None, "conda"}, case["env"]


@given(
    st.dictionaries(
        st.sampled_from(["tf", "os", "gpu", "gpu_count", "driver"]), st.text(max_size=20)
    )
)
def test_no_words_make_it_fail(told: dict[str, str]) -> None:
    assert isinstance(machine_from_told(told, capability), MachineFacts)
