"""The answer of a look at memory alone, as a person and as a script reads it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.view.diagnoses import FACTS, HEALTHY, LEAK, only

from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.fix_proof import ProvenDiagnosis
from tfdyno.core.measure.memory_outlook import MemoryOutlook
from tfdyno.core.measure.step_facts import FitsFacts
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.view.diagnose.document import DiagnoseReport
from tfdyno.view.diagnose.growth_text import (
    end_words,
    fits_words,
    full_words,
    growth_document,
    growth_text,
    growth_words,
)

MIB, GIB = 2.0**20, 2**30
HOST = MemoryOutlook(
    where="host", grows=True, counted_by="allocator", steps=180, used_bytes=2 * GIB,
    bytes_per_step=Interval(low=MIB, best=2 * MIB, high=4 * MIB), free_bytes=16 * GIB,
    full_in_steps=Interval(low=4096.0, best=8192.0, high=16384.0),
    full_in_s=Interval(low=5400.0, best=10_800.0, high=21_600.0),
    training_steps=3000, until_end_bytes=6000 * MIB, kind="tensors",
)  # fmt: skip
FLAT = MemoryOutlook(
    where="GPU:0", grows=False, counted_by="allocator", steps=200,
    bytes_per_step=Interval(low=-10.0, best=0.0, high=512.0),
)  # fmt: skip


def told(*growth: MemoryOutlook, leaks: bool = True) -> DiagnoseReport:
    diagnosis = replace(only(LEAK if leaks else HEALTHY), split_s={}, compute_s={})
    return DiagnoseReport(
        proven=ProvenDiagnosis(diagnosis=diagnosis, recipe=Recipe()), facts=FACTS,
        reference="train.py", base=Recipe(), growth=growth,
    )  # fmt: skip


def test_growth_is_told_with_its_interval_and_its_account() -> None:
    assert growth_words(HOST) == (
        "grows by 2 MiB a step (1 MiB to 4 MiB), seen in 180 steps, by what the allocators have in "
        "use; 2 GiB in use"
    )


def test_tensors_in_the_hosts_memory_are_said_to_be_a_part_of_it() -> None:
    tensors = replace(FLAT, where="CPU:0", used_bytes=GIB)
    assert growth_words(tensors) == (
        "no growth above 512 B a step, tensors of 256 KiB and more, a part of the host's; 1 GiB in "
        "use"
    )


def test_where_nothing_grows_the_bound_and_the_steps_are_told() -> None:
    assert growth_words(FLAT) == (
        "no growth above 512 B a step, seen in 200 steps, by what the allocators have in use"
    )
    falls = replace(FLAT, bytes_per_step=Interval(low=-9.0, best=-5.0, high=-1.0))
    assert growth_words(falls).startswith("no growth above 0 B a step")


def test_the_hour_at_which_it_is_full_names_what_is_free() -> None:
    assert full_words(HOST) == (
        "in about 3 h at this rate (1.5 h to 6 h; 8,200 steps), on the 16 GiB that are free"
    )
    assert full_words(FLAT) == ""
    unknown = replace(HOST, full_in_s=None, full_in_steps=None)
    assert full_words(unknown) == "when it is full cannot be said: what is free is not known"


@pytest.mark.parametrize(
    ("free", "ending"), [(16 * GIB, ""), (4 * GIB, ", more than is free"), (0, "")]
)
def test_a_training_of_known_length_is_told_what_it_will_take(free: int, ending: str) -> None:
    words = end_words(replace(HOST, free_bytes=free))
    # By hand: 3,000 steps at 2 MiB, and at 1 and 4 MiB; how much is free may not be known.
    said = "the 3,000 steps of this training take 5.86 GiB (2.93 GiB to 11.7 GiB)"
    assert words == f"{said}{ending}"
    assert end_words(FLAT) == ""


def test_the_answer_has_growth_first_and_then_what_keeps_it() -> None:
    lines = growth_text(told(HOST, FLAT), width=90).split("\n")
    at = {name: next(n for n, line in enumerate(lines) if line.startswith(f"  {name} "))
          for name in ("host", "full", "GPU:0", "cause", "because", "fix")}  # fmt: skip
    assert list(at.values()) == sorted(at.values())
    assert lines[0] == LEAK.summary
    assert max(map(len, lines)) <= 90
    assert "█" not in "\n".join(lines)  # where the time goes was not asked for


def test_without_any_account_of_tensors_that_is_said() -> None:
    assert "device" not in growth_text(told(HOST, FLAT))
    text = growth_text(told(HOST), width=200)
    assert "no card, and TensorFlow keeps no account of a CPU's tensors here" in text
    card = replace(told(HOST), facts=replace(FACTS, device="gpu"))
    assert "no card" not in growth_text(card, width=200)
    assert "how the card's memory moves is not known" in growth_text(card, width=200)


def test_tensors_that_are_a_part_of_the_host_have_no_end_of_their_own() -> None:
    tensors = replace(HOST, where="CPU:0", free_bytes=0, full_in_s=None, full_in_steps=None)
    text = growth_text(told(HOST, tensors), width=200)
    assert text.count("of this training take") == 1
    assert text.count("  full ") == 1


def test_the_document_has_the_host_and_each_device_by_name() -> None:
    found = growth_document(told(HOST, FLAT))
    assert found["grows"] is True
    assert found["host"]["bytes_per_step"] == {"low": MIB, "best": 2 * MIB, "high": 4 * MIB}
    assert found["host"]["full_in_s"]["best"] == 10_800.0
    assert list(found["devices"]) == ["GPU:0"]
    assert found["devices"]["GPU:0"]["grows"] is False
    assert growth_document(told(leaks=False)) == {
        "grows": False, "step_s": only(HEALTHY).step_s, "host": None, "devices": {},
    }  # fmt: skip


FITS = FitsFacts(
    fits=9, counted_by="allocator", begin_bytes=(1,) * 9, models=(2,) * 9, is_told=True,
    low_bytes_per_fit=7 * MIB, bytes_per_fit=8 * MIB, high_bytes_per_fit=9 * MIB,
)  # fmt: skip


def test_growth_from_fit_to_fit_is_told_with_its_range() -> None:
    found = told(HOST)
    leak = replace(LEAK, cause="leak.each_fit")
    diagnosis = replace(found.proven.diagnosis, findings=(leak,), primary=leak)
    proven = replace(found.proven, diagnosis=diagnosis)
    found = replace(found, proven=proven, facts=replace(FACTS, fits=FITS))
    words = (
        "grows by 8 MiB from fit to fit (7 MiB to 9 MiB), seen in 9 fits, by what the allocators "
        "have in use"
    )
    assert fits_words(found) == words
    assert growth_document(found)["grows"] is True


def test_fits_that_leave_little_behind_are_told_by_their_bound() -> None:
    found = replace(told(FLAT, leaks=False), facts=replace(FACTS, fits=FITS))
    assert fits_words(found).startswith("no growth above 9 MiB from fit to fit, seen in 9 fits")
    assert growth_document(found)["grows"] is False
    assert fits_words(told(FLAT)) == ""
