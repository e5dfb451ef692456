from __future__ import annotations

from tests.measurements import measurement

from tfdyno.model.measure.comparison import compare
from tfdyno.model.measure.summary import summary
from tfdyno.view.bench.compare_document import compare_document
from tfdyno.view.bench.compare_text import Column


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
