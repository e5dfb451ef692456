"""rules/export: every obstacle has its reason, its remedy and a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.deploy.export import FORMATS, ObstacleFact
from tfdyno.rules.export import COLUMNS, TABLE, obstacles, refused, sentence
from tfdyno.rules.tables import read_rows

if TYPE_CHECKING:
    from tfdyno.core.deploy.export import Format


def fact(kind: str, name: str, *, form: Format = "onnx", layer: str = "words") -> ObstacleFact:
    return ObstacleFact(format=form, kind=kind, name=name, layer=layer)


def test_the_table_is_sorted_complete_and_knows_its_formats() -> None:
    rows = read_rows(TABLE, COLUMNS)
    keys = [(row["format"], row["kind"], row["name"]) for row in rows]
    assert keys == sorted(set(keys))
    assert {row["format"] for row in rows} <= set(FORMATS)
    assert all(value.strip() for row in rows for value in row.values())


def test_a_table_of_words_is_refused_with_its_layer_and_what_to_do() -> None:
    [one] = obstacles([fact("operation", "LookupTableFindV2")])
    assert sentence(one) == (
        "layer 'words' (LookupTableFindV2): ONNX gets no entries of the table from the converter "
        "tf2onnx"
    )
    assert one.remedy.startswith("look words up in front of the model")


def test_an_operation_without_a_row_has_the_converters_reason() -> None:
    [one] = obstacles([fact("operation", "Betainc", layer="")])
    assert sentence(one) == "Betainc: the converter tf2onnx has no operation of ONNX for it"


def test_tensorrt_is_refused_what_onnx_is() -> None:
    [one] = obstacles([fact("operation", "StringSplitV2", form="tensorrt")])
    assert one.format == "tensorrt"
    assert "no operation on text" in one.why


def test_a_fact_keeps_the_reason_that_it_brings() -> None:
    [one] = obstacles([ObstacleFact(format="litert", name="Roll", layer="r", why="a", remedy="b")])
    assert (one.operation, one.layer, one.why, one.remedy) == ("Roll", "r", "a", "b")


def test_the_same_obstacle_is_told_once() -> None:
    assert len(obstacles([fact("layer", "Lambda", form="keras")] * 3)) == 1


def test_what_a_child_is_given_names_no_row_for_everything() -> None:
    given = refused()
    assert "*" not in given["onnx"]["operation"]
    assert "StringLookup" in given["torch"]["layer"]
    assert "Unique" in given["tensorrt"]["onnx_operation"]
