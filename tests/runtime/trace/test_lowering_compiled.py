from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.runtime.compiled_steps import moved_bytes
from tests.runtime.small_steps import STEPS, module_of

from tfdyno.runtime.trace.quick import program_of


@pytest.fixture(scope="module")
def compiled() -> dict[str, float]:
    """Bytes that every step moves, as today's XLA compiles it for an H200."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, "-m", "tests.runtime.compiled_steps"]
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=root, check=True
    )
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", STEPS)
def test_a_quick_program_moves_the_bytes_of_the_compiled_one(
    compiled: dict[str, float], name: str
) -> None:
    made = program_of(module_of(name), batch_size=1, marker=0, trace_sha256="", tensors=(),
                      mode="train", lowering="jax")  # fmt: skip
    assert moved_bytes(made.kernels) == pytest.approx(compiled[name], rel=0.02)
