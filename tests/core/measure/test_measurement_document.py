"""core/measure/measurement_document: every field is in the JSON, and comes back from it."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from tests.measurements import measurement, run

from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import (
    CardTelemetry,
    Comparison,
    Instability,
    Measurement,
    Protocol,
    Summary,
    Telemetry,
)
from tfdyno.core.measure.measurement_document import (
    MeasurementReport,
    bench_document,
    document_of,
    measurement_of,
)
from tfdyno.model.measure.comparison import compare

SUMMARY = Summary(
    median_s=0.1, trimmed_mean_s=0.1, interval_s=(0.09, 0.11), sample_count=3, run_count=2,
    throughput_per_s=640.0, first_step_s=1.0, peak_memory_bytes=1 << 30, utilisation_ratio=0.7,
    instabilities=(Instability(kind="noise", text="The steps vary by 9 %."),),
)  # fmt: skip
WATCHED = Telemetry(at_s=(0.5,), cpu_ratio=(0.9,), cards=(CardTelemetry(index=0, power_w=(70.0,)),))
ONE = replace(
    measurement([]),
    runs=(
        run([9.0, 0.1, 0.3, 0.1], steady_from=1, excluded=(2,), telemetry=WATCHED,
            metrics={"accuracy": 0.8}),
        run([0.11], order=1, metrics={"accuracy": 0.9}),
    ),
)  # fmt: skip

TOLD = MeasurementReport(measurement=ONE, summary=SUMMARY, medians_s=(0.1, 0.11))


def through_json(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(to_json(document))
    return found


def test_a_measurement_comes_back_from_its_document() -> None:
    assert measurement_of(through_json(bench_document(ONE, SUMMARY))) == ONE


def test_the_document_has_the_keys_of_the_contract_and_all_fields() -> None:
    document = bench_document(ONE, SUMMARY)
    assert document["samples_s"] == [0.1, 0.1, 0.11]  # no warm-up, no start of an epoch
    assert (document["median_s"], document["interval_s"]) == (0.1, (0.09, 0.11))
    assert (document["throughput_per_s"], document["peak_memory_bytes"]) == (640.0, 1 << 30)
    assert document["instabilities"][0]["text"] == "The steps vary by 9 %."
    assert document["protocol"]["version"] == 1
    assert {field.name for field in fields(Measurement)} <= set(document)


def test_accuracy_is_told_of_real_data_only() -> None:
    assert bench_document(ONE, SUMMARY)["metrics"] == {"accuracy": [0.8, 0.9]}
    made_up = replace(ONE, protocol=Protocol(data="synthetic"))
    assert "metrics" not in bench_document(made_up, SUMMARY)


def test_a_pair_is_the_document_of_the_first_with_the_other_in_it() -> None:
    other = replace(ONE, id="ffff")
    comparison = Comparison(
        verdict="faster", ratio=1.1, interval=(1.05, 1.15), confidence_ratio=0.99, paired=True,
        reason="5 pairs.",
    )  # fmt: skip
    document = through_json(document_of([TOLD, replace(TOLD, measurement=other)], comparison))
    assert measurement_of(document) == ONE
    assert measurement_of(document["against"]) == other
    assert document["comparison"]["verdict"] == "faster"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": None}, "a.json is of another version: None instead of 'tfdyno bench 1'"),
        ({"format": "tfdyno bench 2"}, "is of another version: .*; measure again"),
        ({"runs": [{"samples_s": "fast"}]}, "a.json has a wrong value"),
        ({"task": {"speed": 3}}, "a.json has a wrong value"),
    ],
)
def test_a_document_with_a_fault_is_refused(change: dict[str, object], message: str) -> None:
    document = through_json(bench_document(ONE, SUMMARY))
    with pytest.raises(UsageError, match=message):
        measurement_of(document | change, where="a.json")


@pytest.mark.parametrize("document", [[], 3, {}, {"estimates": []}])
def test_another_document_is_refused_with_what_to_give(document: object) -> None:
    with pytest.raises(UsageError, match=r"is not a result of tfdyno bench; give a file"):
        measurement_of(document)


def test_half_a_document_names_what_it_lacks() -> None:
    with pytest.raises(UsageError, match="it lacks id, protocol, task, runs"):
        measurement_of({"format": "tfdyno bench 1"})


def test_each_side_of_a_pair_has_its_own_cost() -> None:
    a, b = (replace(TOLD, price_performance=({"usd_per_h": usd},)) for usd in (0.4, 2.0))
    document = document_of([a, b], compare(ONE, ONE))
    assert document["price_performance"][0]["usd_per_h"] == 0.4
    assert document["against"]["price_performance"][0]["usd_per_h"] == 2.0
    assert document_of([TOLD])["price_performance"] == ()
