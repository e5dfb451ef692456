from __future__ import annotations

from dataclasses import replace

from tests.advice import candidate, estimate, offer, run

from tfdyno.core.choose.advice import Advice, Candidate, CostOrder, Pick
from tfdyno.view.choose.ranking_text import distinct, ranking_lines, rest_line

T4 = candidate("Tesla T4", 9.0, 5.0)
T4_DEARER = replace(T4, cost_usd=T4.cost_usd, offer=offer("tesla t4", 2.0, provider="other"))
SPOT = replace(T4, offer=offer("tesla t4", 0.1, spot=True))
LATE = replace(candidate("P4", 99.0, 1.0), verdict="too late")
SMALL = replace(
    candidate("GTX 1650", 9.0, 1.0),
    verdict="does not fit",
    reason="needs 9 of 4 GiB; no batch fits",
)


def advice(*ranking: Candidate, picks: tuple[Pick, ...] = ()) -> Advice:
    return Advice(
        title="model",
        headline="",
        run=run(),
        ranking=ranking,
        picks=picks,
        changes=(),
        buy_or_rent=(),
        assumptions={},
        sources=(),
        catalogue_date="",
        made_on="",
        exact=True,
    )


def lines(one: Advice, rows: int = 8, width: int = 80) -> list[str]:
    return ranking_lines(one, rows=rows, width=width, colour=False).splitlines()


def test_like_offers_show_once_and_spot_apart() -> None:
    assert distinct([T4, T4_DEARER, SPOT]) == [T4, SPOT]


def test_what_is_left_out_is_counted_by_reason() -> None:
    assert (
        rest_line(advice(T4, LATE, SMALL), 3)
        == "3 more feasible, 1 too late, 1 too small: add --all"
    )
    assert rest_line(advice(T4), 0) == ""


def test_a_cost_that_is_a_tie_with_the_first_is_marked_and_the_mark_is_told() -> None:
    tied = replace(SPOT, to_first=CostOrder(tied=True, unsure_by="time"))
    apart = replace(T4_DEARER, to_first=CostOrder(tied=False, decided_by="price"))
    shown = lines(advice(T4, tied))
    assert [("≈5.00" in line) for line in shown[2:4]] == [False, True]
    assert "  ≈ is a tie in cost with the cheapest" in "\n".join(shown)
    assert "≈" not in "\n".join(lines(advice(T4, apart)))
    assert "≈ is a tie" in "\n".join(lines(advice(T4, tied), rows=0))


def test_picks_are_shown_even_where_they_rank_low() -> None:
    many = [candidate(f"Card {i}", 10.0, 1.0 + i) for i in range(12)]
    last = Pick(title="fastest", candidate=many[-1], reason="")
    shown = lines(advice(*many, picks=(last,)), rows=3)
    assert [line.split()[1] for line in shown[2:5]] == ["0", "1", "11"]


def test_all_tells_excluded_cards_by_reason_and_each_once() -> None:
    shown = "\n".join(lines(advice(T4, LATE, SMALL, SMALL), rows=0))
    assert "Too late (1 row)" in shown
    assert "Do not fit (2 rows)" in shown
    assert shown.count("GTX 1650: needs 9 of 4 GiB; no batch fits") == 1


def test_an_old_price_has_a_star_and_a_footnote() -> None:
    old = replace(T4, reason="memory traffic sets the pace, price of 2026-10")
    shown = lines(advice(old))
    assert "cloud* " in shown[2]
    assert shown[-1] == "  * price older than 12 months: tfdyno data refresh"
    assert "*" not in "".join(lines(advice(T4)))


def test_a_short_run_is_told_in_minutes_and_a_long_one_in_hours() -> None:
    brief = lines(advice(candidate("T4", 0.25, 1.0)))
    assert " min " in brief[1]
    assert " 15.0 " in brief[2]
    assert " min " not in lines(advice(T4))[1]


def test_long_names_are_cut_before_numbers_are() -> None:
    name = "RTX PRO 6000 Blackwell Max-Q Workstation Edition"
    long = replace(candidate(name, 9.0, 5.0), estimate=estimate(max_batch_size=12345))
    shown = lines(advice(long))
    assert max(map(len, shown)) <= 80
    assert "…" in shown[2]
    assert "12,345" in shown[2]
