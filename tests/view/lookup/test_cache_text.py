from __future__ import annotations

from dataclasses import replace

from tfdyno.core.choose.cache_content import CacheCleared, CacheContent, CacheGroup
from tfdyno.view.lookup.cache_text import (
    cleared_document,
    cleared_text,
    content_document,
    content_text,
)

NOW_S = 1_000_000.0
CARD = CacheGroup(
    kind="programs", count=1200, size_bytes=3 << 20, made_at_s=NOW_S - 7200.0,
    used_at_s=NOW_S - 120.0,
    made_for={"framework": "tensorflow", "version": "2.21.0", "cards": "NVIDIA H200",
              "processor": "AMD EPYC", "driver": "570.86"},
)  # fmt: skip
TRACES = CacheGroup(kind="traces", count=1, size_bytes=1024, made_at_s=0.0, used_at_s=NOW_S)
CONTENT = CacheContent(
    folder="/c", groups=(TRACES, CARD), limit_bytes=4 << 30, programs_limit_bytes=8 << 30
)


def test_the_size_comes_first_then_each_kind_with_software_and_ages() -> None:
    text = content_text(CONTENT, NOW_S, width=100)
    lines = text.splitlines()
    assert lines[0] == "/c holds 3 MiB."
    assert lines[3].split() == "traces – 1 1 KiB 280 h under 1 s".split()
    assert "TensorFlow 2.21.0, NVIDIA H200, driver 570.86" in lines[4]
    assert lines[4].split()[-7:] == "1,200 3 MiB 2 h 2 min".split()
    assert "Traces and estimates may grow to 4 GiB, compiled programs and autotuning to 8 GiB" in (
        " ".join(text.split())
    )


def test_without_a_card_the_processor_is_told() -> None:
    made_for = {"framework": "jax", "version": "0.10.2", "processor": "AMD EPYC"}
    found = replace(CONTENT, groups=(replace(CARD, made_for=made_for),))
    assert "JAX 0.10.2, AMD EPYC" in content_text(found, NOW_S, width=100)


def test_an_empty_cache_and_one_that_is_not_used_say_so() -> None:
    text = content_text(replace(CONTENT, groups=(), unused="others can write to /c"), NOW_S)
    assert text.startswith("/c holds nothing yet.\n\n"
                           "Compiled programs are not kept: others can write to /c.")  # fmt: skip


def test_what_went_is_one_sentence_of_each_kind() -> None:
    found = CacheCleared(groups=(TRACES, CARD), left=("/c/x: Permission denied",))
    assert cleared_text(found, removed=True, width=120).splitlines() == [
        "Deleted 1 entry, 1 KiB: traced steps.",
        "Deleted 1,200 entries, 3 MiB: programs of trainings for TensorFlow 2.21.0, NVIDIA H200, "
        "driver 570.86.",
        "Not deleted: /c/x: Permission denied.",
    ]
    assert cleared_text(found, removed=False).startswith("Would delete 1 entry")
    assert cleared_text(CacheCleared(groups=()), removed=True) == "There is nothing to delete."


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
