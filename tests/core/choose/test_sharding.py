from __future__ import annotations

from typing import get_args

from tfdyno.core.choose.sharding import ShardingKind
from tfdyno.model.time.sharding import KINDS


def test_every_kind_has_a_formula() -> None:
    assert set(get_args(ShardingKind)) == set(KINDS)
