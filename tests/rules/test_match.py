"""The order of verdicts names every verdict, the surest first."""

from __future__ import annotations

import typing

from tfdyno.core.doctor.finding import Verdict
from tfdyno.rules.match import ORDER


def test_the_order_has_every_verdict_once() -> None:
    assert set(ORDER) == set(typing.get_args(Verdict))
    assert len(ORDER) == len(set(ORDER))
    assert ORDER[0] == "proven"
