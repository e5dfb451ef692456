from __future__ import annotations

from tfdyno.words.choose.fetched import clock_note, missing_note, unknown_note


def test_what_is_missing_is_one_sentence_with_each_reason_once() -> None:
    assert missing_note([]) == ""
    told = missing_note([("aws", "it is down"), ("gcp", "it is slow"), ("vast", "it is down")])
    assert told == ("no prices of today of 3 providers: aws, vast (it is down); gcp (it is slow)")


def test_a_clock_is_behind_or_ahead() -> None:
    assert clock_note(0.0, "2026-11-27") == ""
    assert clock_note(800.2, "2026-11-27").startswith("this machine's clock is 800 days behind")
    assert "1,200 days ahead of those" in clock_note(-1200.0, "2026-11-27")


def test_unknown_names_are_told_the_most_frequent_first() -> None:
    assert unknown_note([]) == ""
    told = unknown_note([("aws", "X1", 0.0, 1), ("vast", "RTX_4090", 48.0, 1200)])
    assert told == (
        "Left out, for no card of the catalogue is meant for sure: RTX_4090 48 GB of vast "
        "(1,200 rows), X1 of aws (1 row)."
    )
    many = [("aws", f"X{i}", 0.0, 1) for i in range(20)]
    assert unknown_note(many).endswith(", and 8 more.")
