from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.advice import GIB, candidate, estimate, exactly, offer, run
from tests.view.answers import advice

from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.feed import Feeding
from tfdyno.words.choose import advice as words
from tfdyno.words.choose import reasons

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Candidate, Run

A100 = candidate("A100", 11.6, 5.24)
H100 = candidate("H100", 6.7, 5.37)
SPOT = replace(H100, offer=offer("h100", 0.8, spot=True))
EIGHT = replace(candidate("H100", 1.3, 29.53), count=8)
OWN = replace(candidate("RTX 3090", 20.0, 1.2), offer=offer("rtx", 0.0, provider="owned"))
BIG = {"device_memory_bytes": exactly(10.5 * GIB), "usable_memory_bytes": 7.6 * GIB}
EPOCHS = run(epochs=90)


@pytest.mark.parametrize(
    ("pick", "asked", "sentence"),
    [
        (SPOT, EPOCHS, "Rent one H100 on spot: about 6.7 hours and $5.40 for all 90 epochs."),
        (
            EIGHT,
            run(epochs=1, samples=1200),
            "Rent 8 H100 on demand: about 1.3 hours and $30 for one epoch of 1,200 samples.",
        ),
        (
            OWN,
            run(epochs=0, steps=1000),
            "Use your RTX 3090: about 20 hours and $1.20 of electricity for 1,000 steps.",
        ),
        (
            replace(H100, estimate=estimate(mode="infer")),
            run(samples=1_000_000),
            "Serve on one H100 on demand: about 6.7 hours and $5.40 for a million samples.",
        ),
    ],
)
def test_headline_is_the_answer_as_an_order(pick: Candidate, asked: Run, sentence: str) -> None:
    assert words.headline([pick], pick, asked) == sentence


def test_next_to_nothing_is_not_about_under_a_cent() -> None:
    tiny = replace(candidate("T4", 0.115, 0.004), verdict="too dear")
    assert words.headline([tiny], None, run(budget_usd=0.001)) == (
        "Nothing stays within $0.001: the cheapest is T4 with under $0.01 and 6.9 minutes."
    )


def test_what_was_compiled_at_the_batch_is_said_and_a_baked_batch_has_no_way_out() -> None:
    proven = replace(H100, estimate=estimate(fits_verified=True))
    assert words.fit_words(proven) == "Fits: 10.0 of 80 GiB, compiled at this very batch."
    baked = replace(H100, verdict="does not fit", estimate=estimate(**BIG, max_batch_size=None))
    told = reasons.row_reason(baked, run(), stale=False)
    assert told.endswith("; the batch is part of the model")


@pytest.mark.parametrize(
    ("ranking", "asked", "sentence"),
    [
        (
            [replace(H100, verdict="too late"), replace(A100, verdict="too late")],
            run(deadline_h=5.0),
            "Nothing finishes within 5 h: the quickest is H100 with about 6.7 hours and $5.40.",
        ),
        (
            [replace(EIGHT, verdict="too dear"), replace(H100, verdict="too dear")],
            run(budget_usd=5.0),
            "Nothing stays within $5: the cheapest is H100 with about $5.40 and 6.7 hours.",
        ),
        (
            [candidate("H100", 6.7, None)],
            EPOCHS,
            "No price is known: the quickest that fits is H100 with about 6.7 hours for all 90 "
            "epochs.",
        ),
        (
            [candidate("Orin", 6.7, None)],
            replace(EPOCHS, scenario="edge"),
            "Nothing is rented at the edge: the quickest that fits is Orin with about 6.7 hours "
            "for all 90 epochs.",
        ),
        (
            [replace(H100, verdict="does not fit", estimate=estimate(**BIG, max_batch_size=56))],
            EPOCHS,
            "No card is large enough: H100 would need 10.5 of 7.6 GiB; batch 56 would fit it.",
        ),
        (
            [replace(H100, verdict="does not fit", estimate=estimate(**BIG, max_batch_size=0))],
            EPOCHS,
            "No card is large enough: H100 would need 10.5 of 7.6 GiB; not even one sample fits.",
        ),
        (
            [replace(H100, verdict="cannot run", tensorflow="cannot: no code for it")],
            EPOCHS,
            "This TensorFlow runs on none of the cards asked: cannot: no code for it.",
        ),
        (
            [replace(H100, estimate=estimate(fits="may not"))],
            EPOCHS,
            "Nothing surely fits: H100 comes nearest. May not fit: 10.0 of 80 GiB.",
        ),
        ([], EPOCHS, "Nothing is left to choose from: no card and no offer meets the conditions."),
    ],
)
def test_without_an_answer_the_headline_says_what_stands_in_the_way(
    ranking: list[Candidate], asked: Run, sentence: str
) -> None:
    assert words.headline(ranking, None, asked) == sentence


def test_the_range_follows_with_whether_it_fits() -> None:
    assert words.range_line(SPOT) == (
        "Nine times in ten: 5.4–8.4 h, $4.30–6.70 at $0.80/h. Fits: 10.0 of 80 GiB."
    )


@pytest.mark.parametrize(
    ("fits", "start"),
    [("unverified", "Should fit: "), ("may not", "May not fit: "), ("no", "Does not fit: needs ")],
)
def test_doubt_about_memory_is_said(fits: str, start: str) -> None:
    assert words.fit_words(replace(H100, estimate=estimate(fits=fits))).startswith(start)


def test_hardware_is_named_with_its_count_or_share() -> None:
    assert words.card(EIGHT) == "8 x H100"
    part = replace(H100, gpu_name="Tesla A10", offer=offer("a10", 1.0, gpu_fraction=0.167))
    assert words.card(part) == "1/6 of A10"
    assert [words.terms(c) for c in (SPOT, H100, candidate(usd=None))] == [
        "spot",
        "on demand",
        "no offer",
    ]


def test_words_never_say_that_what_is_too_large_should_fit() -> None:
    doubtful = replace(H100, verdict="does not fit", estimate=estimate(**BIG, fits="unverified"))
    assert words.fit_state(doubtful.estimate) == "probably not"
    assert words.fit_words(doubtful) == (
        "Probably does not fit (memory not compiled): needs 10.5 of 7.6 GiB."
    )
    assert reasons.row_reason(doubtful, EPOCHS, stale=False).startswith(
        "probably does not fit (memory not compiled): needs 10.5 of 7.6 GiB; "
    )
    sure = replace(doubtful, estimate=estimate(**BIG, fits="no"))
    assert reasons.row_reason(sure, EPOCHS, stale=False).startswith("needs 10.5 of 7.6 GiB; ")


HUNGRY = Feeding(
    vcpus=8, rate_per_s=Interval(low=300.0, best=620.0, high=900.0), needed_per_s=exactly(1000.0),
    fed_ratio=0.62,
)  # fmt: skip


def test_a_row_whose_gpus_wait_for_data_says_how_much_its_cpus_feed() -> None:
    late = replace(A100, estimate=estimate(bound_by="input"), feeding=HUNGRY)
    assert reasons.row_reason(late, EPOCHS, stale=False) == (
        "waiting for input sets the pace, 8 vCPUs can feed 0.62 of an A100"
    )
    assert words.feed_line(late) == (
        "Its 8 vCPUs can feed 0.62 of an A100: 620 samples/s (300–900) of the 1,000 that it takes."
    )


def test_of_several_gpus_the_number_is_told_that_is_fed() -> None:
    # by hand: 0.62 of eight GPUs are five of them
    assert words.fed_words(replace(EIGHT, feeding=HUNGRY)) == "8 vCPUs can feed 5 of 8 H100"


def test_stages_of_one_thread_are_named_where_more_vcpus_would_not_help() -> None:
    held = replace(HUNGRY, vcpus=1, thread_stages=("shuffle", "batch"))
    assert words.fed_words(replace(A100, feeding=held)) == (
        "1 vCPU can feed 0.62 of an A100 (shuffle and batch in one thread)"
    )


def test_cpus_that_keep_up_are_told_with_their_rate_alone() -> None:
    enough = replace(A100, feeding=replace(HUNGRY, rate_per_s=exactly(1500.0), fed_ratio=1.5))
    assert words.feed_line(enough) == (
        "Its 8 vCPUs can feed it: 1,500 samples/s (1,500–1,500), more than the 1,000 that it takes."
    )
    assert "vCPU" not in reasons.row_reason(enough, EPOCHS, stale=False)


def test_without_a_measured_input_nothing_is_said_of_cpus() -> None:
    assert words.feed_line(A100) == words.fed_words(A100) == ""


@pytest.mark.parametrize(
    ("name", "told"),
    [("A100", "an A100"), ("T4", "a T4"), ("RTX 4090", "an RTX 4090"), ("Titan RTX", "a Titan RTX"),
     ("1/6 of A10", "1/6 of A10"), ("Orin NX", "an Orin NX"), ("L4", "an L4")],
)  # fmt: skip
def test_a_card_has_the_article_that_is_spoken(name: str, told: str) -> None:
    assert words.a_card(name) == told


def test_what_stands_behind_the_memory_of_the_cards_is_said_in_one_line() -> None:
    compiled = advice()
    assert words.memory_line(compiled) == ""
    estimated = replace(compiled, exact=False)
    assert words.memory_line(estimated) == (
        "Where memory was not compiled it is estimated; its range leaves no pick open."
    )
    open_one = replace(estimated, open_fits=("Tesla T4",))
    assert words.memory_line(open_one) == (
        "Whether the step fits T4 is open: no compile has settled it."
    )


@pytest.mark.parametrize(
    ("cards", "what"),
    [
        (("Tesla T4",), "whether the step fits T4"),
        (("Tesla T4", "NVIDIA L4"), "whether the step fits T4 and L4"),
        (("A", "B", "C", "D"), "whether the step fits A, B, C and D"),
        (("A", "B", "C", "D", "E"), "whether the step fits A, B, C and 2 more"),
        ((), f"the memory of {words.card(advice().picks[1].candidate)}"),
    ],
)
def test_a_first_answer_says_what_is_still_being_settled(cards: tuple[str, ...], what: str) -> None:
    assert words.first_line(replace(advice(), open_fits=cards)) == (
        f"First answer. Now being compiled: {what}. The final answer follows."
    )


def test_what_fit_adds_is_told_where_it_is_long_and_where_it_is_short_is_not() -> None:
    def copied(seconds_s: float) -> str:
        whole = exactly(0.1 + seconds_s)
        step = replace(A100.estimate, step_s=exactly(0.1), fit_step_s=whole)
        return words.copied_line(replace(A100, estimate=step))

    assert words.copied_line(A100) == ""
    assert copied(0.004) == ""
    assert copied(0.05).startswith(
        "With data in host memory a step of fit takes about 150 ms, not 100 ms, as each batch is"
    )
    assert "prefetch_to_device" in copied(0.05)


def test_an_own_contract_is_used_and_not_rented() -> None:
    best = replace(candidate(), offer=replace(offer(), instance="rack-3", terms="contract"))
    assert words.terms(best) == "contract"
    assert words.headline([best], best, run()).startswith("Use your rack-3 (")
    assert ", contract): about " in words.headline([best], best, run())
