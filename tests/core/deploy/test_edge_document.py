"""The JSON of ``tfdyno edge`` has the devices under a name of their own."""

from __future__ import annotations

from tests.view.edge_reports import REPORT

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.deploy.edge import EdgeReport
from tfdyno.core.deploy.edge_document import edge_document


def test_devices_have_their_range_by_name() -> None:
    found = edge_document(REPORT)
    assert [one["device"] for one in found["devices"]] == ["pi", "chip"]
    assert found["devices"][0]["latency_s"] == {"low": 2e-6, "high": 0.00021}
    assert found["need"]["live_bytes"] == 10816
    assert "verdicts" not in found


def test_the_noun_itself_reads_back() -> None:
    assert from_json(to_json(REPORT), EdgeReport) == REPORT
