from __future__ import annotations

from tfdyno.core.choose.cache_content import CacheContent, CacheGroup


def test_the_whole_is_the_sum_of_its_groups() -> None:
    one = CacheGroup(kind="traces", count=2, size_bytes=10, made_at_s=1.0, used_at_s=2.0)
    two = CacheGroup(kind="programs", count=1, size_bytes=32, made_at_s=1.0, used_at_s=2.0)
    found = CacheContent(folder="x", groups=(one, two), limit_bytes=1, programs_limit_bytes=1)
    assert found.size_bytes == 42
