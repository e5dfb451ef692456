from __future__ import annotations

from dataclasses import replace

from tests.measurements import ENVIRONMENT, TASK, measurement

from tfdyno.core.measure.measurement import Card, Measurement
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.model.measure.comparison import compare
from tfdyno.model.measure.summary import summary
from tfdyno.view.base.text import shown_width
from tfdyno.view.bench.compare_text import Column, compare_document, compare_text

CPU = "It was measured without a GPU."


def levels(step_s: float, **changes: object) -> Measurement:
    return measurement([[step_s * (1 + 0.001 * at)] * 40 for at in range(5)], **changes)


def columns(*all_of: Measurement, **changes: object) -> list[Column]:
    made = [
        Column(
            name="ABC"[at], place=f"{at}.json", measurement=one, summary=summary(one),
            comparison=compare(all_of[0], one) if at else None, prices=(CPU,),
        )
        for at, one in enumerate(all_of)
    ]  # fmt: skip
    return [made[0], *(replace(one, **changes) for one in made[1:])]  # type: ignore[arg-type]


def test_the_answer_comes_first_then_the_numbers() -> None:
    text = compare_text(columns(levels(0.1), levels(0.08)))
    lines = text.splitlines()
    assert lines[0] == "B is 1.25x as fast as A (1.246–1.254, 99 %)."
    assert "their runs did not alternate" in " ".join(text.split())
    row = next(line for line in lines if line.startswith("B  "))
    assert row.split()[:3] == ["B", "80.2", "ms"]
    assert "1.25x" in row


def test_no_line_is_wider_than_the_screen() -> None:
    other = levels(0.08, recipe=Recipe(precision="mixed_float16"), label="a long label " * 4)
    for width in (60, 80, 120):
        text = compare_text(columns(levels(0.1), other), width=width)
        tables = text.split("\n\n")[1:]
        assert max(shown_width(line) for part in tables for line in part.splitlines()) <= width


def test_differences_stand_side_by_side() -> None:
    text = compare_text(columns(levels(0.1), levels(0.08, recipe=Recipe(batch_size=128))))
    assert "recipe.batch_size  0  128" in text


def test_doubts_name_their_measurement() -> None:
    short = measurement([[0.1] * 40] * 3)
    assert "! B: 3 runs count; the protocol asks for 5." in compare_text(
        columns(levels(0.1), short)
    )


def test_an_equal_reason_for_no_price_stands_once() -> None:
    assert compare_text(columns(levels(0.1), levels(0.1))).count(CPU) == 1
    mixed = columns(levels(0.1), levels(0.1), prices=("5 images per US$",))
    text = compare_text(mixed)
    assert "A costs  It was measured" in text
    assert "B costs  5 images" in text


def test_scaling_efficiency_is_told_with_the_replicas() -> None:
    cards = (Card(name="NVIDIA L4", slug="l4"),)
    one = levels(0.1, environment=replace(ENVIRONMENT, device="gpu", cards=cards))
    four = levels(0.125, task=replace(TASK, replica_count=4),
                  environment=replace(ENVIRONMENT, device="gpu", cards=cards * 4))  # fmt: skip
    text = " ".join(compare_text(columns(one, four)).split())
    assert "Scaling efficiency from 1 to 4 replicas: 80 %." in text


def test_what_does_not_compare_has_no_ratio() -> None:
    text = compare_text(columns(levels(0.1), levels(0.1, task=replace(TASK, title="other"))))
    assert text.startswith("B does not compare with A: task.title differs: convnet and other.")
    assert "x as fast" not in text


def test_one_alone_shows_its_numbers_and_its_estimate() -> None:
    (alone,) = columns(levels(0.1))
    text = compare_text([replace(alone, estimate="90 ms")])
    assert "against A" not in text
    assert "A estimated  90 ms" in text


def column(name: str, step_s: float, base: float = 0.0) -> Column:
    one = measurement([[step_s * (1 + 0.001 * at)] * 3 for at in range(5)])
    first = measurement([[base * (1 + 0.001 * at)] * 3 for at in range(5)])
    found = compare(first, one) if base else None
    return Column(
        name=name, place=f"{name}.json", measurement=one, summary=summary(one), comparison=found
    )


def test_the_first_comparison_stands_at_the_top() -> None:
    found = compare_document([column("A", 0.1), column("B", 0.05, 0.1), column("C", 0.2, 0.1)])
    assert found["verdict"] == "faster"
    assert round(found["ratio"], 6) == 2.0
    assert len(found["interval"]) == 2
    assert [(one["base"], one["other"], one["verdict"]) for one in found["comparisons"]] == [
        ("A", "B", "faster"),
        ("A", "C", "slower"),
    ]
    assert [one["name"] for one in found["measurements"]] == ["A", "B", "C"]
    assert found["measurements"][1]["median_s"] == summary(column("B", 0.05).measurement).median_s


def test_one_alone_has_no_verdict() -> None:
    found = compare_document([column("A", 0.1)])
    assert "verdict" not in found
    assert found["comparisons"] == []
