from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from tests.price_server import gpuhunt_row, gpuhunt_zip, zipped

from tfdyno.catalog.price_sources import price_sources
from tfdyno.jobs.prices.fetch import Answered, SourceError
from tfdyno.jobs.prices.gpuhunt import fetch_list, read_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.jobs.prices.rows import Reading

WHOLE = gpuhunt_zip("aws", gpuhunt_row("g6.xlarge", "L4", 1, 24.0, 0.8))


def _read(body: bytes, most_bytes: int = 1_000_000) -> Reading:
    return read_list(body, "aws", most_bytes=most_bytes, skip_flags=("runpod-cluster",))


SOURCE = next(one for one in price_sources() if one.kind == "gpuhunt")


def _answers(version: bytes, asked: list[str]) -> Callable[..., Answered]:
    def get(url: str, **_limits: int) -> Answered:
        asked.append(url.removeprefix(SOURCE.url))
        return Answered(body=version if url.endswith("/version") else WHOLE, date=None)

    return get


def test_the_list_is_that_of_the_version_that_is_named() -> None:
    asked: list[str] = []
    found = fetch_list(SOURCE, "aws", _answers(b"20261127\n", asked))
    assert asked == ["/aws/version", "/aws/20261127/catalog.zip"]
    assert (found.version, len(found.reading.rows)) == ("20261127", 1)


@pytest.mark.parametrize("version", [b"<html>", b"", b"../../etc", b"a" * 65])
def test_what_is_no_version_makes_no_address(version: bytes) -> None:
    asked: list[str] = []
    with pytest.raises(SourceError, match="something else"):
        fetch_list(SOURCE, "aws", _answers(version, asked))
    assert asked == ["/aws/version"]


def test_on_demand_and_spot_are_prices_of_their_own() -> None:
    body = gpuhunt_zip(
        "aws",
        gpuhunt_row("p4d.24xlarge", "A100", 8, 40.0, 21.9),
        gpuhunt_row("p4d.24xlarge", "A100", 8, 40.0, 9.9, spot=True),
        gpuhunt_row("m5.large", "", 0, 0, 0.1, vendor=""),
        gpuhunt_row("mi", "MI300X", 8, 192.0, 16.0, vendor="amd"),
        gpuhunt_row("cluster", "H100", 8, 80.0, 16.0, flags="runpod-cluster"),
        gpuhunt_row("odd", "T4", 1, 16.0, "free"),
    )
    found = _read(body)
    assert [(one.usd_per_h, one.spot_usd_per_h) for one in found.rows] == [(21.9, 0), (0, 9.9)]
    assert {(one.card, one.gpus, one.memory_gb) for one in found.rows} == {("A100", 8.0, 40.0)}
    assert (found.unreadable, found.left_out) == (1, 1)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>not found</html>", "the zip is damaged, or something else"),
        (WHOLE[:-30], "the zip is damaged"),
        (zipped("gcp.csv", "a,b\n"), "the zip has no aws.csv"),
        (zipped("aws.csv", "a,b\n"), "has no column instance_name"),
        (zipped("aws.csv", "0" * 3_000_000), "unfolds to over 1 MB"),
    ],
)
def test_a_damaged_zip_is_told(body: bytes, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        _read(body)


@pytest.mark.parametrize("place", range(30, len(WHOLE), 7))
def test_a_flipped_byte_is_told_or_does_no_harm(place: int) -> None:
    body = bytearray(WHOLE)
    body[place] ^= 0xFF
    with contextlib.suppress(SourceError):
        assert len(_read(bytes(body)).rows) <= 1
