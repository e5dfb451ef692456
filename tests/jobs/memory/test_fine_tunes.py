"""jobs/memory/_fine_tunes: what is tried for a preset that does not fit, and what stays."""

from __future__ import annotations

from dataclasses import replace

from tfdyno.core.choose.workload import FineTune, HubModel
from tfdyno.jobs.memory._fine_tunes import fine_tunes


def test_other_ways_to_train_a_preset_come_one_on_top_of_the_other() -> None:
    named = HubModel(backbone="GPT2Backbone", config="{}", longest=1024, fine_tune=FineTune())
    made = fine_tunes(named, 512)
    assert made == (
        FineTune(lora_rank=8),
        FineTune(lora_rank=8, quantize="int8"),
        FineTune(lora_rank=8, quantize="int4"),
        FineTune(lora_rank=8, quantize="int4", sequence_length=256),
        FineTune(lora_rank=8, quantize="int4", sequence_length=128),
        FineTune(lora_rank=8, quantize="int4", sequence_length=64),
    )


def test_what_was_asked_of_a_preset_stays_in_every_other_way_to_train_it() -> None:
    asked = FineTune(sequence_length=512, lora_rank=4, quantize="int8")
    named = HubModel(backbone="GPT2Backbone", config="{}", longest=1024, fine_tune=asked)
    assert fine_tunes(named, 512) == (replace(asked, quantize="int4"),)
    eighth = FineTune(quantize="float8")
    assert fine_tunes(replace(named, fine_tune=eighth), 64) == ()
    assert fine_tunes(replace(named, fine_tune=FineTune(quantize="int4")), 96) == (
        FineTune(lora_rank=8, quantize="int4"),
    )
