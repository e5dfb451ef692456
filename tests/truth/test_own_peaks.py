from __future__ import annotations

from statistics import median

from tfdyno_truth import own_peaks


def test_every_measured_step_has_a_quick_plan_and_under_xla_a_compiled_one() -> None:
    found = own_peaks.peaks()
    rows = own_peaks.read_steps()
    assert [p.model for p in found if p.route == "quick"] == [row["model"] for row in rows]
    compiled = [row["model"] for row in rows if row["execution"] == "xla"]
    assert [p.model for p in found if p.route == "exact"] == compiled


def test_no_step_is_below_what_was_measured_by_more_than_a_twentieth() -> None:
    for peak in own_peaks.peaks():
        assert peak.error >= -0.05, peak


def test_half_of_the_steps_of_each_route_are_right_to_four_percent() -> None:
    for route in own_peaks.ROUTES:
        errors = [abs(p.error) for p in own_peaks.peaks() if p.route == route]
        assert median(errors) <= 0.04


def test_every_range_holds_what_was_measured_of_the_step_and_of_the_process() -> None:
    for peak in own_peaks.peaks():
        assert peak.inside, peak
        assert peak.process_inside, peak


def test_the_section_has_a_line_for_every_step_and_route() -> None:
    found = own_peaks.peaks()
    section = own_peaks.section(found)
    assert section.table is not None
    assert len(section.table.rows) == len(found)
    assert "Exact: 6 steps" in section.prose
