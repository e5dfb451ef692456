"""render/data/dataset_reader: a module of plain TensorFlow; what it reads is in runtime's tests."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.core.deploy.test_dataset import DATASET

from tfdyno.core.deploy.dataset import Feature
from tfdyno.render.data.dataset_reader import dataset_reader

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.deploy.dataset import Dataset

IMAGES = replace(DATASET, features=(Feature(name="image", dtype="string", role="image"),))
TABLE = replace(
    DATASET,
    features=(Feature(name='"; import os #', dtype="int64", role="label"),),
    settings=replace(DATASET.settings, kind="csv", label='"; import os #'),
)
NO_LABEL = replace(TABLE, settings=replace(TABLE.settings, label=""))


@pytest.mark.parametrize("dataset", [DATASET, IMAGES, TABLE, NO_LABEL])
def test_it_needs_tensorflow_alone_and_is_good_style(dataset: Dataset, tmp_path: Path) -> None:
    text = dataset_reader(dataset)
    tree = ast.parse(text)
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"json", "pathlib", "tensorflow"}
    (tmp_path / "read_dataset.py").write_text(text)
    for words in (["check", "--select", "E,F,W,B,D1", "--line-length", "100"],
                  ["format", "--check", "--line-length", "100"]):  # fmt: skip
        command = [sys.executable, "-m", "ruff", *words, "--isolated", "read_dataset.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_names_of_the_user_stay_out_of_the_code() -> None:
    assert "import os" not in dataset_reader(TABLE)


def test_it_is_as_long_as_the_data_needs() -> None:
    assert "decode_image" in dataset_reader(IMAGES)
    assert "decode_raw" in dataset_reader(DATASET)
    assert "decode_" not in dataset_reader(TABLE)
    assert "LABEL" in dataset_reader(TABLE)
    assert "LABEL" not in dataset_reader(NO_LABEL)
