"""The page of a bench is whole, safe, self-contained, and says what was measured first."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.view import benches
from tests.view.choose.test_html import outline, result
from tests.view.test_browser import WIDER, probe

from tfdyno.core.measure.measurement_document import measurement_of
from tfdyno.view.bench.page import bench_page

if TYPE_CHECKING:
    from pathlib import Path

SECTIONS = ("trust", "steps", "time", "telemetry", "recipe", "task", "place", "raw", "next")
browser = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("chromium") or shutil.which("chromium-browser")),
        reason="no Chromium: apt-get install chromium",
    ),
]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {
        "cpu": bench_page([benches.told(benches.on_cpu())], kept_in="my results"),
        "gpu": bench_page([benches.told(benches.on_gpu())]),
        "pair": bench_page(*benches.pair()),
    }


@pytest.mark.parametrize("name", ["cpu", "gpu", "pair"])
def test_all_sections_are_there_once_and_links_lead_to_them(
    pages: dict[str, str], name: str
) -> None:
    found = outline(pages[name])
    assert found.open == []
    assert all(found.ids.count(one) == 1 for one in (*SECTIONS, "main", "result"))
    assert {load[1:] for load in found.loads if load.startswith("#")} <= set(found.ids)
    assert all(load.startswith(("#", "data:")) for load in found.loads)


def test_the_answer_stands_first(pages: dict[str, str]) -> None:
    headings = re.findall(r"<h[12][^>]*>(.*?)</h[12]>", pages["cpu"].replace("\u00a0", " "), re.S)
    assert re.fullmatch(r"small_resnet takes 52\.\d ms a step at batch 64", headings[0])
    headings = re.findall(r"<h1>(.*?)</h1>", pages["pair"].replace("\u00a0", " "))
    assert re.fullmatch(r"B is \d\.?\d? % slower than A", headings[0])
    assert "Throughput of B over that of A" in pages["pair"]


def test_a_machine_without_a_card_shows_nothing_of_one(pages: dict[str, str]) -> None:
    bare = re.sub(r"<script.*?</script>", "", pages["cpu"], flags=re.S)
    assert "GPU" not in bare
    assert "Graphics clock" in pages["gpu"]


def test_the_page_holds_the_raw_measurement_as_json(pages: dict[str, str]) -> None:
    assert measurement_of(result(pages["cpu"])) == benches.on_cpu()
    told, _ = benches.pair()
    assert measurement_of(result(pages["pair"])["against"]) == told[1].measurement


def test_commands_name_the_results_and_are_safe_to_paste(pages: dict[str, str]) -> None:
    assert "tfdyno compare &#39;my results:012345&#39; OTHER.json" in pages["cpu"]
    assert "tfdyno bench train.py --against execution=xla" in pages["cpu"]


def test_names_cannot_break_out_of_the_page() -> None:
    evil = '</script><script>alert("x")</script><b>'
    one = benches.on_cpu()
    task = replace(one.task, title=evil, reference=evil, notes=(evil,))
    page = bench_page([benches.told(replace(one, task=task, label=evil))])
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    assert json.loads(json.dumps(result(page)))["label"] == evil


def test_every_figure_has_a_sentence_two_layouts_and_its_numbers(pages: dict[str, str]) -> None:
    for name, count in (("cpu", 3), ("gpu", 3), ("pair", 4)):
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
    page = bench_page(*benches.pair())
    assert "<svg" not in page
    assert "Figures are left out because vl-convert is not installed" in page
    assert page.count("<details open>") == 4


def test_a_comparison_needs_two_and_one_needs_none() -> None:
    told, comparison = benches.pair()
    with pytest.raises(ValueError, match="got 1"):
        bench_page(told[:1], comparison)
    with pytest.raises(ValueError, match="got 2"):
        bench_page(told)


class TestInABrowser:
    pytestmark = browser

    @pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
    @pytest.mark.parametrize("width_px", [360, 1000])
    @pytest.mark.parametrize("name", ["gpu", "pair"])
    def test_nothing_scrolls_sideways(
        self, pages: dict[str, str], tmp_path: Path, name: str, width_px: int, dark: bool
    ) -> None:
        seen = probe(pages[name], tmp_path, code=WIDER, width_px=width_px, dark=dark)
        assert seen["found"] == []
        assert seen["scroll"] <= seen["width"] == width_px

    def test_no_text_of_a_figure_is_cut_off(self, pages: dict[str, str], tmp_path: Path) -> None:
        code = """return [...document.querySelectorAll(".plot svg")].filter((one) =>
          one.getBoundingClientRect().width).flatMap((one) => {
          const box = one.getBoundingClientRect();
          return [...one.querySelectorAll("text")].filter((text) => {
            const own = text.getBoundingClientRect();
            return own.left < box.left - 1 || own.right > box.right + 1 ||
              own.top < box.top - 1 || own.bottom > box.bottom + 1; })
            .map((text) => text.textContent); });"""
        for name in ("cpu", "gpu", "pair"):
            for width_px in (360, 1000):
                seen = probe(pages[name], tmp_path, code=code, width_px=width_px)
                assert seen["found"] == [], (name, width_px)
