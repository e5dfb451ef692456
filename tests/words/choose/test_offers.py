from __future__ import annotations

from tfdyno.words.choose.offers import left_out_note


def test_one_sentence_tells_how_many_rows_stay_out_and_why() -> None:
    assert left_out_note("mine.csv", []) == ""
    assert left_out_note("mine.csv", [("there is no GPU 't44'",)]) == (
        "1 row of mine.csv was left out: there is no GPU 't44'."
    )
    assert left_out_note("mine.csv", [("a",), ("b", "c"), ("a",)]) == (
        "3 rows of mine.csv were left out: a; b and c."
    )


def test_many_causes_are_counted() -> None:
    note = left_out_note("mine.csv", [(str(cause),) for cause in range(5)])
    assert note == "5 rows of mine.csv were left out: 0; 1; 2; and 2 more causes."
