"""Starts the children that train with TensorFlow, each once for all tests that ask for it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.runtime.forks import NO_GPU
from tests.runtime.once import once

ROOT = Path(__file__).parents[2]
LIMIT_S = 600
"""For a machine that does much else; alone it takes a tenth of that."""


def environment(**more: str) -> dict[str, str]:
    """Of a child that trains on the processor."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    return {
        **os.environ, **NO_GPU, "PYTHONPATH": path, "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "3", **more,
    }  # fmt: skip


@functools.cache
def cases_of(child: str, *words: str) -> dict[str, dict[str, Any]]:
    """What the cases of ``tests/runtime/<child>.py`` found, by name; ``slow`` for its slow ones."""
    found: dict[str, dict[str, Any]] = once("-".join([child, *words]), lambda: _run(child, words))
    assert "" not in found, found[""]["raised"]
    return found


def _run(child: str, words: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """What the cases found, or why there is nothing."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "found.json")
        done = subprocess.run(
            [sys.executable, "-m", f"tests.runtime.{child}", str(result), *words],
            capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=LIMIT_S,
        )  # fmt: skip
        if not result.exists():
            return {"": {"raised": f"exit code {done.returncode}\n{done.stderr[-6000:]}"}}
        found: dict[str, dict[str, Any]] = json.loads(result.read_text())
    return found


def case(child: str, name: str, *words: str) -> dict[str, Any]:
    """What one case found."""
    found = cases_of(child, *words)[name]
    assert "raised" not in found, found["raised"]
    return found
