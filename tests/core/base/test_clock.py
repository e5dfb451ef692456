from __future__ import annotations

import re
from datetime import UTC, datetime

from tfdyno.core.base.clock import now, today


def test_now_is_a_second_of_utc_that_reads_back() -> None:
    said = now()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", said)
    assert abs((datetime.now(UTC) - datetime.fromisoformat(said)).total_seconds()) < 60.0
    assert abs((datetime.now(UTC).date() - today()).days) <= 1
