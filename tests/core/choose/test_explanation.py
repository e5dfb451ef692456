"""An explanation is plain data: it is written and read back without loss."""

from __future__ import annotations

from tests.model.time.test_estimate import estimate

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.choose.explanation import Explanation


def test_an_explanation_reads_back_as_it_was_written() -> None:
    why = estimate(explained=True, replicas=2).explanation
    assert why
    assert from_json(to_json(why), Explanation) == why
