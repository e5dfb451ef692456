"""Rematerialisation of real models: the same training, planned and measured in less memory."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.remats import MODELS, run_models

pytestmark = [pytest.mark.tf, pytest.mark.slow]  # CI compares recomputed cells in test_composition
CODE = """
result["sequential"] = same(blocks, steps_per_execution=2)
result["subclassed"] = same(subclassed, run_eagerly=True)
result["bfloat16"] = same(transformer, policy="mixed_bfloat16", run_eagerly=True)
result["nested"] = same(nested)
result["transformer"] = same(transformer)
result["functional"] = same(residual, "block[01]_*")
result["chain"] = same(chain)
result["recurrent"] = same(recurrent)
result["xla"] = same(residual, jit_compile=True)
result["mirrored"] = same(blocks, strategy=tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))

model, plan, _, x = trained(residual, "blocks")
path = os.path.join(tempfile.mkdtemp(), "model.keras")
model.save(path)
again = keras.saving.load_model(path)
result["saved"] = apart([model.predict(x, verbose=0)], [again.predict(x, verbose=0)])
inner = list(model._flatten_layers())
marks = lambda: sum("call" in vars(x) or "_run_through_graph" in vars(x) for x in inner)
result["marks"] = [marks(), plan.undo(), marks()]

lean = plan.peak_bytes + (plan.peak_bytes_before - plan.peak_bytes) // 2
some = apply_remat(model, str(lean), batch_size=8)
result["some"] = {"asked": lean, "got": some.peak_bytes, "extra": some.extra_compute,
                  "full": plan.extra_compute, "names": some.names}
some.undo()
enough = apply_remat(model, "1GiB", batch_size=8)
result["enough"] = [enough.names, enough.notes]
result["refused"] = {
    "bytes": said(lambda: apply_remat(model, "1KB", batch_size=8)),
    "name": said(lambda: apply_remat(model, "blok1_conv", batch_size=8)),
    "useless": said(lambda: apply_remat(model, "block1_add", batch_size=8)),
}
class Flat(keras.Model):
    def __init__(self):
        super().__init__()
        self.one, self.two = L.Dense(8), L.Dense(8)
    def call(self, x):
        return self.two(self.one(x))
flat = Flat()
result["refused"]["unbuilt"] = said(lambda: apply_remat(flat, "blocks", batch_size=8))
result["refused"]["blocks"] = said(lambda: apply_remat(flat, "blocks", batch_size=8, inputs=x))
"""
MEMORY = """
import os
os.environ |= {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "4000"}
"""
PEAKS = """
import glob
from tensorflow.tsl.profiler.protobuf import xplane_pb2

def wide():
    return keras.Sequential([keras.Input((64,)), *[Block(64) for _ in range(12)], L.Dense(1)])

def peak(wanted, jit):
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    model = wide()
    model.compile(keras.optimizers.SGD(1e-3), "mse", jit_compile=jit)
    plan = apply_remat(model, wanted, batch_size=8192) if wanted else None
    data = tf.data.Dataset.from_tensors((tf.ones((8192, 64)), tf.ones((8192, 1))))
    model.fit(data, verbose=0)
    folder = tempfile.mkdtemp()
    with tf.profiler.experimental.Profile(folder):
        model.fit(data, verbose=0)
    space = xplane_pb2.XSpace()
    with open(glob.glob(folder + "/**/*.xplane.pb", recursive=True)[0], "rb") as file:
        space.ParseFromString(file.read())
    sizes = []
    for plane in space.planes:
        names = {number: each.name for number, each in plane.stat_metadata.items()}
        kinds = {number: each.name for number, each in plane.event_metadata.items()}
        sizes += [stat.int64_value or stat.uint64_value
                  for line in plane.lines for event in line.events
                  if kinds[event.metadata_id].startswith("Memory")
                  for stat in event.stats if names[stat.metadata_id] == "bytes_allocated"]
    return max(sizes) - min(sizes), plan and [plan.peak_bytes_before, plan.peak_bytes]

result = {str(jit): [peak("", jit), peak("blocks", jit)] for jit in (False, True)}
"""


@functools.cache
def results() -> dict[str, Any]:
    return run_models(CODE)


@functools.cache
def memory() -> dict[str, Any]:
    """Peaks of TensorFlow's own allocator over a step, without XLA and with it."""
    return in_tensorflow(MEMORY + MODELS + PEAKS)


CASES = (
    "sequential chain recurrent subclassed nested transformer functional xla bfloat16 mirrored"
).split()


@pytest.mark.parametrize("case", CASES)
def test_losses_weights_averages_and_masks_are_those_of_plain_training(case: str) -> None:
    found = results()[case]
    assert found["names"]
    assert found["apart"] <= 1e-6  # of all variables: weights, moving averages, states of seeds
    assert found["found"] == pytest.approx(found["losses"], rel=1e-6)
    assert found["extra"] > 0.1


def test_the_last_block_is_left_as_its_gradient_comes_at_once() -> None:
    assert results()["sequential"]["names"] == ["block", "block_1"]


def test_names_with_wildcards_choose_stretches_of_a_functional_model() -> None:
    found = results()["functional"]
    assert found["names"] == ["block0_conv..block0_add", "block1_conv..block1_add"]
    assert found["after"] < found["before"]


def test_blocks_that_save_nothing_are_told() -> None:
    assert results()["nested"]["notes"] == [
        "Recomputing saves nothing here, as predicted: one part makes the peak."
    ]


def test_a_budget_is_met_by_fewer_blocks() -> None:
    some = results()["some"]
    assert some["got"] <= some["asked"]
    assert 0 < some["extra"] < some["full"]
    names, notes = results()["enough"]
    assert names == []
    assert notes[0].startswith("Nothing is recomputed: the activations take 1")


def test_what_cannot_be_done_is_refused_in_a_sentence() -> None:
    refused = results()["refused"]
    assert refused["bytes"].startswith("remat = 1KB cannot be met at batch_size = 8: the activ")
    assert refused["bytes"].endswith("recomputed; give as much, or a smaller batch_size.")
    assert refused["name"].startswith("remat names blok1_conv, which no layer is called; it has bl")
    assert refused["useless"].startswith("remat = block1_add saves nothing")
    assert refused["unbuilt"].startswith("remat needs the shapes of what flat takes")
    assert refused["blocks"].startswith("flat has no blocks to recompute")


def test_a_plan_is_undone_without_a_trace_and_a_model_is_saved_as_ever() -> None:
    before, _, after = results()["marks"]
    assert (before, after) == (1, 0)
    assert results()["saved"] <= 1e-6


@pytest.mark.parametrize("compiled", ["False", "True"])
def test_a_step_takes_a_third_of_the_memory_also_with_xla(compiled: str) -> None:
    (plain, _), (less, (before, after)) = memory()[compiled]
    assert less < 0.35 * plain
    # The prediction is of activations; gradients and what a kernel needs for itself come to it.
    assert before == pytest.approx(plain, rel=0.4)
    assert after <= less <= after + 0.25 * plain
