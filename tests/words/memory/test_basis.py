from __future__ import annotations

from dataclasses import replace

import pytest
from tests.advice import estimate

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.program import Rematerialisation
from tfdyno.core.choose.workload import FineTune, Workload
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.words.memory.basis import (
    UNVERIFIED,
    proof,
    recomputed,
    slower,
    standing,
    standings,
    taken,
    train_command,
    typed,
)

GIB = 2.0**30
MET = Rematerialisation(
    need_bytes=20.1 * GIB, held_bytes=13.3 * GIB, limit_bytes=13.5 * GIB, limit_met=True,
    instruction_count=45,
)  # fmt: skip


def test_what_is_kept_whole_is_not_mentioned() -> None:
    one = estimate(batch_size=64)
    assert (recomputed(None), slower(one)) == ("", "")


def test_need_and_what_is_held_are_told_apart() -> None:
    assert recomputed(MET) == "needs 20.1 GiB; XLA recomputes to hold it in 13.3 GiB"


def test_a_limit_that_was_missed_is_said() -> None:
    missed = replace(MET, limit_met=False, limit_bytes=11.9 * GIB)
    assert recomputed(missed).endswith("in 13.3 GiB, short of the 11.9 GiB that it aims at")


def test_recomputing_takes_time_that_is_not_in_the_estimate() -> None:
    one = replace(estimate(batch_size=64), rematerialisation=MET)
    assert slower(one) == (
        "The step needs 20.1 GiB; XLA recomputes to hold it in 13.3 GiB: 45 operations run twice, "
        "which the time shown leaves out."
    )


@pytest.mark.parametrize("again", [None, MET])
def test_only_a_compile_at_the_batch_is_proof(again: Rematerialisation | None) -> None:
    one = replace(estimate(batch_size=64), rematerialisation=again, fits_verified=False)
    assert proof(one) == ""
    words = proof(replace(one, fits_verified=True))
    assert words.startswith(", compiled at this very batch")
    assert words.endswith(recomputed(again))


def test_the_label_stays_until_a_card_was_measured() -> None:
    one = estimate(batch_size=64)
    assert standing(one) == UNVERIFIED == "unverified on a device"
    assert standing(replace(one, memory_measured_on="A100")) == "compared with A100"


def test_a_command_can_be_typed_as_it_stands() -> None:
    script = Workload(reference="my run.py", kind="script", script_arguments=("--deep", "a b"))
    assert typed("train", script, "--recipe", "fit it.toml") == (
        "tfdyno train 'my run.py' --recipe 'fit it.toml' -- --deep 'a b'"
    )
    model = Workload(reference="model.py:make", kind="function")
    assert typed("advise", model) == "tfdyno advise model.py:make"


def test_a_command_about_a_preset_says_how_it_is_trained() -> None:
    asked = FineTune(task="causal_lm", sequence_length=512, lora_rank=8, quantize="int4")
    preset = parse_reference("keras_hub:gemma_2b_en", fine_tune=asked)
    assert typed("memory", preset, "--plan") == (
        "tfdyno memory keras_hub:gemma_2b_en --task causal_lm --seq 512 --lora 8 --quantize int4 "
        "--plan"
    )
    plain = parse_reference("keras_hub:gemma_2b_en", fine_tune=FineTune())
    assert typed("advise", plain) == "tfdyno advise keras_hub:gemma_2b_en"
    assert train_command(preset, "fit.toml") == "tfdyno train SCRIPT.py --recipe fit.toml"


def test_a_model_alone_is_trained_with_data_of_the_reader() -> None:
    alone = Workload(reference="model.keras", kind="keras_file")
    words = "tfdyno train model.keras --data FILE.py:FUNCTION --recipe fit.toml"
    assert train_command(alone, "fit.toml") == words
    script = Workload(reference="train.py", kind="script")
    assert train_command(script, "fit.toml") == "tfdyno train train.py --recipe fit.toml"


def test_cards_of_a_generation_that_was_measured_are_told_from_the_others() -> None:
    one = estimate(batch_size=64)
    known = replace(one, memory_measured_on="an H200")
    assert standings([one, one]) == UNVERIFIED
    assert standings([known, known]) == "compared with an H200"
    assert standings([one, known]) == (
        "compared with an H200 for cards of that generation, else unverified on a device"
    )


def test_what_a_process_takes_is_told_with_its_reason() -> None:
    one = estimate(batch_size=64)
    assert taken(replace(one, process_memory_bytes=None)) == ""
    held = Interval(low=4 * GIB, best=8 * GIB, high=16 * GIB)
    assert taken(replace(one, process_memory_bytes=held)).startswith(
        "nvidia-smi shows 4 GiB to 16 GiB:"
    )
