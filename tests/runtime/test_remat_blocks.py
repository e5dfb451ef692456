"""How the parts of a model are found."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.remats import run_models

pytestmark = pytest.mark.tf
CODE = """
class Stage(L.Layer):
    def __init__(self, **how):
        super().__init__(**how)
        self.parts = [Block() for _ in range(4)]
    def call(self, x):
        for part in self.parts:
            x = part(x)
        return x

def planned(model, wanted="blocks", **how):
    plan = apply_remat(model, wanted, batch_size=8, **how)
    return {"names": plan.names, "notes": plan.notes, "before": plan.peak_bytes_before,
            "after": plan.peak_bytes}

keras.backend.clear_session()
stages = keras.Sequential([keras.Input((16,)), Stage(), Stage()])
result["stages"] = planned(stages)
marked = [x for x in stages._flatten_layers() if "call" in vars(x)]
result["stages"]["of"] = "/".join(sorted({type(x).__name__ for x in marked}))

keras.backend.clear_session()
backbone = keras.applications.MobileNetV2(weights=None, include_top=False, input_shape=(32, 32, 3))
result["backbone"] = planned(keras.Sequential([backbone, L.GlobalAveragePooling2D(), L.Dense(2)]))

keras.backend.clear_session()
unknown = Subclassed()
unknown(np.ones((8, 16), "f"))
result["unknown"] = planned(unknown)
result["unknown"]["budget"] = said(lambda: apply_remat(unknown, "1MB", batch_size=8))
"""


@functools.cache
def results() -> dict[str, Any]:
    return run_models(CODE)


def test_blocks_within_blocks_are_taken_where_that_lowers_the_peak() -> None:
    found = results()["stages"]
    assert found["of"] == "Block"  # four in each of two stages, and not the stages
    assert 4 <= len(found["names"]) <= 8
    assert len(set(found["names"])) == len(found["names"])


def test_a_backbone_inside_a_model_is_cut() -> None:
    found = results()["backbone"]
    assert len(found["names"]) >= 2
    assert found["after"] < 0.7 * found["before"]


def test_without_shapes_blocks_are_taken_as_they_are_and_a_budget_is_refused() -> None:
    found = results()["unknown"]
    assert found["names"] == ["block", "block_1", "block_2"]
    assert found["notes"][0].startswith("What remat saves is not foreseen")
    assert found["budget"].startswith("remat = 1MB cannot be planned")
