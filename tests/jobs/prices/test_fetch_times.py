from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.jobs.prices.fetch_times import fetched_at, fresh, record, times_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))


def test_what_was_fetched_now_is_fresh_and_nothing_else_is() -> None:
    assert fresh(("aws",), 3600) == ()
    record(("aws",))
    record(("gcp",))
    assert set(fetched_at()) == {"aws", "gcp"}
    assert fresh(("aws", "azure", "gcp"), 3600) == ("aws", "gcp")
    assert fresh(("aws",), 1e-9) == ()


@pytest.mark.parametrize("at", ["2019-01-01T00:00:00Z", "2999-01-01T00:00:00Z"])
def test_times_long_ago_and_times_to_come_are_not_fresh(at: str) -> None:
    times_file().write_text(json.dumps({"aws": at}))
    assert fresh(("aws",), 86400) == ()


@pytest.mark.parametrize(
    "text", ["", "{", '{"aws": "soon"}', '["aws"]', '{"aws": "2026-11-27T11:00:00"}']
)
def test_a_file_that_cannot_be_read_holds_nothing_and_is_replaced(text: str) -> None:
    times_file().write_text(text)
    assert fetched_at() == {}
    record(("aws",))
    assert set(fetched_at()) == {"aws"}
