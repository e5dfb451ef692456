"""The installed TensorFlow is tried in a child: import, GPUs, one small step of each kind."""

from __future__ import annotations

import pytest

from tfdyno.core.messages.child import Nothing
from tfdyno.core.messages.doctor import TRY_TENSORFLOW
from tfdyno.jobs.child.worker import run_child

LIMIT_S = 240.0


@pytest.mark.tf
def test_each_check_is_timed_twice_and_what_tensorflow_prints_is_kept() -> None:
    lines: list[str] = []
    stages: list[str] = []
    result = run_child(
        TRY_TENSORFLOW,
        Nothing(),
        progress=stages.append,
        timeout_s=LIMIT_S,
        env={"CUDA_VISIBLE_DEVICES": "-1", "TF_ENABLE_ONEDNN_OPTS": "1"},  # it says so
        hide_gpu=False,
        output=lines.append,
    )
    assert not result.failed, result
    assert result.version.startswith("2.")
    assert 0 < result.import_s < LIMIT_S
    assert result.gpus == ()
    names = [name for name, _, _ in result.checks]
    assert names == ["matrix product", "convolution", "compiled function"]
    assert all(0 < second < LIMIT_S and first > 0 for _, first, second in result.checks)
    *_, (_, compiled_first_s, compiled_second_s) = result.checks
    assert compiled_first_s > compiled_second_s  # it is compiled once
    assert stages[0] == "importing TensorFlow"
    assert stages[1:] == [f"running a {name}" for name in names]
    assert any("oneDNN" in line or "xla" in line.lower() for line in lines), lines


def test_a_broken_import_is_a_result_with_its_traceback(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """As a TensorFlow whose compiled part cannot be loaded; no TensorFlow is needed for this."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "tensorflow.py").write_text(
        "raise ImportError('libcudart.so.12: cannot open shared object file')\n"
    )
    result = run_child(
        TRY_TENSORFLOW,
        Nothing(),
        timeout_s=LIMIT_S,
        env={"PYTHONPATH": str(folder)},
        hide_gpu=False,
    )
    assert (result.failed, result.checks, result.version) == ("import", (), "")
    assert result.error.splitlines()[-1] == (
        "ImportError: libcudart.so.12: cannot open shared object file"
    )
