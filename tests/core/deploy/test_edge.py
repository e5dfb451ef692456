"""The borders of the classes of latency."""

from __future__ import annotations

from tfdyno.core.deploy.edge import INTERACTIVE_S, REAL_TIME_S


def test_real_time_is_a_frame_of_thirty_in_a_second() -> None:
    assert REAL_TIME_S * 30 == 1.0
    assert REAL_TIME_S < INTERACTIVE_S < 1.0
