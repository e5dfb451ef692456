from __future__ import annotations

from tfdyno.core.choose.cache_content import CacheCleared, CacheContent, CacheGroup
from tfdyno.view.lookup.cache_document import cleared_document, content_document

GROUP = CacheGroup(
    kind="programs", count=2, size_bytes=300, made_at_s=0.0, used_at_s=86_400.0,
    made_for={"framework": "tensorflow", "version": "2.21.0"},
)  # fmt: skip
TOLD = {
    "kind": "programs",
    "made_for": {"framework": "tensorflow", "version": "2.21.0"},
    "count": 2,
    "bytes": 300,
    "oldest_made_at": "1970-01-01T00:00:00+00:00",
    "last_used_at": "1970-01-02T00:00:00+00:00",
}


def test_the_content_has_sizes_limits_and_times_in_utc() -> None:
    found = CacheContent(
        folder="/c", groups=(GROUP,), limit_bytes=7, programs_limit_bytes=8, unused="why"
    )
    assert content_document(found) == {
        "folder": "/c", "bytes": 300, "limit_bytes": 7, "programs_limit_bytes": 8,
        "programs_unused": "why", "groups": [TOLD],
    }  # fmt: skip


def test_what_was_cleared_has_its_bytes_and_what_is_left() -> None:
    found = CacheCleared(groups=(GROUP,), left=("/c/x: Permission denied",))
    assert cleared_document(found, removed=True) == {
        "removed": True, "bytes": 300, "groups": [TOLD], "left": ["/c/x: Permission denied"],
    }  # fmt: skip
