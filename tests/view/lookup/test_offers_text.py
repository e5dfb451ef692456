from __future__ import annotations

from dataclasses import replace

from tfdyno.catalog.price_history import PriceHistory, PricePoint
from tfdyno.core.choose.hardware import Offer
from tfdyno.view.lookup.offers_text import history_list, offer_list, rejected_list


def test_every_reason_stands_with_its_row_within_the_screen() -> None:
    lines = rejected_list([("row 3", ("no price", "no date " * 9))], width=40).splitlines()
    assert lines[0].startswith("  row 3: no price; no date")
    assert all(line.startswith("    ") for line in lines[1:])
    assert max(map(len, lines)) <= 40


OFFER = Offer(
    slug="cloud/small/here/on_demand", provider="cloud", instance="small", region="here",
    gpu_slug="t4", gpu_count=1, gpu_fraction=1.0, vcpus=4, ram_bytes=0.0, usd_per_h=0.4, spot=False,
    priced_on="2026-11-27", date_precision="day", source="test",
)  # fmt: skip


def test_a_price_that_moved_has_its_range_and_its_change() -> None:
    points = tuple(
        PricePoint(date=date, usd_per_h=usd)
        for date, usd in (("2026-01", 0.5), ("2026-06-01", 0.6), ("2026-11-27", 0.4))
    )
    past = PriceHistory(points=points, low_usd_per_h=0.4, high_usd_per_h=0.6, change_ratio=-0.2)
    text = history_list([(OFFER, past), (replace(OFFER, slug="other"),
                                         replace(past, points=points[-1:]))])  # fmt: skip
    lines = text.splitlines()
    assert lines[0] == "t4"
    assert lines[2].split() == ["cloud", "small", "here", "0.40", "0.40", "0.60", "2026-01", "−20%"]
    assert "1 of 2 offers have had another price" in text
    assert "Of the other 1 one price is known so far." in " ".join(text.split())


def test_of_many_offers_of_a_card_the_rest_is_counted() -> None:
    lines = [(replace(OFFER, slug=str(i), instance=f"m{i}"), 0.4, 0, "") for i in range(50)]
    assert offer_list(lines).count("cloud") == 50
    text = offer_list(lines, most=40)
    assert (text.count("cloud"), "… 10 more: tfdyno offers --gpu t4" in text) == (40, True)
    assert text.endswith("50 offers; n GPUs at $/h, $/GPU for one of them for an hour.")
    assert "more:" not in offer_list(lines[:41], most=40)


def test_what_is_free_stands_beside_the_price_where_somebody_says() -> None:
    known, unknown = replace(OFFER, available=3), replace(OFFER, slug="other", provider="else")
    text = offer_list([(known, 0.4, 0, ""), (unknown, 0.4, 0, "")])
    lines = text.splitlines()
    assert lines[1].split()[-1] == "free"
    assert lines[2].split()[-1] == "3"
    assert lines[3].split()[-1] == "d"
    assert "empty: nobody says." in " ".join(text.split())
    assert "free" not in offer_list([(unknown, 0.4, 0, "")])
