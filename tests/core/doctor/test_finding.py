"""A finding without proof or without a way out does not exist."""

from __future__ import annotations

import pytest

from tfdyno.core.doctor.finding import Evidence, Finding, FixStep

SEEN = (Evidence(text="no libcudnn.so.9", source="line 12"),)
STEP = (FixStep(command="pip install nvidia-cudnn-cu12"),)


def made(evidence: tuple[Evidence, ...], fix: tuple[FixStep, ...]) -> Finding:
    return Finding(
        cause="lib.cudnn_missing", verdict="proven", severity="error", summary="", why="",
        evidence=evidence, fix=fix,
    )  # fmt: skip


@pytest.mark.parametrize(("evidence", "fix"), [((), STEP), (SEEN, ()), ((), ())])
def test_a_finding_needs_evidence_and_a_fix(
    evidence: tuple[Evidence, ...], fix: tuple[FixStep, ...]
) -> None:
    with pytest.raises(ValueError, match=r"^the finding lib\.cudnn_missing needs evidence and a"):
        made(evidence, fix)


def test_a_finding_was_seen_once_unless_it_says_otherwise() -> None:
    assert made(SEEN, STEP).count == 1
    assert not made(SEEN, STEP).harmless


def test_a_step_of_a_fix_is_a_sentence_or_a_command() -> None:
    assert FixStep(text="Ask the operator.").command == ""
    with pytest.raises(ValueError, match="needs a sentence or a command"):
        FixStep()
