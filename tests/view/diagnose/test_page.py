"""The page of a diagnosis is whole, safe, self-contained, and says what to change first."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.view import diagnoses
from tests.view.choose.test_html import outline, result
from tests.view.diagnoses import FACTS, HEALTHY, LEAK, fixed, looked_again, only, told, whole
from tests.view.test_browser import WIDER, probe
from tests.view.trainings import ENVIRONMENT

from tfdyno.core.doctor.finding import Evidence
from tfdyno.view.diagnose.document import told_of
from tfdyno.view.diagnose.page import diagnose_page

if TYPE_CHECKING:
    from pathlib import Path

browser = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("chromium") or shutil.which("chromium-browser")),
        reason="no Chromium: apt-get install chromium",
    ),
]
WHOLE = ("change", "split", "computing", "course", "stages", "findings", "place", "how", "next")
COVERED = """const bad = [];
for (const svg of document.querySelectorAll(".plot svg")) {
  const box = svg.getBoundingClientRect();
  if (!box.width) continue;
  const texts = [...svg.querySelectorAll("text")].filter((one) => one.textContent)
    .map((one) => [one.textContent, one.getBoundingClientRect()]);
  texts.forEach(([one, a], i) => {
    if (a.left < box.left - 1 || a.right > box.right + 8) bad.push("cut: " + one);
    texts.slice(i + 1).forEach(([two, b]) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 2 && down > 4) bad.push(one + " / " + two); }); }); }
return bad;"""
"""Texts that are cut off, or that stand over each other."""


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    unseen = replace(only(HEALTHY), split_s={"unseen": 0.418}, compute_s={})
    record = told_of(unseen, replace(FACTS, source="record", input=None, held_s=()), "runs/a")
    return {
        "whole": diagnose_page(whole(environment=ENVIRONMENT)),
        "fixed": diagnose_page(looked_again(environment=ENVIRONMENT, written=("out/recipe.toml",))),
        "measured": diagnose_page(fixed()),
        "healthy": diagnose_page(told(only(HEALTHY))),
        "leak": diagnose_page(told(only(LEAK))),
        "record": diagnose_page(replace(record, look="tfdyno diagnose train.py")),
    }


ALL = ("whole", "fixed", "measured", "healthy", "leak", "record")


@pytest.mark.parametrize("name", ALL)
def test_links_lead_to_sections_that_are_there_once(pages: dict[str, str], name: str) -> None:
    found = outline(pages[name])
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    assert {load[1:] for load in found.loads if load.startswith("#")} <= set(found.ids)
    assert all(load.startswith(("#", "data:")) for load in found.loads)
    if name == "whole":
        assert set(WHOLE) <= set(found.ids)


@pytest.mark.parametrize("name", ALL)
def test_no_section_is_empty(pages: dict[str, str], name: str) -> None:
    bare = re.sub(r"<(script|style|svg).*?</\1>", "", pages[name], flags=re.S)
    for section in re.findall(r"<section[^>]*>(.*?)</section>", bare, re.S):
        words = re.sub(r"<[^>]+>", " ", re.sub(r"<h2>.*?</h2>", "", section, flags=re.S)).split()
        assert len(words) > 5, section


def test_the_answer_stands_first_with_what_to_change(pages: dict[str, str]) -> None:
    page = pages["fixed"]
    assert re.findall(r"<h1>(.*?)</h1>", page) == ["The step waits for input: 61% of its time"]
    order = ["2.3–2.6x", "2.41x", "What to change", "num_parallel_calls", "map(parse) takes 240 ms",
             "One step, by what it spends its time on", "Every step in its order"]  # fmt: skip
    places = [page.index(words) for words in order]
    assert places == sorted(places)


def test_expected_stands_beside_proven_and_what_was_kept(pages: dict[str, str]) -> None:
    page = pages["fixed"]
    rows = re.findall(r'<td class="n" data-l="Expected"><b>(.*?)</b></td>'
                      r'<td class="n" data-l="Proven"><b>(.*?)</b>', page)  # fmt: skip
    assert rows == [("2.3–2.6x", "2.41x"), ("1.1–1.2x", "1.00x")]
    assert "What was kept, as settings of a recipe" in page
    assert "tfdyno train train.py --set input.prefetch=-1" in page
    assert "Tried, and not kept" in page


def test_a_healthy_training_has_no_table_of_changes(pages: dict[str, str]) -> None:
    assert 'class="rank"' not in pages["healthy"]
    assert 'class="rank"' in pages["leak"]
    assert "the steps were not looked into" in pages["record"]


def test_what_was_not_looked_at_is_no_section(pages: dict[str, str]) -> None:
    for name in ("healthy", "record"):
        assert 'id="course"' not in pages[name]
        assert 'id="stages"' not in pages[name]
    assert 'id="computing"' not in pages["record"]
    assert 'id="next"' not in pages["leak"]
    assert "tfdyno diagnose train.py" in pages["record"]


def test_the_page_holds_the_answer_as_json(pages: dict[str, str]) -> None:
    found = result(pages["fixed"])
    assert found["after"]["step_s"] == 0.173
    assert found["after"]["primary"]["cause"] == "healthy.no_lever"
    assert [one["title"] for one in found["stages"]] == [
        "from_tensor_slices",
        "map(parse)",
        "batch",
    ]
    assert found["facts"]["timeline"]["stalls"][0]["validation_s"] == 0.8
    assert result(pages["record"])["look"] == "tfdyno diagnose train.py"
    assert result(pages["healthy"])["after"] is None


def test_names_cannot_break_out_of_the_page() -> None:
    evil = '</script><script>alert("x")</script><b>`'
    one = replace(diagnoses.SERIAL, summary=evil, place=evil, cause=evil,
                  evidence=(Evidence(text=evil, source=evil),))  # fmt: skip
    stages = (replace(diagnoses.STAGED.stages[1], title=evil, place=evil),)
    diagnosis = replace(
        diagnoses.STAGED, primary=one, findings=(one, one), stages=stages, title=evil
    )
    facts = replace(FACTS, notes=(evil,), timeline=replace(diagnoses.TIMELINE, what=evil))
    page = diagnose_page(told(diagnosis, facts=facts, reference=evil, written=(evil,)))
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    assert result(page)["primary"]["summary"] == evil


def test_code_in_a_fix_is_code(pages: dict[str, str]) -> None:
    fix = (replace(LEAK.fix[0], text="Write `losses.append(float(loss))` and gain 10 %."),)
    page = diagnose_page(told(only(replace(LEAK, fix=fix))))
    assert "Write <code>losses.append(float(loss))</code> and gain 10%." in page


@pytest.mark.parametrize(("name", "count"), [("whole", 4), ("fixed", 4), ("record", 1)])
def test_every_figure_has_a_sentence_two_layouts_and_its_numbers(
    pages: dict[str, str], name: str, count: int
) -> None:
    labels = re.findall(r'role="img" aria-label="([^"]+)"', pages[name])
    assert len(labels) == count
    assert all(label.endswith(".") and len(label) > 60 for label in labels)
    drawings = re.findall(r"<svg.*?</svg>", pages[name], re.S)
    assert len(drawings) == 2 * count
    assert all(not re.search(r'(fill|stroke)="#', drawing) for drawing in drawings)
    assert pages[name].count("Numbers behind this figure") == count


def test_without_the_drawing_library_tables_take_the_place_of_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    page = diagnose_page(looked_again())
    assert "<svg" not in page
    assert "Figures are left out because vl-convert is not installed" in page
    assert page.count("<details open>") == 4


class TestInABrowser:
    pytestmark = browser

    @pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
    @pytest.mark.parametrize("width_px", [360, 390, 1000])
    def test_nothing_scrolls_sideways(
        self, pages: dict[str, str], tmp_path: Path, width_px: int, dark: bool
    ) -> None:
        seen = probe(pages["fixed"], tmp_path, code=WIDER, width_px=width_px, dark=dark)
        assert seen["found"] == []
        assert seen["scroll"] <= seen["width"] == width_px

    def test_long_names_do_not_widen_a_phone(self, tmp_path: Path) -> None:
        long = "a_function_with_a_name_that_never_ends" * 4
        stages = tuple(replace(one, title=f"map({long})") for one in diagnoses.STAGED.stages)
        one = replace(diagnoses.SERIAL, place=f"{long}.py:41", summary=f"{long} is slow.")
        diagnosis = replace(diagnoses.STAGED, stages=stages, primary=one, findings=(one, one))
        page = diagnose_page(told(diagnosis, reference=f"/home/x/{long}.py"))
        seen = probe(page, tmp_path, code=WIDER, width_px=360)
        assert seen["found"] == []
        assert seen["scroll"] <= 360

    @pytest.mark.parametrize("width_px", [360, 1000])
    def test_texts_of_figures_are_whole_and_do_not_cover_each_other(
        self, pages: dict[str, str], tmp_path: Path, width_px: int
    ) -> None:
        assert probe(pages["fixed"], tmp_path, code=COVERED, width_px=width_px)["found"] == []

    def test_it_reads_without_its_script(self, pages: dict[str, str], tmp_path: Path) -> None:
        bare = re.sub(r'<script>"use strict".*?</script>', "", pages["fixed"], flags=re.S)
        code = """return ["h1", "#change", "#findings", "#course .plot", "#how"].filter((one) =>
          !document.querySelector(one).offsetHeight);"""
        assert probe(bare, tmp_path, code=code)["found"] == []
