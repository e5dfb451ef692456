from __future__ import annotations

import json
import re

from tests.loads import result, search, stage, stretch

from tfdyno.view.bench.load_page import load_page
from tfdyno.view.bench.load_text import load_document, load_text


def test_a_failed_test_shows_why_and_no_figure_of_the_whole() -> None:
    run = stretch([0.01] * 100, codes=(200,) * 99 + (500,), examples={500: "planted"})
    found = result(stage(run), faults=("1 of 100 requests were answered 500 with 4 clients",))
    assert load_text(found).startswith("FAILED: cnn at ")
    assert "a 500 answer said: planted" in load_text(found)
    assert load_document(found)["p99_s"] is None
    page = load_page(found)
    assert "<h2>Why it failed</h2>" in page
    assert "<title>FAILED: cnn: " in page
    assert "Half of the requests" not in page


def test_the_page_has_every_section_and_a_document_without_every_latency() -> None:
    page = load_page(search())
    assert re.findall(r'<section id="(\w+)"', page) == ["rate", "spread", "batches", "how", "next"]
    document = json.loads(page.split('id="result">')[1].split("</script>")[0])
    assert document["knee_rate_per_s"] == 200.0
    assert "latency_s" not in document["stages"][0]["run"]


def test_of_every_stretch_but_its_name_all_stands_right() -> None:
    page = load_page(search())
    head = page.split("<thead>")[1].split("</thead>")[0]
    numbers = re.findall(r'<th scope="col" class="n">([^<]+)', head)
    assert numbers[-2:] == ["Refused", "Errors"]
    assert re.findall(r'<th scope="col">([^<]+)', head) == ["Load"]


def test_what_the_server_says_cannot_break_the_page() -> None:
    run = stretch([0.01] * 10, codes=(500,) * 10, examples={500: "</script><script>x"})
    assert "<script>x" not in load_page(result(stage(run), faults=("<b>bad</b>",)))
