from __future__ import annotations

import datetime
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.price_server import (
    PriceServer,
    gpuhunt_row,
    gpuhunt_zip,
    serving,
    skypilot_list,
    skypilot_row,
)

from tfdyno.catalog.price_sources import PriceSource, price_sources
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.jobs.prices.live import VAST_QUERY
from tfdyno.jobs.prices.today import Today, fetch_today, providers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime.datetime.now(tz=datetime.UTC).date()
L4 = gpuhunt_zip("aws", gpuhunt_row("g6.xlarge", "L4", 1, 24.0, 0.8))
T4 = skypilot_list(skypilot_row("g4dn.xlarge", "T4", 1, 0.526, 0.2, memory_mib=16384))


@pytest.fixture
def server() -> Iterator[PriceServer]:
    with serving() as one:
        one.answers["/gpuhunt/aws/version"] = b"20261127\n"
        one.answers["/gpuhunt/aws/20261127/catalog.zip"] = L4
        one.answers["/skypilot/aws/vms.csv"] = T4
        one.answers["/skypilot/hyperstack/vms.csv"] = T4
        yield one


def _sources(server: PriceServer, most_bytes: int = 1_000_000) -> tuple[PriceSource, ...]:
    return tuple(
        replace(one, url=f"{server.url}/{one.name}", most_bytes=most_bytes)
        for one in price_sources()
    )


def _today(server: PriceServer, *providers: str, timeout_s: float = 30.0) -> Today:
    return fetch_today(_sources(server), providers=providers, timeout_s=timeout_s)


def test_every_provider_comes_from_the_first_source_that_answers(server: PriceServer) -> None:
    found = _today(server, "aws", "hyperstack")
    assert [(one.provider, one.source, one.prices) for one in found.fetched] == [
        ("aws", "gpuhunt", 1), ("hyperstack", "skypilot", 1),
    ]  # fmt: skip
    assert {(one.provider, one.gpu_slug, one.source) for one in found.listings} == {
        ("aws", "l4", "gpuhunt aws 20261127"), ("hyperstack", "t4", "skypilot hyperstack"),
    }  # fmt: skip
    assert {one.date for one in found.listings} == {NOW.isoformat()}
    assert "/skypilot/aws/vms.csv" not in server.asked


def test_the_next_source_is_asked_where_the_first_fails(server: PriceServer) -> None:
    server.answers["/gpuhunt/aws/20261127/catalog.zip"] = L4[:50]
    found = _today(server, "aws")
    assert [(one.gpu_slug, one.source) for one in found.listings] == [("t4", "skypilot aws")]
    assert [(one.provider, one.source) for one in found.failed] == [("aws", "gpuhunt")]
    assert "zip is damaged" in found.failed[0].why


def test_three_that_are_down_slow_or_endless_leave_what_the_others_gave(
    server: PriceServer,
) -> None:
    server.answers["/skypilot/vast/vms.csv"] = server.drip
    server.answers["/skypilot/seeweb/vms.csv"] = server.pour
    server.answers["/skypilot/cudo/vms.csv"] = 500
    began_s = time.monotonic()
    found = _today(server, "aws", "cudo", "seeweb", "vast", timeout_s=2.0)
    assert {one.provider for one in found.listings} == {"aws"}
    whys = {one.provider: one.why for one in found.failed}
    assert "500" in whys["cudo"]
    assert "over 1 MB" in whys["seeweb"]
    assert "too slow" in whys["vast"]
    assert time.monotonic() - began_s < 60.0  # not one after the other without limits


def test_all_failing_is_an_error_that_says_what_stays(server: PriceServer) -> None:
    server.answers.clear()
    with pytest.raises(ToolError, match="of 2 providers: the server says 404 Not Found; the prices "
                       "at hand stay"):  # fmt: skip
        _today(server, "cudo", "vast")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"<html>", "a web page"),
        (skypilot_list(), "no machine with a GPU"),
        (skypilot_list(skypilot_row("a", "T4", 1, "EUR 3")), "no machine with a GPU"),
        (T4.replace(b",Region", b",PriceCurrency").replace(b"us-east-1", b"EUR"), "Region"),
    ],
)
def test_an_answer_that_is_no_list_is_a_failure(
    server: PriceServer, answer: bytes, why: str
) -> None:
    server.answers["/skypilot/cudo/vms.csv"] = answer
    found = _today(server, "aws", "cudo")
    assert [one.provider for one in found.failed] == ["cudo"]
    assert why in found.failed[0].why


def test_a_clock_that_is_years_off_is_noticed_and_prices_are_dated_by_the_servers(
    server: PriceServer,
) -> None:
    server.ahead_s = 800 * 86400.0
    found = _today(server, "aws", "hyperstack")
    assert found.clock_off_days == pytest.approx(800, abs=0.01)
    assert {one.date for one in found.listings} == {str(NOW + datetime.timedelta(days=800))}
    server.ahead_s = 3600.0
    assert _today(server, "aws").clock_off_days == 0.0


def test_what_is_heard_counts_the_providers(server: PriceServer) -> None:
    heard: list[str] = []
    fetch_today(_sources(server), providers=("aws",), heard=heard.append)
    assert heard[0] == "prices: 0 of 1 providers, 0.0 MB"


def test_a_provider_in_no_list_is_refused(server: PriceServer) -> None:
    with pytest.raises(UsageError, match="no price list has provider 'awz'; choose from aws, az"):
        _today(server, "awz")
    assert providers_of(price_sources()[:1], ("gcp",)) == ("gcp",)


def test_a_provider_that_tells_its_prices_itself_is_asked_before_others_that_list_it(
    server: PriceServer,
) -> None:
    offer = {
        "cpu_cores": 32, "cpu_cores_effective": 8, "cpu_ram": 128000, "dph_base": 0.4,
        "geolocation": "Bulgaria, BG", "gpu_name": "RTX 4090", "gpu_ram": 24564, "num_gpus": 1,
    }  # fmt: skip
    server.answers["/vast"] = json.dumps({"offers": [offer]}).encode()
    found = _today(server, "vast")
    assert [(one.gpu_slug, one.source) for one in found.listings] == [("rtx-4090", "vast vast")]
    assert server.posted == [VAST_QUERY]
    server.answers["/vast"] = server.drip
    server.answers["/skypilot/vast/vms.csv"] = skypilot_list(
        skypilot_row("1x-RTX_3090-32-65536", "RTX3090", 1, 0.2, "0.00", memory_mib=24576)
    )
    found = _today(server, "vast", timeout_s=1.0)
    assert [(one.gpu_slug, one.source) for one in found.listings] == [("rtx-3090", "skypilot vast")]
    assert "too slow" in found.failed[0].why


def test_a_reader_that_fails_is_a_failure_of_its_list_alone(
    server: PriceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfdyno.jobs.prices.gpuhunt.read_list", lambda *_, **__: 1 / 0)
    found = _today(server, "aws")
    assert [one.source for one in found.fetched] == ["skypilot"]
    assert found.failed[0].why == "it could not be read (ZeroDivisionError: division by zero)"
