from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

TRACED = """
import os, sys, tensorflow as tf
from tfdyno.process.child import leave
@tf.function
def halved(x):
    if x > 0:
        x = x / 2
    return x
halved(tf.constant(1.0))
print(len(os.listdir(os.environ["TMPDIR"])))
leave(3)
"""


@pytest.mark.tf
def test_what_tensorflow_wrote_for_its_traces_is_removed(tmp_path: Path) -> None:
    (tmp_path / "traced.py").write_text(TRACED)
    folder = tmp_path / "temporary"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, tmp_path / "traced.py"],
        env=os.environ | {"TMPDIR": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert int(done.stdout) > 0
    assert list(folder.iterdir()) == []
