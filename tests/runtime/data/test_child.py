"""The child that measures a pipeline: request in, feed and versions out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.forks import handled

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.measure.feed import Feed
from tfdyno.core.messages.data import DATA, MeasureData, Plan
from tfdyno.jobs.choose.reference import parse_reference

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
PLAN = Plan(rounds=1, seconds_s=0.1, looks=1, look_s=0.3, fewer_cpus=False)
SCRIPT = """
import keras, numpy as np
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((200, 8)), np.ones(200), batch_size=50)
print("not reached")
"""


def answer(folder: Path, reference: str, **more: Any) -> dict[str, Any]:
    request = MeasureData(workload=parse_reference(reference), plan=PLAN, **more)
    return handled(DATA, request, folder)


def test_a_script_is_left_at_its_fit(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    found = answer(tmp_path, str(tmp_path / "train.py"))
    feed = from_builtins(found["feed"], Feed)
    assert (feed.kind, feed.batch_size, feed.samples_per_epoch) == ("arrays", 50, 200)
    assert len(feed.rounds) == 1
    assert feed.reference == str(tmp_path / "train.py")
    assert found["software"]["tensorflow"]
    assert "not reached" not in found["printed"]


def test_a_task_brings_small_real_data(tmp_path: Path) -> None:
    found = answer(tmp_path, "task:resnet18-cifar10", batch_size=64)
    feed = from_builtins(found["feed"], Feed)
    assert (feed.title, feed.batch_size) == ("resnet18-cifar10", 64)
    assert "small, and not what task:resnet18-cifar10 is known for" in feed.notes[0]


def test_a_script_without_a_fit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    found = answer(tmp_path, str(tmp_path / "train.py"))
    assert "has no call 1 of fit: it ended without fit" in found["refused"]
    assert found["exit_code"] == 2
