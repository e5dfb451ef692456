"""An export as text: what is kept, what is not, and why."""

from __future__ import annotations

import pytest
from tests.exports import two

from tfdyno.view.base.text import shown_width
from tfdyno.view.deploy.export_text import export_text


def test_the_answer_says_what_is_kept_and_what_is_not() -> None:
    text = export_text(two())
    assert text.startswith("digits is exported to onnx; litert-int8 did not pass and is not kept.")
    assert "litert-int8 is not kept: accuracy falls by 2.00 points, more than the 1.00" in text
    assert "Wrote exports/onnx." in text
    assert "Wrote exports/litert-int8" not in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    lines = export_text(two(), width=width).splitlines()
    assert [line for line in lines if shown_width(line) > width] == []
