"""What has a folder of its own: another TensorFlow, card, driver, flag."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.compiled.keeping import matters, software_key, source_of, step_key
from tfdyno.probe.python.compilers import Compiler

COMPILER = Compiler(
    framework="tensorflow",
    library=Path("/x/libtensorflow_cc.so.2"),
    size_bytes=100,
    changed_at_ns=1,
    versions={"tensorflow": "2.21.0", "nvidia-cudnn-cu12": "9.3.0"},
)
MACHINE = {"processor": "AMD EPYC", "features": "0c31b8d6", "cards": "NVIDIA H200 1", "driver": "1"}


def key(**changed: Any) -> str:
    given: dict[str, Any] = {
        "compiler": COMPILER, "machine": MACHINE, "variables": {}, "recipe": Recipe(),
        "source": None,
    }  # fmt: skip
    return software_key(**{**given, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"compiler": replace(COMPILER, versions={**COMPILER.versions, "tensorflow": "2.22.0"})},
        {"compiler": replace(COMPILER, versions={**COMPILER.versions, "nvidia-cudnn-cu12": "9"})},
        {"compiler": replace(COMPILER, size_bytes=101)},
        {"machine": {**MACHINE, "cards": "NVIDIA A100 1"}},
        {"machine": {**MACHINE, "driver": "2"}},
        {"machine": {**MACHINE, "features": "ffffffff"}},
        {"variables": {"XLA_FLAGS": "--xla_gpu_enable_triton_gemm=false"}},
        {"variables": {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2"}},
        {"variables": {"NVIDIA_TF32_OVERRIDE": "0"}},
        {"variables": {"LD_LIBRARY_PATH": "/other/cudnn"}},
        {"recipe": Recipe(deterministic=True, seed=1)},
        {"recipe": Recipe(precision="tf32")},
    ],
)  # fmt: skip
def test_another_tensorflow_card_driver_or_flag_has_another_folder(changed: dict[str, Any]) -> None:
    assert key(**changed) != key()


def test_who_takes_part_and_what_is_printed_is_no_part_of_it() -> None:
    variables = {"TF_CONFIG": "{}", "TF_CPP_MIN_LOG_LEVEL": "0", "HOME": "/x", "PATH": "/y",
                 "CUDA_VISIBLE_DEVICES": "0", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}  # fmt: skip
    assert key(variables=variables) == key()
    assert not any(map(matters, variables))


def test_a_seed_and_a_batch_have_no_folder_of_their_own() -> None:
    assert key(recipe=Recipe(seed=3, batch_size=7)) == key()


def test_a_script_that_speaks_of_flags_counts_with_its_text(tmp_path: Path) -> None:
    plain, flagged = tmp_path / "plain.py", tmp_path / "flagged.py"
    plain.write_text("x = 1")
    assert key(source=plain) == key()
    flagged.write_text("os.environ['XLA_FLAGS'] = '--a=1'")
    first = key(source=flagged)
    flagged.write_text("os.environ['XLA_FLAGS'] = '--a=2'")
    assert len({key(), first, key(source=flagged)}) == 3


def test_the_source_is_the_file_of_a_script_or_function(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    assert source_of(parse_reference(f"{tmp_path}/train.py")) == tmp_path / "train.py"
    assert source_of(parse_reference(f"{tmp_path}/train.py:make")) == tmp_path / "train.py"
    assert source_of(parse_reference("keras:ResNet50")) is None


def test_the_time_of_a_step_belongs_to_its_workload_and_recipe() -> None:
    one = parse_reference("keras:ResNet50")
    found = step_key(one, Recipe(), "", "train")
    assert found == step_key(one, Recipe(), "", "train")
    assert found != step_key(one, Recipe(batch_size=8), "", "train")
    assert found != step_key(one, Recipe(), "d.py:data", "train")
    assert found != step_key(one, Recipe(), "", "diagnose")
