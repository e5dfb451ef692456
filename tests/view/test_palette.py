"""Colours are legible in every theme, and a drawing keeps none of its placeholders."""

from __future__ import annotations

import pytest

from tfdyno.view.palette import BY_NAME, COLOURS, contrast_ratio, paint, recolour, variables

TEXT = ("ink", "muted", "c1", "c2", "c3", "c4", "c5", "bad")


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
@pytest.mark.parametrize("name", TEXT)
def test_text_colours_stand_out_from_the_page(theme: str, name: str) -> None:
    ground = getattr(BY_NAME["bg"], theme)
    assert contrast_ratio(getattr(BY_NAME[name], theme), ground) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
@pytest.mark.parametrize("name", ["ink", "muted", "c1", "c2"])
def test_text_colours_stand_out_from_a_highlighted_row(theme: str, name: str) -> None:
    ground = getattr(BY_NAME["tint"], theme)
    assert contrast_ratio(getattr(BY_NAME[name], theme), ground) >= 4.5


def test_black_on_white_has_the_largest_contrast_there_is() -> None:
    assert contrast_ratio("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast_ratio("#ffffff", "#ffffff") == pytest.approx(1.0)


def test_placeholders_become_classes() -> None:
    svg = f'<path d="M0" fill="{paint("c1")}" stroke="{paint("bg")}"/><g fill="none"></g>'
    assert recolour(svg) == '<path class="f-c1 s-bg" d="M0"/><g fill="none"></g>'


def test_every_theme_names_every_variable() -> None:
    for theme in ("light", "dark", "print"):
        assert all(f"--{colour.variable}:#" in variables(theme) for colour in COLOURS)
