"""``tfdyno offers`` prints what the price lists hold, or says that nothing matches."""

from __future__ import annotations

import json

import pytest

from tfdyno.cli.main import main


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code = main(["offers", *words])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(printed(capsys, *words, "--json"))["offers"]
    return found


def test_only_what_was_asked_for_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, "--gpu", "t4", "--spot")
    assert found
    assert {one["offer"]["gpu_slug"] for one in found} == {"t4"}  # type: ignore[index]
    assert {one["offer"]["spot"] for one in found} == {True}  # type: ignore[index]


def test_prices_are_per_gpu_and_rise(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, "--gpu", "h100-sxm5-80gb", "--on-demand")
    prices = [one["usd_per_gpu_h"] for one in found]
    assert len(prices) > 1
    assert prices == sorted(prices)  # type: ignore[type-var]
    for one in found:
        offer: dict[str, float] = one["offer"]  # type: ignore[assignment]
        cards = offer["gpu_count"] * offer["gpu_fraction"]
        assert one["usd_per_gpu_h"] == pytest.approx(offer["usd_per_h"] / cards)


def test_sorting_by_machine_puts_the_cheapest_machine_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = rows(capsys, "--gpu", "h100-sxm5-80gb", "--sort", "machine")
    prices = [one["offer"]["usd_per_h"] for one in found]  # type: ignore[index]
    assert prices == sorted(prices)


def test_the_list_has_a_price_a_date_and_an_age(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "--gpu", "t4")
    (first, *_) = rows(capsys, "--gpu", "t4")
    offer: dict[str, str] = first["offer"]  # type: ignore[assignment]
    assert offer["region"] in out
    assert offer["priced_on"] in out
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu", ""], "--gpu is empty"),
        (["--gpu", "zzz"], "there is no GPU 'zzz'"),
        (["--provider", "zzz"], "there is no offer of provider 'zzz'; choose from "),
        (["--sort", "prise"], "order 'prise' is not one of price, machine, age, gpu, provider"),
        (["--gpu", "gtx-1050"], "no offer matches; 'tfdyno offers' lists all"),
        (["--offers", "none.csv"], "none.csv does not exist"),
    ],
)
def test_what_cannot_be_listed_is_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["offers", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
