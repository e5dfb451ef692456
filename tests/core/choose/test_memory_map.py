from __future__ import annotations

import pytest

from tfdyno.core.choose.memory_map import AllocatorNeed

GIB = 2.0**30


def need(**changes: float) -> AllocatorNeed:
    given = {
        "largest_request_bytes": GIB, "requested_peak_bytes": 4 * GIB,
        "in_use_peak_bytes": 4 * GIB, "footprint_bytes": 5 * GIB, "pool_bytes": 6 * GIB,
        "free_bytes": 2 * GIB, "largest_free_bytes": GIB, **changes,
    }  # fmt: skip
    return AllocatorNeed(**given)


def test_fragments_are_what_was_touched_beyond_what_was_in_use() -> None:
    assert need().fragment_bytes == GIB
    assert need(footprint_bytes=3 * GIB).fragment_bytes == 0.0


@pytest.mark.parametrize(
    ("failed_gib", "fragmented"),
    [(0.0, False), (1.5, True), (2.0, True), (2.5, False)],  # 2 GiB are free in all
)
def test_a_failure_is_one_of_fragments_where_enough_is_free(
    failed_gib: float, fragmented: bool
) -> None:
    assert need(failed_bytes=failed_gib * GIB).is_fragmented is fragmented
