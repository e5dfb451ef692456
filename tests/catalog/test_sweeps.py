from __future__ import annotations

from tfdyno.catalog.gpus import find
from tfdyno.catalog.sweeps import reference_sweep
from tfdyno.catalog.time_model import time_model
from tfdyno.jobs.bench.calibrate import shared_copy
from tfdyno.model.time.calibrate.constants import Reference, moved_constants
from tfdyno.model.time.calibrate.verdict import verdict


def test_the_reference_holds_kernels_of_every_type_without_a_name_of_its_machine() -> None:
    card = reference_sweep()
    assert {(one.kernel.dtype, one.tf32) for one in card.kernels} == {
        ("f32", False), ("f32", True), ("f16", False), ("bf16", False),
    }  # fmt: skip
    assert {one.execution for one in card.kernels} == {"xla", "graph"}
    assert shared_copy(card) == card


def test_the_card_of_the_reference_keeps_its_constants_and_is_as_it_should_be() -> None:
    card = reference_sweep()
    gpu, model = find(card.card), time_model(card.generation)
    known = Reference(card=card, gpu=gpu)
    moved = moved_constants(model, gpu, card, same_software=True, reference=known)
    assert len(moved) > 8
    assert all(abs(one.after / one.before - 1.0) < 1e-9 for one in moved)
    assert verdict(card, gpu, model, known).grade == "as it should"
