"""Tasks are built and trained in child processes."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.runtime.workload.tasks.learning import Trained

Described = dict[str, Any]
CHILD = Path(__file__).with_name("task_child.py")
NO_DATA = "no real data set was found"


def answer(*words: str, backend: str) -> dict[str, Any]:
    """What the child prints; a test of learning is skipped where there is nothing to learn from."""
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "CUDA_VISIBLE_DEVICES": "-1",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, str(CHILD), *words],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if NO_DATA in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="session")
def described() -> dict[str, Described]:
    """Every task as it is built, without weights."""
    return answer("describe", backend="jax")


@pytest.fixture(scope="module")
def trained() -> Trained:
    """Train a task as its goal says, once for all tests of a file: ``trained(name, *hows)``."""
    return functools.cache(lambda *words: answer("learn", *words, backend="tensorflow"))
