"""The page of TensorFlow and JAX side by side."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from tests.view.choose.test_backends_text import STOPPED
from tests.words.choose.test_backends import ANSWER, CARD, GRAPH, XLA

from tfdyno.view.choose.backends_page import backends_page


def shown(page: str) -> str:
    return page.split('<script type="application/json"')[0]


def test_the_page_is_whole_and_carries_its_numbers() -> None:
    page = backends_page(ANSWER)
    assert page.rstrip().endswith("</html>")
    assert "<h1>JAX would be 2.0 times as fast</h1>" in page
    assert "tfdyno bench train.py --against backend=jax" in shown(page)
    found = re.search(r'<script type="application/json" id="result">(.*?)</script>', page, re.S)
    assert found
    assert json.loads(found[1])["backends"][0]["verdict"] == "faster"


def test_each_card_has_its_table_of_ways() -> None:
    other = replace(CARD, gpu="l4", gpu_name="NVIDIA L4", verdict="no_difference")
    page = shown(backends_page(replace(ANSWER, cards=(CARD, other))))
    assert re.findall(r'<section id="(t4|l4)">', page) == ["t4", "l4"]
    assert page.count('<th scope="row">Keras on JAX</th>') == 2
    assert "<h2>No difference that can be told</h2>" in page


def test_a_way_that_cannot_run_is_escaped_and_has_no_row() -> None:
    step = replace(STOPPED, names="<b>")
    card = replace(CARD, steps=(GRAPH, XLA, step), verdict="unknown", speed_ratio=None)
    page = shown(backends_page(replace(ANSWER, cards=(card,), command="")))
    assert "line 7, &lt;b&gt;: only" in page
    assert "<b>: only" not in page
    assert '<th scope="row">Keras on JAX</th>' not in page
    assert 'id="next"' not in page
