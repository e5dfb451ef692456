"""view/bench_text: the answer comes first, with units, within 80 columns."""

from __future__ import annotations

from dataclasses import replace

from tests.core.measure.test_measurement_document import ONE, SUMMARY, TOLD
from tests.measurements import TASK, measurement

from tfdyno.core.measure.measurement import Comparison, Protocol
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.view.bench.text import bench_text, headline, next_words, report_text


def text(**changes: object) -> str:
    one = replace(ONE, **changes)  # type: ignore[arg-type]
    return bench_text(replace(TOLD, measurement=one))


def test_the_answer_is_the_first_line() -> None:
    assert text().startswith(
        "convnet at batch 64 on 2 CPUs (a CPU): 100 ms a step (90–110), 640 images/s.\n"
    )
    assert headline(replace(ONE, label="before"), SUMMARY).startswith("before: convnet at")


def test_doubts_stand_right_below_the_answer() -> None:
    assert text().split("\n\n")[1] == "! The steps vary by 9 %."


def test_every_run_has_its_line() -> None:
    table = text().split("\n\n")[2].splitlines()
    assert table[0].split() == [
        "run", "step", "samples", "steps", "warm-up", "first", "step", "memory", "accuracy",
    ]  # fmt: skip
    assert table[1].split() == [
        "1", "100", "ms", "2", "of", "4", "3", "1", "1.00", "s", "1", "GiB", "0.800",
    ]  # fmt: skip
    assert len(table) == 3


def test_made_up_data_shows_no_accuracy() -> None:
    assert "accuracy" not in text(protocol=Protocol(data="synthetic"))


def test_settings_target_and_what_was_left_out_are_told() -> None:
    task = replace(TASK, notes=("2 callbacks of fit were left out: EarlyStopping, CSVLogger.",))
    protocol = Protocol(epochs=3, target_metric="accuracy", target_value=0.9)
    runs = (replace(ONE.runs[0], seconds_to_target_s=40.0), ONE.runs[1])
    shown = text(task=task, recipe=Recipe(batch_size=64), protocol=protocol, runs=runs)
    assert "settings    batch_size=64" in shown
    assert "target      accuracy 0.900: reached by 1 of 2 runs in 40.0 s" in shown
    assert "3 epochs each" in shown
    assert "notes       2 callbacks of fit were left out: EarlyStopping, CSVLogger." in shown


def test_a_first_step_with_kept_programs_is_told_as_such() -> None:
    assert "1.00 s, tracing and compiling included" in text()
    shown = text(runs=(replace(ONE.runs[0], programs_kept=True), ONE.runs[1]))
    assert "tracing included; 1 of 2 runs took compiled programs from the cache" in " ".join(
        shown.split()
    )


def test_what_the_other_side_has_said_is_not_said_again() -> None:
    other = replace(TOLD, measurement=replace(ONE, recipe=Recipe(batch_size=64)))
    shown = bench_text(other, beside=TOLD)
    assert "settings  batch_size=64" in shown
    assert "TensorFlow" not in shown


def test_the_next_command_names_what_was_measured() -> None:
    assert next_words([ONE], "/home/me/results") == (
        "Kept as /home/me/results:012345.\n  tfdyno compare /home/me/results:012345 OTHER"
    )
    both = next_words([ONE, replace(ONE, id="ffffffff")], "r")
    assert both.endswith("  tfdyno compare r:012345 r:ffffff")


def test_a_side_of_a_pair_has_its_letter() -> None:
    assert bench_text(TOLD, name="B").startswith("B: convnet at batch 64")


def test_no_line_is_longer_than_the_screen() -> None:
    many = measurement([[0.1]] * 10, label="a label that is as long as labels get")
    shown = bench_text(replace(TOLD, measurement=many, medians_s=(0.1,) * 10), width=80)
    assert max(map(len, shown.splitlines())) <= 80


def test_a_pair_begins_with_its_comparison() -> None:
    other = replace(TOLD, measurement=replace(ONE, id="ffffffff"))
    comparison = Comparison(
        verdict="no_difference", ratio=1.0, interval=(0.99, 1.01), confidence_ratio=0.99,
        paired=True, reason="The interval holds 1.",
    )  # fmt: skip
    shown = report_text([TOLD, other], comparison, kept_in="r")
    heads = [block.split(":")[0] for block in shown.split("\n\n") if ":" in block.split(" ")[0]]
    assert shown.startswith("No difference between B and A: B is 1.000x as fast")
    assert heads == ["A", "B"]
    assert shown.endswith("tfdyno compare r:012345 r:ffffff")


def test_what_it_costs_is_told_where_the_card_is_priced() -> None:
    priced = replace(TOLD, costs=("9,000,000 images per US$: here, $0.40/h",))
    assert "costs" not in bench_text(TOLD)
    assert "costs       9,000,000 images per US$: here, $0.40/h" in bench_text(priced)
