"""The fit of today's software: what it learns from, leaves out and writes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.catalog.tables import DATA
from tfdyno.catalog.time_model import time_model
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.today import (
    NOT_LEARNED,
    OWN,
    Case,
    Found,
    Judged,
    cases,
    fit,
    generation_of,
    judge,
    parameters,
    rewritten,
    shipped_own,
    widths,
)
from tfdyno_truth.today_report import FIRST, LAST, block, own_text, put

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def known() -> list[Case]:
    return cases(FOLDER)


@pytest.fixture(scope="module")
def few(known: list[Case]) -> list[Case]:
    """Own steps and a few published ones: enough to fit, quick to judge."""
    own = [one for one in known if one.row.table == OWN]
    return [*own, *[one for one in known if one.row.slug == "rtx-5090"][:8]]


@pytest.fixture(scope="module")
def found(few: list[Case]) -> Found:
    return judge(few, FOLDER, lambda _: None)


def test_every_own_step_has_a_record_and_a_prediction(known: list[Case]) -> None:
    own = [one for one in known if one.row.table == OWN]
    assert len(own) == 24
    assert {one.row.execution for one in own} == {"xla", "graph"}


def test_shipped_constants_tell_half_of_the_own_steps_to_eight_per_cent() -> None:
    """The recommender alone is told too long by a half: its tables are updated row by row."""
    errors = {name: abs(told / measured - 1.0) for name, measured, told in shipped_own(FOLDER)}
    assert float(np.median(list(errors.values()))) < 0.08
    *others, worst = sorted(errors, key=errors.__getitem__)
    assert worst.startswith("recommender")
    assert max(errors[name] for name in others) < 0.28


def test_shipped_constants_are_those_of_the_fit_of_all_rows(known: list[Case]) -> None:
    fitted = fit(known)
    for (generation, name), one in parameters().items():
        shipped = time_model(generation or "2026")[name]
        assert shipped == pytest.approx(fitted[generation, name], rel=0.02), name
        assert one.low <= shipped <= one.high


@pytest.mark.parametrize(
    ("version", "engine", "generation"),
    [
        ("TF 2.12-2.13 (latest-gpu image, 2023-05/06)", "tensorflow", "2023"),
        ("Keras 3.0 / TF 2.15", "tensorflow", "2023"),
        ("Keras 3.10 / TF 2.17, cuDNN 8.9", "tensorflow", "2026"),
        ("TF 2.19-2.20 (2026-08, Colab), cuDNN 9.19", "tensorflow", "2026"),
        ("JAX 0.4.4 (2023-02)", "jax", "2023"),
        ("JAX 0.8 (2026-01)", "jax", "2026"),
        ("2023-12", "jax", "2023"),
        ("Reactant 2026-01", "reactant", "2026"),
        ("2.21.0", "tensorflow", "2026"),
    ],
)
def test_versions_are_read_as_sources_write_them(
    known: list[Case], version: str, engine: str, generation: str
) -> None:
    assert generation_of(replace(known[0].row, version=version, engine=engine)) == generation


def test_left_out_means_not_seen(found: Found) -> None:
    for one in found.judged:
        assert min(one.fitted_s, one.model_s, one.outer_s) > 0.0
    resnets = [one for one in found.judged if one.case.row.architecture == "resnet"]
    assert any(one.fitted_s != one.model_s for one in resnets)


def test_steps_of_the_swept_machine_are_told_by_fits_without_their_kind(found: Found) -> None:
    unseen = {one.case.name: one.model_s for one in found.judged if one.case.row.table == OWN}
    assert len(found.swept) == 7
    for one in found.swept:  # the same step, measured at another time
        assert one.before_s == pytest.approx(unseen[one.case.name])
        assert one.after_s != pytest.approx(one.before_s)
        assert abs(math.log(one.after_s / one.case.row.step_s)) <= one.log_width_ratio


def test_rows_with_a_reason_are_judged_and_not_learned_from(known: list[Case]) -> None:
    marked = [one for one in known if (one.row.source, one.row.model) in NOT_LEARNED]
    assert len(marked) == 6
    others = [one for one in known if one not in marked][:12]
    assert fit([*others, *marked]) == fit(others)


def test_widths_hold_nine_of_ten_of_the_outer_errors(found: Found) -> None:
    held = [
        abs(np.log(one.outer_s / one.case.row.step_s))
        <= found.widths.get(one.case.bucket, found.widths["default"]).log_half_width_ratio
        for one in found.judged
    ]
    assert 0.8 <= float(np.mean(held)) <= 1.0  # groups count once, rows here


def test_larger_errors_make_wider_intervals(found: Found) -> None:
    worse = tuple(
        Judged(case=one.case, fitted_s=one.fitted_s, model_s=one.model_s,
               outer_s=one.case.row.step_s * (one.outer_s / one.case.row.step_s) ** 2)
        for one in found.judged
    )  # fmt: skip
    plain, wide = widths(found.judged)["default"], widths(worse)["default"]
    assert wide.log_half_width_ratio == pytest.approx(2 * plain.log_half_width_ratio, rel=0.02)


def test_what_is_written_reads_back(found: Found) -> None:
    text = rewritten((DATA / "kernel_model.toml").read_text(), found, "2026-12-01")
    assert 'version = "2026-12-01"' in text
    for name, width in found.widths.items():
        assert f'"{name}" = {{ log_half_width_ratio = {width.log_half_width_ratio}' in text
    with pytest.raises(ValueError, match="0 entries for"):
        rewritten("[intervals]", found, "x")


def test_the_page_begins_with_own_rows_and_keeps_the_rest(found: Found, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Accuracy\n\nWritten by hand.\n\nOld rows.\n")
    once = put(page, block(found))
    assert once.index("Today's software on a real card") < once.index("Old rows.")
    page.write_text(once)
    assert put(page, block(found)) == once
    assert once.count(FIRST) == once.count(LAST) == 1
    own = once[: once.index("On a machine that was swept before")]
    order = [line for line in own.splitlines() if "NVIDIA H200" in line]
    ratios = [float(line.split("|")[4]) for line in order]
    errors = [abs(ratio - 1.0) for ratio in ratios]
    assert errors == sorted(errors, reverse=True)


def test_the_terminal_lists_own_rows_worst_first() -> None:
    told = own_text([("good", 1.0, 1.01), ("bad", 1.0, 2.0)])
    assert told.index("bad") < told.index("good")
    assert "median error 50.5%" in told
