"""The page of a small device: its document, what fits and what does not, and times if measured."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from tests.view.edge_reports import FITS, LACKS, REPORT

from tfdyno.core.base.codec import to_json
from tfdyno.core.deploy.edge_document import edge_document
from tfdyno.view.deploy.edge_page import edge_page, headline


def page_of(report: object = REPORT) -> str:
    return edge_page(report, date="2026-11-23", version="1")  # type: ignore[arg-type]


def test_the_page_holds_its_document_and_every_section() -> None:
    page = page_of()
    held = re.search(r'<script type="application/json" id="result">(.*?)</script>', page)
    assert held
    assert json.loads(held[1]) == json.loads(to_json(edge_document(REPORT)))
    for name in ("fit", "reasons", "here", "needs", "devices", "how", "next"):
        assert f'id="{name}"' in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_what_bounds_it_and_why_it_does_not_fit_is_told() -> None:
    page = page_of()
    assert "bound: 1 by starting operators and 1 by arithmetic" in page
    assert "Micro has no GELU." in page
    assert "none was measured there" in page
    assert 'id="reasons"' not in page_of(replace(REPORT, verdicts=(FITS,)))


def test_what_is_unverified_is_counted_marked_and_named() -> None:
    assert "unverified (*)" not in page_of()
    page = page_of(replace(REPORT, verdicts=(replace(FITS, unverified="its clock"), LACKS)))
    assert "Figures of 1 device are unverified (*)" in page
    assert '<th scope="row">pi *</th>' in page
    assert "<td>its clock</td>" in page


def test_measured_times_are_drawn_and_their_absence_is_told() -> None:
    page = page_of()
    assert "Bars of the time of a call on this CPU by threads. 1 thread: 4.2 ms" in page
    assert "<svg" in page
    bare = page_of(replace(REPORT, timings=()))
    assert "The model was not run here" in bare
    assert "Nothing was measured." in bare
    assert "<svg" not in bare


def test_a_name_from_outside_is_escaped() -> None:
    assert "<script>alert" not in page_of(replace(REPORT, model="<script>alert(1)</script>"))


def test_the_headline_counts_the_devices() -> None:
    assert headline((FITS, LACKS)) == "It fits on 1 of 2 devices, not on chip"
    assert headline((FITS,)) == "It fits on pi"
    assert headline((LACKS,)) == "It does not fit on chip"
    assert headline((LACKS, LACKS)) == "It fits on none of 2 devices"
    assert headline((FITS,) * 9) == "It fits on all 9 devices"
