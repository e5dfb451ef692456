"""The accuracy pages: whole, safe, self-contained, TensorFlow first."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest
from tests.judged import as_fit, some
from tests.view.choose.test_html import outline
from tests.view.test_browser import WIDER, probe

from tfdyno.view.draw import svg
from tfdyno_truth import figure_measured, page, report, report_parts
from tfdyno_truth.ablation import NOTHING, Ablated
from tfdyno_truth.accuracy import Accuracy, accuracy
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.sections import Section, Table, markdown
from tfdyno_truth.sheet import sheet

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno_truth.sheet import Judged

browser = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("chromium") or shutil.which("chromium-browser")),
        reason="no Chromium: apt-get install chromium",
    ),
]
SHOWN = """document.getElementById("only-tf").checked = true;
const seen = (start) => [...document.querySelectorAll(`.panels [data-tip^="${start}"]`)]
  .filter((one) => getComputedStyle(one).display !== "none").length;
return [seen("TensorFlow"), seen("PyTorch")];"""


def rows() -> Judged:
    return some(lambda row: row.slug in ("t4", "rtx-3090", "v100-sxm2-16gb", "h100-sxm5-80gb"))


@lru_cache(maxsize=1)
def found() -> Accuracy:
    return accuracy(as_fit(rows()), FOLDER, lambda _stage: None)


@lru_cache(maxsize=1)
def html() -> str:
    return page.render(found())


def test_the_page_is_whole_and_loads_nothing() -> None:
    told = outline(html())
    assert told.open == []
    assert len(told.ids) == len(set(told.ids))
    assert all(load.startswith(("#", "data:")) for load in told.loads)


def test_both_pages_begin_with_the_error_of_tensorflow_on_a_new_card() -> None:
    mean = sheet(rows()).whole[0].score.mean
    assert f"with a mean error of {mean:.1%}" in report.page(found()).split("\n\n")[2]
    heading = re.findall(r"<h1>(.*?)</h1>", html().replace("\u00a0", " "))[0]
    assert heading == f"TensorFlow step times on a GPU never seen: {mean:.1%} mean error"


def test_both_pages_hold_the_same_sections() -> None:
    text, drawn = report.page(found()), html()
    for section in report.sections(found()):
        assert f"# {section.title}\n" in text
        assert f'id="{section.anchor}"' in drawn


def test_learnable_rows_have_lines_of_their_own_with_fewer_rows() -> None:
    table = report.overall(found()).table
    assert table
    for label in ("TensorFlow", "PyTorch", "all"):
        for way in ("card left out", "model left out"):
            number = {row[1]: int(row[9].replace(",", "")) for row in table.rows if row[0] == label}
            assert 0 < number[f"{way}, learnable rows"] < number[way]
    assert table.headings[9] == "rows"


def test_worst_cases_have_a_reason_or_say_that_they_have_none() -> None:
    text = report.page(found())
    table = text[text.index("## The 10 worst") :].split("\n\n")[2].splitlines()[2:]
    assert len(table) == 10
    for line, case in zip(table, found().worst, strict=True):
        assert (case.reason.reason if case.reason else "unexplained") in line


def test_baselines_stand_beside_ours_and_are_worse() -> None:
    for name, rivals in found().rivals.items():
        ours = found().sheets[name].whole[-1].score.mean
        assert all(rival.whole[-1].score.mean > ours for rival in rivals)


def test_panels_are_worst_first_and_hold_every_point() -> None:
    judged = rows()
    if not svg.available():
        pytest.skip("vl-convert is not installed")
    panels = figure_measured.families(judged)
    assert {panel.title for panel in panels} == {"Turing", "Ampere", "Volta", "Hopper"}
    points = sum(panel.drawing.count("data-tip") for panel in panels)
    workloads = {
        (r.framework, r.function, r.gpu, r.precision, r.mode, r.execution)
        for r, main in zip(judged.design.rows, judged.main, strict=True)
        if main
    }
    assert points == len(workloads)
    chips = {line.label: line.score.mean for line in sheet(judged).chips}
    worst = {"t4": "Turing", "rtx-3090": "Ampere", "v100": "Volta", "h100": "Hopper"}
    assert panels[0].title == worst[max(chips, key=chips.__getitem__)]


def test_an_ablation_of_another_fit_is_called_old() -> None:
    mean = found().sheets["gpu"].whole[-1].score.mean
    base = Ablated(
        name=NOTHING, title=NOTHING, constants="abc", rows=1, gpu_tensorflow_mean=0.1,
        gpu_all_mean=round(mean, 4), gpu_all_p90=0.3, model_tensorflow_mean=0.1,
        model_all_mean=0.1, model_all_p90=0.3,
    )  # fmt: skip
    worse = replace(base, name="x", title="a term", gpu_all_mean=base.gpu_all_mean + 0.01)
    fresh = report_parts.ablation(replace(found(), ablated=(worse, base)))
    assert "is due" not in fresh.prose
    assert fresh.table
    assert [row[0] for row in fresh.table.rows] == [NOTHING, "a term"]
    old = replace(found(), ablated=(replace(base, gpu_all_mean=base.gpu_all_mean + 0.002), worse))
    assert "`tfdyno-truth ablate` is due" in report_parts.ablation(old).prose
    assert "Not measured yet" in report_parts.ablation(replace(found(), ablated=())).prose


def test_text_cannot_break_out_of_the_page() -> None:
    assert page._prose("<b>`a`</b> *x*") == "&lt;b&gt;<code>a</code>&lt;/b&gt; <em>x</em>"


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    table = Table(headings=("a", "b"), rows=(("x|y", "1"),))
    assert markdown(Section(title="T", table=table)).endswith("| x\\|y | 1 |")


class TestInABrowser:
    pytestmark = browser

    @pytest.mark.parametrize(("width_px", "dark"), [(390, False), (1000, True)])
    def test_nothing_scrolls_sideways(self, tmp_path: Path, width_px: int, dark: bool) -> None:
        seen = probe(html(), tmp_path, code=WIDER, width_px=width_px, dark=dark)
        assert seen["found"] == []
        assert seen["scroll"] <= seen["width"] == width_px

    def test_the_points_of_one_framework_can_be_shown_alone(self, tmp_path: Path) -> None:
        tensorflow, pytorch = probe(html(), tmp_path, code=SHOWN)["found"]
        assert tensorflow > 100
        assert pytorch == 0
        assert html().count('data-tip="PyTorch') > 100
