"""gpu_day/verdict: what follows from checks, and rows that survive a file."""

from __future__ import annotations

import json

from gpu_day.verdict import Check, Row, judged, not_run, raw_of, row_of, skipped

GOOD = Check(what="rows", found="3", wanted="1 or more", ok=True)
BAD = Check(what="errors", found="2", wanted="none", ok=False)


def test_one_wrong_check_fails_it_and_is_the_reason() -> None:
    assert judged([GOOD]).status == "passed"
    told = judged([GOOD, BAD])
    assert (told.status, told.why) == ("failed", "errors: 2, wanted none")
    assert judged([]).status == "failed"  # nothing was shown


def test_what_passed_or_failed_is_over_and_all_else_is_tried_again() -> None:
    rows = [Row(name="x", title="X", status=status) for status in
            ("passed", "failed", "skipped", "not run")]  # fmt: skip
    assert [row.is_over for row in rows] == [True, True, False, False]
    assert (skipped("a").status, not_run("b").status) == ("skipped", "not run")


def test_a_row_is_the_same_after_a_file() -> None:
    row = Row(name="x", title="X", status="failed", why="y", checks=(GOOD, BAD), seconds_s=3.0,
              began_s=1.0, commands=("a b",), logs=("logs/x-1.err",))  # fmt: skip
    assert row_of(json.loads(json.dumps(raw_of(row)))) == row
