"""The page."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from tests.services import CHEAP, LATE, QUICK, size

from tfdyno.view.choose.serving_size_page import size_page


def test_the_page_is_whole_escaped_and_carries_its_numbers() -> None:
    page = size_page(size())
    assert page.rstrip().endswith("</html>")
    assert "a &lt;source&gt;" in page
    found = re.search(r'<script type="application/json" id="result">(.*?)</script>', page, re.S)
    assert found
    assert json.loads(found[1])["headline"] == "Rent 2 x Cheap."


def test_what_is_too_dear_is_marked_where_there_is_such() -> None:
    dear = replace(QUICK, verdict="too dear")
    assert "too dear" not in size_page(size()).split('<script type="application/json"')[0]
    page = size_page(size(ranking=(CHEAP, dear), picks=())).split('<script type="application')[0]
    assert page.count("too dear") == 1
    assert "feasible" not in page


def test_a_page_without_a_feasible_machine_has_the_reasons() -> None:
    page = size_page(size(ranking=(LATE,), picks=(), autoscaling=None, curves=()))
    assert "takes up to 90" in page
    assert 'id="cost"' not in page
