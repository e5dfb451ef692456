from __future__ import annotations

from tfdyno.view.lookup.offers_text import rejected_list


def test_every_reason_stands_with_its_row_within_the_screen() -> None:
    lines = rejected_list([("row 3", ("no price", "no date " * 9))], width=40).splitlines()
    assert lines[0].startswith("  row 3: no price; no date")
    assert all(line.startswith("    ") for line in lines[1:])
    assert max(map(len, lines)) <= 40
