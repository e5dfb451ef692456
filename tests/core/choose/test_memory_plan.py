from __future__ import annotations

import pytest
from tests.memories import plan, unfit

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.choose.memory_plan import MemoryPlan


@pytest.mark.parametrize("one", [plan(), unfit()])
def test_a_plan_is_the_same_after_a_trip_through_json(one: MemoryPlan) -> None:
    assert from_json(to_json(one), MemoryPlan) == one
