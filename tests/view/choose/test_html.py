"""The page is whole, safe, self-contained and small, whatever the answer holds."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from tests.view import answers

from tfdyno.core.choose.advice import Advice, Change
from tfdyno.model.choose.scale_out import scale_out
from tfdyno.view.base.documents import advice_document
from tfdyno.view.choose.html import render_report

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

SECTIONS = ("cost", "ranking", "memory", "terms", "roofline", "layers", "sure", "basis", "next")
VOID = {"meta", "link", "br", "input", "img", "hr", "path", "line", "rect", "circle"}


def render(advice: Advice) -> str:
    return render_report(
        advice=advice, trace=answers.trace(), program=answers.program(), gpus=answers.gpus()
    )


@pytest.fixture(scope="module")
def page() -> str:
    return render(answers.advice())


def result(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="result">(.*?)</script>', page, re.S)
    assert found
    whole: dict[str, Any] = json.loads(found.group(1))
    return whole


class Outline(HTMLParser):
    """Collects ids and what loads something, and checks that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.loads += [found[name] or "" for name in ("src", "href") if name in found]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def outline(page: str) -> Outline:
    found = Outline()
    found.feed(page)
    return found


def test_all_sections_are_there_once_and_every_tag_closes(page: str) -> None:
    found = outline(page)
    assert found.open == []
    assert all(found.ids.count(name) == 1 for name in (*SECTIONS, "change", "main", "result"))


def test_links_inside_the_page_lead_somewhere(page: str) -> None:
    found = outline(page)
    inside = {load[1:] for load in found.loads if load.startswith("#")}
    assert inside <= set(found.ids)
    assert set(SECTIONS) <= inside


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    assert all(load.startswith(("#", "data:")) for load in outline(page).loads)
    assert "@import" not in page
    assert "url(" not in page
    bare = page.replace("http://www.w3.org/2000/svg", "")
    assert "http://" not in re.sub(r"<script.*?</script>", "", bare, flags=re.S)


def test_the_headline_stands_first_and_the_findings_follow(page: str) -> None:
    headings = re.findall(r"<h[12][^>]*>(.*?)</h[12]>", page, re.S)
    assert headings[0].replace("\u00a0", " ") == answers.advice().headline
    assert "10 of 14 candidates finish within a day" in headings
    assert "The step needs 5.6 GiB: it fits from 12 GB up" in headings


def test_the_whole_result_is_in_the_page_as_json(page: str) -> None:
    whole = result(page)
    assert len(whole["ranking"]) == len(answers.advice().ranking)
    assert {pick["title"] for pick in whole["picks"]} == {"cheapest", "balanced", "fastest"}
    first = whole["ranking"][0]
    estimate = whole["estimates"][first["estimate"]]
    assert estimate["gpu"] == first["gpu"]
    picked = whole["estimates"][whole["picks"][1]["candidate"]["estimate"]]
    assert len(picked["layers"]) == len(answers.layers(1.0))


def test_the_page_has_the_scaling_section_of_the_json() -> None:
    one = answers.advice().ranking[0].estimate
    many = replace(one, replicas=2, nodes=1)
    series = scale_out([replace(one, replicas=1), many], holds="batch per replica")
    advice = replace(answers.advice(), scaling=(series,))
    told = advice_document(advice, answers.trace())["scaling"]
    assert len(told[0]["rows"]) == 2

    def leaves(value: object) -> list[object]:
        if isinstance(value, dict | list):
            inner = value.values() if isinstance(value, dict) else value
            return [leaf for each in inner for leaf in leaves(each)]
        return [value]

    found = result(render(advice))["scaling"]
    assert list(found[0]) == list(told[0])
    for ours, theirs in zip(leaves(found), leaves(told), strict=True):
        assert ours == (pytest.approx(theirs, rel=1e-5) if isinstance(theirs, float) else theirs)


def test_an_estimate_that_serves_many_offers_stands_once(page: str) -> None:
    whole = result(page)
    assert len(whole["estimates"]) < len(whole["ranking"])


def test_names_cannot_break_out_of_the_page() -> None:
    advice = answers.advice()
    evil = '</script><script>alert("x")</script><b>'
    first = replace(advice.ranking[0], gpu_name=evil, reason=evil)
    changed = replace(
        advice,
        headline=evil,
        ranking=(first, *advice.ranking[1:]),
        changes=(Change(condition=evil, consequence=evil),),
    )
    page = render(changed)
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    assert result(page)["headline"] == evil


def test_figures_have_a_sentence_two_layouts_and_no_fixed_colour(page: str) -> None:
    labels = re.findall(r'role="img" aria-label="([^"]+)"', page)
    assert len(labels) == 10  # roofline and layers for each of the three picks
    assert all(label.endswith(".") and len(label) > 60 for label in labels)
    drawings = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(drawings) == 20
    assert all("font-family" not in drawing for drawing in drawings)
    assert all(not re.search(r'(fill|stroke)="#', drawing) for drawing in drawings)


def test_every_figure_has_its_numbers_in_a_table(page: str) -> None:
    assert page.count("<figure>") == page.count("Numbers behind this figure</summary>") == 10


def test_without_the_drawing_library_tables_take_the_place_of_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    page = render(answers.advice())
    assert "<svg" not in page
    assert page.count("Figures are left out because vl-convert is not installed") == 1
    assert page.count("<details open>") == 10


def test_an_answer_without_picks_still_makes_a_page() -> None:
    advice = answers.advice()
    late = tuple(replace(one, verdict="too late", pareto=False) for one in advice.ranking)
    page = render(replace(advice, ranking=late, picks=(), changes=(), buy_or_rent=()))
    assert "No offer finishes within the limits" in page
    assert 'class="picks' not in page
    assert 'id="change"' not in page


def test_an_empty_ranking_still_makes_a_page() -> None:
    empty = replace(answers.advice(), ranking=(), picks=())
    page = render(empty)
    assert "There is nothing to rank" in page
    assert 'id="memory"' not in page


def test_an_estimate_without_details_makes_sentences_instead_of_figures() -> None:
    advice = answers.advice()
    bare: dict[str, Any] = {
        "layers": (),
        "roofline": (),
        "class_s": {},
        "terms_s": {},
        "memory_parts_bytes": {},
    }

    def strip(one: Value) -> Value:
        return replace(one, estimate=replace(one.estimate, **bare))

    ranking = tuple(strip(one) for one in advice.ranking)
    picks = tuple(replace(pick, candidate=strip(pick.candidate)) for pick in advice.picks)
    page = render(replace(advice, ranking=ranking, picks=picks))
    assert "Which kernels take the time is not known" in page
    assert "Where the time goes by layer is not known" in page
    assert page.count("<figure>") == 2


def test_free_cards_have_no_place_on_a_logarithmic_axis() -> None:
    advice = answers.advice()
    free = replace(advice.ranking[0], cost_usd=advice.ranking[0].hours.times(0.0))
    page = render(replace(advice, ranking=(free, *advice.ranking[1:]), picks=advice.picks[1:]))
    assert "NaN" not in page
    assert "Infinity" not in page


def test_hundreds_of_offers_fold_and_stay_below_1500_kb() -> None:
    advice = answers.advice()
    many = tuple(
        replace(one, gpu=f"{one.gpu}-{k}", gpu_name=f"{one.gpu_name} {k}")
        for k in range(40)
        for one in advice.ranking
    )
    page = render(replace(advice, ranking=many))
    assert len(many) == 560
    assert len(page) < 1_500_000
    rows = re.findall(r"<tr( class=\"[a-z]+\")? data-f=", page)
    assert len(rows) == len(many)
    assert 10 < sum("more" not in row for row in rows) < 40
