"""Lines that tell facts, as programs print them, and lines beside them that tell nothing."""

from __future__ import annotations

import pytest

from tfdyno.rules.log.explained import all_watches, scan


@pytest.mark.parametrize(
    ("line", "name", "values"),
    [
        ("TensorFlow version: 2.15.0", "tensorflow", {"tensorflow": "2.15.0"}),
        ("Collecting tensorflow-gpu==1.14.0", "tensorflow", {"tensorflow": "1.14.0"}),
        (">>> import tensorflow as tf; tf.__version__ '2.4.1'", "tensorflow",
         {"tensorflow": "2.4.1"}),
        ("Python version: 3.9.7 (default)", "python", {"python": "3.9.7"}),
        ("  File '/usr/lib/python3.10/site-packages/x.py'", "python", {"python": "3.10"}),
        (r"C:\Python37\lib\site-packages\x.py", "python", {"a": "3", "b": "7"}),
        ("| NVIDIA-SMI 470.82.01   Driver Version: 470.82.01   CUDA Version: 11.4 |", "driver",
         {"driver": "470.82.01", "cuda": "11.4"}),
        ("libcuda reported version is: 470.82.1", "library_driver", {"driver": "470.82.1"}),
        ("kernel reported version is: 460.91.3", "kernel_driver", {"driver": "460.91.3"}),
        ("device: 0, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5", "gpu",
         {"gpu": "Tesla T4", "capability": "7.5"}),
        ("|   0  NVIDIA A100-40C      On   | 00000000:02:00.0 Off |", "gpu_table",
         {"gpu": "NVIDIA A100-40C"}),
        ("Could not load dynamic library 'libcudnn.so.8'; dlerror", "failed",
         {"soname": "libcudnn.so.8"}),
        ("Successfully opened dynamic library libcudart.so.11.0", "opened",
         {"soname": "libcudart.so.11.0"}),
        ("LD_LIBRARY_PATH: /usr/local/cuda/lib64:", "library_path",
         {"path": "/usr/local/cuda/lib64:"}),
        (r"File C:\Users\me\train.py", "windows", {}),
        ("/usr/lib/wsl/lib/libcuda.so.1", "wsl", {}),
        ("/home/me/miniconda3/envs/tf/bin/python", "conda", {}),
    ],
)  # fmt: skip
def test_a_line_tells_its_fact(line: str, name: str, values: dict[str, str]) -> None:
    told = scan([line], []).watched[name]
    assert values in [dict(one.values) for one in told]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("tensorflow/core/platform/cpu_feature_guard.cc:182", "tensorflow"),
        ("a driver version is needed", "driver"),
        ("name: conv2d_1, shape: 3", "gpu"),
        ("linux is fine", "linux"),
        ("the constants of condas", "conda"),
    ],
)
def test_a_line_beside_it_tells_nothing(line: str, name: str) -> None:
    assert name not in scan([line], []).watched


def test_needles_are_in_lower_case_and_every_watch_is_bounded() -> None:
    assert all(one.needle == one.needle.lower() and one.cap > 0 for one in all_watches())
