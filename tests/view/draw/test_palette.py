"""Colours are legible in every theme, and a drawing keeps none of its placeholders."""

from __future__ import annotations

import pytest

from tfdyno.view.draw.palette import BY_NAME, COLOURS, paint, recolour, variables

TEXT = ("ink", "muted", "c1", "c2", "c3", "c4", "c5", "bad")


def contrast_ratio(first: str, second: str) -> float:
    """Contrast of two ``#rrggbb`` colours, 1 to 21 (WCAG 2.2, relative luminance)."""
    brighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


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
