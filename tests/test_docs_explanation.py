"""The pages of explanation: every module that computes something is explained on one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "src" / "tfdyno" / "model"
EXPLANATION = ROOT / "docs" / "explanation"
NAMED = re.compile(r"`model/([a-z_/]+)\.py`")


def modules() -> set[str]:
    """Names of the modules of arithmetic, with their folders."""
    found = (path.relative_to(MODEL) for path in MODEL.rglob("*.py") if path.stem != "__init__")
    return {path.with_suffix("").as_posix() for path in found}


def named() -> set[str]:
    """Modules that a page of explanation names, as `model/NAME.py`."""
    pages = (page.read_text(encoding="utf-8") for page in EXPLANATION.glob("*.md"))
    return {name for page in pages for name in NAMED.findall(page)}


def unexplained(all_of: set[str], told: set[str]) -> list[str]:
    return sorted(all_of - told)


def test_every_module_of_the_model_is_explained_on_a_page() -> None:
    missing = unexplained(modules(), named())
    assert not missing, f"no page of docs/explanation names `model/NAME.py` of {missing}"


def test_a_module_that_no_page_names_is_missed() -> None:
    assert unexplained(modules() | {"brand_new"}, named() | modules()) == ["brand_new"]


@pytest.mark.parametrize("page", sorted(EXPLANATION.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_names_only_modules_that_are_there(page: Path) -> None:
    found = set(NAMED.findall(page.read_text(encoding="utf-8")))
    assert not found - modules()
