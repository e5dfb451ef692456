"""The stages of a pipeline beside the step that they feed."""

from __future__ import annotations

from dataclasses import replace

from tests.view.diagnoses import DIAGNOSIS, STAGED

from tfdyno.view.diagnose.figure_stages import stages_figure


def test_stages_and_the_whole_pipeline_have_their_rates() -> None:
    found = stages_figure(STAGED, 256)
    assert found
    assert [row[0] for row in found.table.rows] == [
        "from_tensor_slices", "map(parse)", "batch", "all of them", "the step alone",
    ]  # fmt: skip
    assert found.table.rows[1] == (
        "map(parse)", "train.py:41", "240 ms", "94%", "1,070 samples/s", "30 MB/s",
    )  # fmt: skip
    assert found.table.rows[3][4] == "1,000 samples/s"  # 256 / 0.255
    assert found.table.rows[4][4] == "1,600 samples/s"  # 256 / 0.16
    assert found.label.endswith("; the step by itself takes 160 ms.")
    assert "the step alone: 160 ms" in found.wide


def test_a_stage_too_fast_to_be_told_has_no_bar() -> None:
    stages = (replace(STAGED.stages[0], samples_per_s=0.0, bytes_per_s=0.0), *STAGED.stages[1:])
    found = stages_figure(replace(STAGED, stages=stages), 256)
    assert found
    assert found.table.rows[0][4:] == ("–", "–")
    assert ">from_tensor_slices<" not in found.wide


def test_a_long_title_is_cut_in_the_drawing_alone() -> None:
    title = "map(" + "a" * 60 + ")"
    stages = (replace(STAGED.stages[1], title=title),)
    found = stages_figure(replace(STAGED, stages=stages), 256)
    assert found
    assert title not in found.wide
    assert found.table.rows[0][0] == title


def test_without_timed_stages_there_is_no_figure() -> None:
    assert stages_figure(DIAGNOSIS, 256) is None
    assert stages_figure(replace(STAGED, batch_s=0.0), 256) is None


def test_without_a_step_on_held_data_there_is_no_line_for_it() -> None:
    found = stages_figure(replace(STAGED, held_s=0.0), 256)
    assert found
    assert "the step alone" not in found.wide + found.label
