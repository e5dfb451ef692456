"""view/memory_page: one file that loads nothing, with figures, plan and the whole answer."""

from __future__ import annotations

import json
import re

import pytest
from tests.memories import FINDING, answer, plan, unfit

from tfdyno.core.choose.memory_answer import MemoryAnswer
from tfdyno.view.memory.page import memory_page


def test_the_page_leads_with_the_plan_and_has_its_options_as_a_table() -> None:
    page = memory_page(answer(plan()), "1.0")
    heading = re.search(r"<h1>(.*?)</h1>", page)
    assert heading
    assert heading[1].replace("\u00a0", " ").startswith("Should fit NVIDIA Card with mixed_float16")
    assert "mixed_float16 (chosen)" in page
    assert "1.04× [0.94–1.14]" in page
    assert "What each layer holds at the peak" in page
    assert "tfdyno train keras:ResNet50 --data FILE.py:FUNCTION --recipe fit.toml" in page


def test_without_a_plan_it_leads_with_the_peak_and_offers_one() -> None:
    page = memory_page(answer(), "1.0")
    assert "holds 4" in page
    assert "tfdyno memory keras:ResNet50 --gpu card --batch-size 100 --plan" in page
    own = memory_page(answer(batch_source="the script"), "1.0")
    assert "tfdyno memory keras:ResNet50 --gpu card --plan" in own


def test_findings_have_their_fix() -> None:
    page = memory_page(answer(unfit(), findings=(FINDING,)), "1.0")
    assert "Nothing fits." in page
    assert "tfdyno advise model.py" in page
    assert "and none fits" in page
    assert "--recipe fit.toml" not in page  # there is none
    assert "tfdyno advise keras:ResNet50" in page


def test_it_loads_nothing_and_holds_the_whole_answer() -> None:
    page = memory_page(answer(plan()), "1.0")
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    found = re.search(r'<script type="application/json" id="result">(.*?)</script>', page, re.S)
    assert found
    assert json.loads(found[1])["plan"][0]["samples"] == 32


def test_a_log_alone_has_no_page() -> None:
    with pytest.raises(ValueError, match="needs a workload"):
        memory_page(MemoryAnswer(names={}), "1.0")
