"""What is printed as JSON."""

from __future__ import annotations

from tests.services import size

from tfdyno.core.base.codec import to_json
from tfdyno.view.choose.serving_size_document import size_document


def test_it_has_the_keys_of_advise_with_plain_numbers() -> None:
    found = size_document(size())
    first = found["ranking"][0]
    assert (first["gpu"], first["count"], first["hours"]) == ("cheap", 2, 730.0)
    assert first["cost_usd"] == 730.0
    assert [row["gpu"] for row in found["pareto"]] == ["cheap", "quick"]
    assert found["picks"]["fastest"]["gpu"] == "quick"
    assert found["goal"]["peak_per_s"] == 300.0
    assert to_json(found)


def test_what_is_too_slow_has_no_price_and_a_reason() -> None:
    last = size_document(size())["ranking"][-1]
    assert last["cost_usd"] is None
    assert last["verdict"] == "too slow"
    assert last["reason"]
