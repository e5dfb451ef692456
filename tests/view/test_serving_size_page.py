"""The page."""

from __future__ import annotations

import json
import re

from tests.services import LATE, size

from tfdyno.view.serving_size_page import size_page


def test_the_page_is_whole_escaped_and_carries_its_numbers() -> None:
    page = size_page(size())
    assert page.rstrip().endswith("</html>")
    assert "a &lt;source&gt;" in page
    found = re.search(r'<script type="application/json" id="result">(.*?)</script>', page, re.S)
    assert found
    assert json.loads(found[1])["headline"] == "Rent 2 x Cheap."


def test_a_page_without_a_feasible_machine_has_the_reasons() -> None:
    page = size_page(size(ranking=(LATE,), picks=(), autoscaling=None, curves=()))
    assert "takes up to 90" in page
    assert 'id="cost"' not in page
