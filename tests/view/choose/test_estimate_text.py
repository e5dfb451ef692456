from __future__ import annotations

import re

import pytest
from tests.advice import GIB, estimate, exactly

from tfdyno.core.base.interval import Interval
from tfdyno.core.base.settings import EXECUTIONS
from tfdyno.core.choose.program import Rematerialisation
from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.view.base.text import shown_width
from tfdyno.view.choose.estimate_text import estimate_text, headline
from tfdyno.words.base.language import speaking

NAMES = {"card": "Tesla T4", "other": "NVIDIA L4"}
TRACE = Trace(
    workload=Workload(reference="train.py", kind="script"),
    title="resnet",
    batch_size=296,
    marker=37,
    script_batch_size=0,
    policy="float32",
    path="jax",
    path_reason="",
    loss="mse",
    optimizer="adam",
    execution="xla",
    parameter_count=10,
    trainable_parameter_count=10,
    tensors=(),
    stablehlo_sha256="",
    seconds_s=1.0,
    script_seconds_s=1.0,
    versions={},
    warnings=("The script reads nothing.",),
)


def text(*estimates: object, notes: tuple[str, ...] = ()) -> str:
    """The text on a screen so wide that nothing is wrapped."""
    return estimate_text(estimates, TRACE, NAMES, batch_source="as asked", notes=notes, width=400)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fits", "words"),
    [
        ("yes", "Fits: 10.0 of 80 GiB."),
        ("no", "Does not fit: 10.0 of 80 GiB."),
        ("unverified", "Should fit: 10.0 of 80 GiB."),
        ("may not", "May not fit: 10.0 of 80 GiB."),
    ],
)
def test_the_first_line_has_step_range_and_memory(fits: str, words: str) -> None:
    one = estimate(fits=fits, step_s=Interval(low=0.08, best=0.1, high=0.13))
    start = "resnet at batch 100 on T4: about 100 ms a step (80–130)."
    assert headline(one, TRACE, NAMES) == f"{start} {words}"


def test_details_name_causes_parts_and_the_limit() -> None:
    shown = text(estimate())
    assert "memory traffic 70%, arithmetic 30%" in shown
    assert "activations 8.0, context 1.0" in shown
    assert "up to 800 per replica fits (computed, --verify compiles it)" in shown
    assert "first step" not in shown  # nothing to compile
    assert "The script reads nothing." in shown


def test_what_fit_adds_for_data_in_host_memory_has_a_line_of_its_own() -> None:
    inputs = {"memory_parts_bytes": {"inputs": 64 * 2**20}}
    fed = Interval(low=0.11, best=0.12, high=0.14)
    shown = text(estimate(**inputs, fit_step_s=fed))
    assert "in fit" in shown
    assert "about 120 ms a step (110–140) with data in host memory: 64 MiB a batch" in shown
    assert "in fit" not in text(estimate(**inputs, fit_step_s=exactly(0.101)))
    assert "in fit" not in text(estimate())


def test_a_checked_limit_and_none_at_all_are_told_apart() -> None:
    assert "(compiled and checked)" in text(estimate(max_batch_verified=True))
    assert "not even one sample fits" in text(estimate(max_batch_size=0, fits="no"))
    most = text(estimate(max_batch_size=1 << 20))
    assert "1,048,576 or more per replica fits" in most
    assert "compile" not in most.partition("1,048,576")[2].splitlines()[0]
    unknown = text(estimate(max_batch_size=None))
    assert "largest not known: the batch is part of the model" in unknown


def test_a_step_that_fits_by_recomputing_never_says_so_without_a_note() -> None:
    again = Rematerialisation(
        need_bytes=20.1 * GIB, held_bytes=13.3 * GIB, limit_bytes=13.5 * GIB, limit_met=True,
        instruction_count=45,
    )  # fmt: skip
    note = "needs 20.1 GiB; XLA recomputes to hold it in 13.3 GiB"
    shown = " ".join(text(estimate(fits_verified=True, rematerialisation=again)).split())
    assert f"compiled at this very batch: {note}." in shown
    assert "45 operations run twice, which the time shown leaves out." in shown
    most = estimate(max_batch_verified=True, max_batch_rematerialisation=again)
    assert f"(compiled and checked: {note})" in " ".join(text(most).split())


def test_memory_is_labelled_until_it_was_measured() -> None:
    assert "peak memory unverified on a device" in text(estimate())
    assert "unverified" not in text(estimate(memory_measured_on="A100"))


def test_energy_is_told_for_an_epoch_where_its_length_is_known() -> None:
    assert "30 J a step" in text(estimate())
    assert "an epoch" not in text(estimate())
    known = estimate(energy_kwh_per_epoch=Interval(low=0.2, best=0.25, high=0.31))
    assert "30 J a step (30), 0.25 kWh an epoch (0.20–0.31)" in text(known)


def test_several_cards_begin_with_the_quickest_and_count_what_does_not_fit() -> None:
    slow = estimate(samples_per_s=exactly(500.0), fits="no")
    quick = estimate(gpu="other", replicas=2)
    first = text(slow, quick).splitlines()
    assert first[0].startswith("resnet at batch 100: 2 x L4 is the quickest, about 100 ms a step")
    assert "1 of 2 do not fit." in text(slow, quick)


def test_probably_is_not_counted_as_surely() -> None:
    doubtful = estimate(fits="unverified", usable_memory_bytes=8 * GIB)
    shown = text(estimate(), doubtful, estimate(gpu="other", fits="no"))
    assert "1 of 3 do not fit, 1 of 3 probably do not (no?)." in shown


def test_equal_cards_share_the_first_place() -> None:
    shown = text(estimate(), estimate(gpu="other"))
    assert shown.startswith("resnet at batch 100: T4 and L4 are the quickest, about 100 ms a step")


def test_more_cards_with_longer_steps_are_told_by_their_rate() -> None:
    several = estimate(
        replicas=8, global_batch_size=800, step_s=exactly(0.2), samples_per_s=exactly(4000.0)
    )
    told = text(estimate(), several).splitlines()[0]
    assert "8 x T4 has the most samples/s, about 4,000, about 200 ms a step" in told


def test_rows_that_run_in_another_way_are_told_apart() -> None:
    shown = text(estimate(), estimate(replicas=8, execution="graph"))
    assert "XLA on one GPU, graph without XLA on several" in shown


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_every_execution_is_told_in_words(execution: str) -> None:
    words = {
        "xla": "XLA",
        "graph": "graph without XLA",
        "eager-torch": "eager PyTorch",
        "compiled-torch": "compiled PyTorch",
    }
    assert f"mixed_float16, {words[execution]}, batch" in text(estimate(execution=execution))


def test_only_rows_under_xla_are_told_how_to_compile_them() -> None:
    quick = {"made_by": {"time": "quick", "memory": "quick"}, "compiled_for": ""}
    single = estimate(**quick)
    assert "memory not compiled, --route exact does" in text(single)
    joined = estimate(replicas=8, execution="graph", **quick)
    assert "memory not compiled, traced by jax" in text(joined)
    compiled = "memory compiled for 1 of {} rows (compute capability 8.x), {}"
    assert compiled.format(2, "traced") in text(estimate(), joined)
    assert compiled.format(3, "--route") in text(estimate(), single, joined)


def test_the_program_that_was_compiled_is_named_also_where_it_is_another_familys() -> None:
    ampere, hopper = estimate(gpu="card"), estimate(gpu="other", compiled_for="9.x")
    assert "memory compiled for compute capability 8.x, traced" in text(ampere)
    told = "memory compiled for compute capability 8.x and 9.x, traced"
    assert told in text(ampere, hopper, ampere)


def test_a_warning_about_some_rows_names_them() -> None:
    held = estimate(gpu="other", warnings=("The GPU waits.",))
    assert "\nL4: The GPU waits." in text(estimate(), held)
    assert "\nThe GPU waits." in text(held, held)
    many = [held] * 4
    assert "\n4 of 5 rows: The GPU waits." in text(estimate(), *many)


def test_where_nothing_fits_the_nearest_card_is_named() -> None:
    small = estimate(fits="no", usable_memory_bytes=4 * GIB)
    larger = estimate(gpu="other", fits="no", usable_memory_bytes=8 * GIB)
    shown = text(small, larger)
    assert shown.startswith("resnet at batch 100 fits none of them: L4 would need 10.0 of 8 GiB.")


def test_notes_and_the_link_are_told() -> None:
    shown = text(estimate(replicas=2, link="nvlink3"), notes=("The compiler is missing.",))
    assert "The compiler is missing." in shown
    assert "link nvlink3" in shown


def test_the_network_between_nodes_is_told_beside_the_link_within() -> None:
    one = estimate(replicas=16, nodes=2, link="nvlink3", network="8xib-ndr-400")
    assert "link nvlink3, 8xib-ndr-400 between nodes, " in text(one)
    alone = estimate(replicas=2, nodes=2, link="eth-25g", network="eth-25g")
    assert "between nodes" not in text(alone)


def test_what_is_too_large_by_the_quick_route_is_not_called_fitting() -> None:
    doubtful = estimate(fits="unverified", usable_memory_bytes=8 * GIB)
    told = headline(doubtful, TRACE, NAMES)
    assert told.endswith("Probably does not fit (memory not compiled): 10.0 of 8 GiB.")
    assert "fits none of them" in text(doubtful, doubtful)


def test_in_chinese_labels_are_aligned_by_columns_of_the_screen() -> None:
    with speaking("zh"):
        shown = estimate_text([estimate()], TRACE, NAMES, batch_source="as asked", width=80)
    first, _, *details = shown.splitlines()
    assert first.startswith("resnet，批大小 100，T4：单步约 100 ms")
    rows = [line for line in details if line[:2] == "  " and line[2:3].strip()]
    labels = [re.match(r"  \S+(?: 中)? {2,}", line) for line in rows]
    assert len(labels) > 3
    assert len({shown_width(label[0]) for label in labels if label}) == 1
