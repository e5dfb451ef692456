"""The page of an export: its document, every section, and no ranking that was not measured."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from tests.exports import result, two, verification

from tfdyno.core.base.codec import to_json
from tfdyno.view.deploy.export_page import export_page
from tfdyno.view.deploy.export_text import export_document


def test_the_page_holds_its_document_and_every_section() -> None:
    page = export_page(two())
    assert 'id="next"' not in page
    assert "tfdyno serve exports/keras" in export_page(result(("keras", verification())))
    held = re.search(r'<script type="application/json" id="result">(.*?)</script>', page)
    assert held
    assert json.loads(held[1]) == json.loads(to_json(export_document(two())))
    for name in ("trade", "outputs", "times", "made", "how"):
        assert f'id="{name}"' in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_page_without_times_has_its_numbers_as_a_table() -> None:
    bare = result(("onnx", replace(verification(), latencies=())))
    page = export_page(bare)
    assert "No call was timed" in page
    assert "Mean diff" in page


def test_formats_whose_times_overlap_are_not_ranked() -> None:
    found = verification()
    page = export_page(result(("onnx", found), ("keras", found)))
    assert "onnx and keras answer fastest here, and cannot be told apart" in page
    slow = replace(
        found,
        latencies=tuple(
            replace(one, exported_s=one.exported_s.times(9.0)) for one in found.latencies
        ),
    )
    page = export_page(result(("onnx", found), ("keras", slow)))
    assert "onnx answers fastest here: ×30 (25–36) as fast as the model" in page
