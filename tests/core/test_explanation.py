"""An explanation is plain data: it is written and read back without loss."""

from __future__ import annotations

from tests.model.test_estimate import estimate

from tfdyno.core.codec import from_json, to_json
from tfdyno.core.explanation import Explanation


def test_an_explanation_reads_back_as_it_was_written() -> None:
    why = estimate(explained=True, replicas=2).explanation
    assert why
    assert from_json(to_json(why), Explanation) == why
