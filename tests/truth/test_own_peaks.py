from __future__ import annotations

from statistics import median

from tfdyno_truth import own_peaks


def test_every_measured_step_has_a_quick_plan_and_under_xla_a_compiled_one() -> None:
    found = own_peaks.peaks()
    rows = own_peaks.read_steps()
    assert [p.model for p in found if p.route == "quick"] == [row["model"] for row in rows]
    compiled = [row["model"] for row in rows if row["execution"] == "xla"]
    assert [p.model for p in found if p.route == "exact"] == compiled


def test_no_step_holds_more_than_its_range_says() -> None:
    for peak in own_peaks.peaks():
        assert peak.measured_bytes <= peak.held.peak_bytes.high, peak


def test_half_of_the_steps_are_right_to_two_percent_compiled_and_to_seven_planned_quickly() -> None:
    for route, most in (("exact", 0.02), ("quick", 0.07)):
        errors = [abs(p.error) for p in own_peaks.peaks() if p.route == route]
        assert median(errors) <= most


def test_ranges_hold_but_of_three_small_steps_that_hold_less() -> None:
    """TensorFlow updates rows of tables where JAX's gradient is a whole table (recommender)."""
    known = {"recommender", "conv1d_series", "dcgan_generator"}
    for peak in own_peaks.peaks():
        assert peak.inside or (peak.model in known and peak.error > 0.0), peak
        assert peak.process_inside or peak.model in known, peak


def test_the_section_has_a_line_for_every_step_and_route() -> None:
    found = own_peaks.peaks()
    section = own_peaks.section(found)
    assert section.table is not None
    assert len(section.table.rows) == len(found)
    assert "Exact: 15 steps" in section.prose
