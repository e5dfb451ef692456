from __future__ import annotations

from tfdyno.view import text


def test_columns_align_whatever_the_colour() -> None:
    plain = text.table(("a", "n"), [("x", "1"), ("long", "22")], align="<>")
    assert plain.splitlines() == ["a      n", "x      1", "long  22"]
    red = text.paint("x", "red", colour=True)
    coloured = text.table(("a", "n"), [(red, "1"), ("long", "22")], align="<>")
    assert text.shown_width(coloured.splitlines()[1]) == 8


def test_the_elastic_column_gives_way() -> None:
    table = text.table(("name", "n"), [("x" * 100, "1")], width=30, elastic=0)
    line = table.splitlines()[1]
    assert len(line) == 30
    assert line.endswith("…  1")


def test_pairs_leave_out_what_is_empty_and_wrap_the_rest() -> None:
    shown = text.pairs([("one", "word " * 30), ("two", ""), ("three", "x")], width=40)
    assert "two" not in shown
    assert max(map(len, shown.splitlines())) <= 40
    assert shown.splitlines()[-1] == "  three  x"


def test_slices_stay_apart_when_their_names_are_cut() -> None:
    name = "A100 SXM4 80 GB MIG 3g.40gb"
    assert text.shorten(name, 16) == "A100 SX… 3g.40gb"
    assert text.shorten(name, 40) == name
    assert text.shorten("A100 SXM4 80 GB", 8) == "A100 SX…"
    assert all(len(text.shorten(name, width)) <= width for width in range(1, 30))
