"""What the accuracy page says of several GPUs."""

from __future__ import annotations

import re

from tests.truth.test_scaling import judged

from tfdyno_truth import scaling_report
from tfdyno_truth.sections import markdown


def test_the_answer_is_of_what_the_fit_has_not_seen() -> None:
    found = judged()
    told = scaling_report.answer(found)
    assert f"{found.spreads['model']['all'].median:.1%}" in told
    assert f"{found.spreads['gpu']['all'].mean:.1%}" in told


def test_the_sections_name_what_is_left_out_and_why() -> None:
    whole = "\n".join(markdown(section) for section in scaling_report.sections(judged()))
    assert "## Several GPUs" in whole
    assert "### The 3 worst on several GPUs" in whole
    assert "tf.distribute, which packs all" in whole
    assert "Of several nodes most rows\naccumulate gradients" in whole
    for why in judged().apart:
        assert re.search(rf"\| {re.escape(why)} \| .+ \|", whole)
