"""The page of diagnose --leak: growth and the hour first, its course and what keeps it below."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.view.choose.test_html import outline, result
from tests.view.diagnose.test_figure_growth import COURSE
from tests.view.diagnose.test_growth_text import FLAT, GIB, HOST
from tests.view.diagnose.test_growth_text import told as told_text
from tests.view.diagnose.test_page import COVERED, browser
from tests.view.diagnoses import FACTS, LEAK
from tests.view.test_browser import WIDER, probe
from tests.view.trainings import ENVIRONMENT

from tfdyno.core.doctor.finding import Evidence
from tfdyno.view.diagnose.growth_page import answer, box, growth_page

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.measure.memory_outlook import MemoryOutlook
    from tfdyno.view.diagnose.document import DiagnoseReport

KEPT = "list of 90 entries held by train.py:19 (record.batches)"
GROWING = replace(HOST, suspects=(KEPT,))
TENSORS = replace(FLAT, where="CPU:0", used_bytes=GIB)


def told(*growth: MemoryOutlook, leaks: bool = True) -> DiagnoseReport:
    """With the course of the host's memory and of a card's."""
    card = replace(COURSE, where="GPU:0", low_bytes_per_step=0.0, bytes_per_step=0.0)
    return replace(
        told_text(*growth, leaks=leaks), facts=replace(FACTS, memory=(COURSE, card)),
        environment=ENVIRONMENT, made_on="2026-11-22",
    )  # fmt: skip


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    found = told(GROWING, FLAT)
    more = replace(found.proven.diagnosis, findings=(LEAK, replace(LEAK, cause="leak.logs")))
    return {
        "grows": growth_page(found),
        "flat": growth_page(told(replace(FLAT, where="host"), TENSORS, leaks=False)),
        "several": growth_page(replace(found, proven=replace(found.proven, diagnosis=more))),
        "short": growth_page(told(leaks=False)),
    }


ALL = ("grows", "flat", "several", "short")


@pytest.mark.parametrize("name", ALL)
def test_links_lead_to_sections_that_are_there_once_and_have_words(
    pages: dict[str, str], name: str
) -> None:
    found = outline(pages[name])
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    assert {load[1:] for load in found.loads if load.startswith("#")} <= set(found.ids)
    assert all(load.startswith(("#", "data:")) for load in found.loads)
    bare = re.sub(r"<(script|style|svg).*?</\1>", "", pages[name], flags=re.S)
    for section in re.findall(r"<section[^>]*>(.*?)</section>", bare, re.S):
        words = re.sub(r"<[^>]+>", " ", re.sub(r"<h2>.*?</h2>", "", section, flags=re.S)).split()
        assert len(words) > 5, section


def test_growth_and_the_hour_stand_before_what_keeps_it_and_the_course(
    pages: dict[str, str],
) -> None:
    plain = pages["grows"].replace("\u00a0", " ")
    order = [
        f"<h1>{LEAK.summary.rstrip('.')}</h1>",
        "The host’s memory grows by 2 MiB a step and is full in about 3 h at this rate; the 3,000 "
        "steps of this training take 5.86 GiB (2.93 GiB to 11.7 GiB).",
        "1.5 h to 6 h; 8,200 steps",
        "What to change", "Append float(loss)",
        'id="memory-host"', "The host’s memory is full in about 3 h", f"What becomes more: {KEPT}.",
        "In use, above the least of 1.19 GiB", "From here on, at the same rate",
        'id="memory-gpu-0"', "Nothing above 512 B a step is seen in the memory of GPU:0",
        "19 times in 20",
    ]  # fmt: skip
    places = [plain.index(words) for words in order]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ALL)
def test_where_the_time_goes_was_not_asked(pages: dict[str, str], name: str) -> None:
    for words in ('id="split"', 'class="rank"', "Expected", "A gain is expected"):
        assert words not in pages[name]


def test_each_further_reason_has_its_own_fix(pages: dict[str, str]) -> None:
    assert "Memory grows for one more reason" in pages["several"]
    articles = re.findall(r"<article class=\"found\">(.*?)</article>", pages["several"], re.S)
    assert [one.count("<li>Append float(loss)") for one in articles] == [1]
    assert 'id="findings"' not in pages["grows"]


def test_without_growth_the_bound_of_each_memory_is_told(pages: dict[str, str]) -> None:
    flat = told(replace(FLAT, where="host"), TENSORS, leaks=False)
    assert answer(flat) == (
        "No growth above 512 B a step in the host’s memory and 512 B a step in the memory of "
        "TensorFlow’s tensors on the host."
    )
    assert box(flat)[0] == ("Growth of a step", "under 512 B", "in the host’s memory")
    assert "From here on" not in pages["flat"]
    assert "too few steps" in pages["short"].lower()


def test_the_numbers_are_those_of_the_memory_that_is_full_first() -> None:
    assert GROWING.full_in_s
    card = replace(GROWING, where="GPU:0", full_in_s=GROWING.full_in_s.times(0.5))
    assert [number for _, number, _ in box(told(GROWING, card))][:2] == ["2 MiB", "1.5 h"]
    assert box(told(FLAT, GROWING))[0][1] == "2 MiB"
    assert ("In use at the end", "2 GiB", "16 GiB free") in box(told(GROWING))


def test_growth_of_tensors_is_told_as_a_part_of_the_hosts() -> None:
    page = growth_page(told(replace(GROWING, where="CPU:0", full_in_s=None, full_in_steps=None)))
    assert "The memory of TensorFlow’s tensors on the host grows with the steps" in page
    assert "when it is full" not in page


def test_the_page_holds_the_answer_as_json(pages: dict[str, str]) -> None:
    found = result(pages["grows"])
    assert found["growth"]["host"]["full_in_s"]["best"] == 10_800.0
    assert found["growth"]["devices"]["GPU:0"]["grows"] is False
    assert found["primary"]["cause"] == LEAK.cause
    assert found["facts"]["memory"][0]["course_bytes"][-1] == [360, 2 * GIB]


def test_every_figure_has_a_sentence_two_layouts_and_its_numbers(pages: dict[str, str]) -> None:
    labels = re.findall(r'role="img" aria-label="([^"]+)"', pages["grows"])
    assert len(labels) == 3  # the host's course and outlook, the card's course
    assert all(label.endswith(".") and len(label) > 60 for label in labels)
    drawings = re.findall(r"<svg.*?</svg>", pages["grows"], re.S)
    assert len(drawings) == 6
    assert all(not re.search(r'(fill|stroke)="#', drawing) for drawing in drawings)
    assert pages["grows"].count("Numbers behind this figure") == 3


def test_names_cannot_break_out_of_the_page() -> None:
    evil = '</script><script>alert("x")</script><b>`'
    one = replace(LEAK, summary=evil, place=evil, evidence=(Evidence(text=evil, source=evil),))
    found = told(replace(GROWING, suspects=(evil,)))
    diagnosis = replace(found.proven.diagnosis, primary=one, findings=(one, one), title=evil)
    page = growth_page(replace(found, proven=replace(found.proven, diagnosis=diagnosis)))
    assert "<script>alert" not in page
    assert page.count("</script>") == 2


class TestInABrowser:
    pytestmark = browser

    @pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
    @pytest.mark.parametrize("width_px", [360, 1000])
    def test_nothing_scrolls_sideways(
        self, pages: dict[str, str], tmp_path: Path, width_px: int, dark: bool
    ) -> None:
        seen = probe(pages["several"], tmp_path, code=WIDER, width_px=width_px, dark=dark)
        assert seen["found"] == []
        assert seen["scroll"] <= seen["width"] == width_px

    @pytest.mark.parametrize("width_px", [360, 1000])
    def test_texts_of_figures_are_whole_and_do_not_cover_each_other(
        self, pages: dict[str, str], tmp_path: Path, width_px: int
    ) -> None:
        assert probe(pages["grows"], tmp_path, code=COVERED, width_px=width_px)["found"] == []
