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

def chained(*layers, shape=(64,), dtype="float32"):
    keras.backend.clear_session()
    return planned(keras.Sequential([keras.Input(shape, dtype=dtype), *layers]))

dense = lambda count: [L.Dense(64, "relu") for _ in range(count)]
result["chain"] = chained(*dense(28))
result["narrowing"] = chained(*[L.Dense(units, "relu") for units in (128, 64, 32)], L.Dense(1))
result["shallow"] = chained(L.Dense(64, "relu"), L.Dense(10))
result["models"] = chained(*[keras.Sequential(dense(8)) for _ in range(2)], L.Dense(1))
result["loops"] = chained(
    *[L.SimpleRNN(32, return_sequences=True) for _ in range(4)], L.Dense(1), shape=(20, 8))
words = L.TextVectorization(50, output_sequence_length=16)
words.set_vocabulary(["a", "b"])
convolved = [L.Conv1D(32, 3, padding="same", activation="relu") for _ in range(6)]
result["words"] = chained(words, L.Embedding(50, 32), *convolved, L.GlobalMaxPooling1D(),
                          L.Dense(1), shape=(1,), dtype="string")

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


def test_a_chain_of_like_layers_holds_the_root_of_twice_their_number() -> None:
    found = results()["chain"]
    assert found["before"] == 28 * 8 * 64 * 4
    assert found["after"] == 7 * 8 * 64 * 4  # 7 + 6 + ... + 1 = 28
    assert 3 <= len(found["names"]) <= 7


def test_a_chain_that_narrows_is_recomputed_where_it_is_wide() -> None:
    found = results()["narrowing"]
    # results of 128, 64, 32 and 1 at batch 8; of the last nothing is read by a gradient
    assert (found["before"], found["after"]) == (8 * 224 * 4, 8 * 192 * 4)
    assert found["names"] == ["dense..dense_1"]


def test_a_chain_too_short_to_save_anything_is_told_and_trained() -> None:
    found = results()["shallow"]
    assert found["names"] == []
    assert found["notes"] == [
        "Nothing is recomputed: no cut of the model lowers what activations take."
    ]


def test_models_in_a_chain_are_cut_inside() -> None:
    found = results()["models"]
    assert found["before"] == 16 * 8 * 64 * 4
    assert found["after"] <= found["before"] / 2
    assert all(name.startswith("dense") for name in found["names"])


def test_what_a_loop_pushes_in_each_turn_is_seen() -> None:
    found = results()["loops"]
    # each of 20 turns pushes its result and its state before, 32 floats of 8 samples, in 4 layers
    assert found["before"] >= 4 * 20 * 2 * 8 * 32 * 4
    assert found["names"][0].startswith("simple_rnn")
    assert found["after"] < 0.7 * found["before"]


def test_the_batch_that_words_forget_is_counted() -> None:
    found = results()["words"]
    assert found["before"] > 6 * 8 * 16 * 32 * 4
    assert found["after"] < 0.7 * found["before"]
