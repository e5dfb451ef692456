"""A workload's id is stable between processes and changes with every field."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields, replace
from typing import Any

import pytest

from tfdyno.core.choose.workload import (
    FineTune,
    HubModel,
    Saving,
    Validation,
    Workload,
    is_text_file,
)

BASE = Workload(reference="train.py", kind="script")
OTHER: dict[str, Any] = {
    "reference": "other.py", "kind": "function", "mode": "infer", "precision": "float16",
    "input_shapes": ((8,),), "input_spec": ("float32[8]",), "script_arguments": ("-x",),
    "fit_number": 2, "python": "python3", "allow_unsafe": True, "optimizer": "sgd",
    "remat": "blocks", "software": "jax",
    "hub": HubModel(
        backbone="GPT2Backbone", config="{}", longest=1024, fine_tune=FineTune(lora_rank=8)
    ),
}  # fmt: skip


def test_every_field_has_another_value_here() -> None:
    assert set(OTHER) == {field.name for field in fields(Workload)}


@pytest.mark.parametrize("name", OTHER)
def test_the_id_changes_with_every_field(name: str) -> None:
    assert replace(BASE, **{name: OTHER[name]}).id != BASE.id


def test_the_id_is_the_same_in_another_process() -> None:
    source = (
        "from tfdyno.core.choose.workload import Workload\n"
        "print(Workload(reference='train.py', kind='script').id)"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == BASE.id
    assert re.fullmatch(r"[0-9a-f]{12}", BASE.id)


def test_a_standard_task_has_a_name() -> None:
    assert Workload(reference="task:lstm", kind="task").task == "lstm"
    assert Workload(reference="task.py", kind="script").task == ""


@pytest.mark.parametrize(
    ("found", "passes"),
    [
        (Validation(samples=10), 7),
        (Validation(samples=10, every_epochs=3), 2),
        (Validation(samples=10, every_epochs=8), 0),
        (Validation(samples=10, in_epochs=(1, 7, 8)), 2),
        (Validation(samples=0), 0),
        (Validation(samples=None), 0),
    ],
)
def test_validation_follows_the_epochs_that_keras_chooses(found: Validation, passes: int) -> None:
    assert found.passes(7) == passes


def test_a_model_is_saved_after_each_epoch_or_so_many_batches() -> None:
    assert Saving().times(epochs=7, steps=1000) == 7
    assert Saving(every_batches=300).times(epochs=7, steps=1000) == 3


def test_a_function_is_no_file_of_text() -> None:
    assert is_text_file("texts.csv")
    assert not is_text_file("data.py:texts")
