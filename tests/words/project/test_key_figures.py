"""words/project/key_figures: what each kind of document stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import past_runs

from tfdyno.model.choose.run_gain import gained
from tfdyno.words.project.key_figures import (
    each,
    key_figures,
    kind_of,
    machine,
    number,
    part,
    picked,
)

if TYPE_CHECKING:
    from tfdyno.core.project.report import KeyFigure

KINDS = {
    "advise": "advise", "estimate": "estimate", "train": "train", "bench": "bench",
    "diagnose": "diagnose", "export": "export", "models": "models", "edge": "edge",
    "size": "size", "load": "load", "tune": "tune",
}  # fmt: skip
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(), st.text(max_size=3))
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
)


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_a_recorded_document_is_known_and_has_figures(name: str, kind: str) -> None:
    command = dict(past_runs.STEPS.values()).items()
    words = next(words for words, document in command if document == name)
    raw = past_runs.document(name)
    assert kind_of(words, raw) == kind
    found = key_figures(kind_of(words, raw), raw)
    assert found
    assert len({(one.name, one.of) for one in found}) == len(found)
    for one in found:
        if one.low is not None and one.high is not None:
            assert one.low <= one.value <= one.high
            assert 0.5 < one.confidence_ratio < 1


def test_a_bench_stands_for_its_throughput_with_the_interval_of_its_steps() -> None:
    raw = past_runs.document("bench")
    first = key_figures("bench", raw)[0]
    low_s, high_s = raw["interval_s"]
    assert first.value == raw["throughput_per_s"]
    assert first.low == pytest.approx(raw["throughput_per_s"] * raw["median_s"] / high_s)
    assert first.high == pytest.approx(raw["throughput_per_s"] * raw["median_s"] / low_s)
    assert first.place == "desk, Intel(R) Xeon(R) Processor, 2 CPUs"


def test_a_machine_is_its_host_its_cards_and_its_cpus() -> None:
    cards = [{"name": "L4"}, {"name": "L4"}, {"name": "T4"}]
    found = {"host": "desk", "device": "gpu", "cards": cards, "cpu": "Xeon", "cpu_count": 8}
    assert machine({"environment": found}) == "desk, 2 x L4 + T4, 8 CPUs"
    assert machine({"environment": found | {"device": "cpu"}}) == "desk, Xeon, 8 CPUs"
    assert machine({}) == ""


def test_an_unknown_command_has_no_figures() -> None:
    assert kind_of("doctor", {"findings": []}) == "other"
    assert kind_of("", {}) == "other"
    assert key_figures("other", {"a": 1.0}) == ()


def test_a_document_says_by_itself_what_it_is() -> None:
    assert kind_of("serve", past_runs.document("load")) == "load"
    assert kind_of("bench --serve", {}) == "load"
    assert kind_of("advise --scenario serve", {}) == "size"
    assert kind_of("advise", {}) == "advise"
    assert kind_of("launch", {}) == "train"  # it prints what a training prints


def test_the_memory_of_a_gpu_and_that_of_the_program_in_it_are_two_quantities() -> None:
    bounds = {"low": 1.0, "best": 2.0, "high": 3.0}
    card = {"gpu": "l4", "device_memory_bytes": bounds, "peak_memory_bytes": bounds}
    found = key_figures("memory", {"memory": [card, card | {"gpu": "t4"}]})
    assert [(one.title, one.of) for one in found] == [
        ("Memory of the GPU", "l4"), ("Of it, of the program itself", "l4"),
        ("Memory of the GPU", "t4"), ("Of it, of the program itself", "t4"),
    ]  # fmt: skip


def test_a_failed_load_test_has_no_figures() -> None:
    assert key_figures("load", past_runs.document("load") | {"verdict": "failed"}) == ()


def test_the_proof_of_a_tuning_that_was_not_kept_is_no_gain_of_it() -> None:
    raw = past_runs.document("tune")
    kept = key_figures("tune", raw)[0]
    assert (kept.name, kept.title, kept.value) == ("proof", "Gain of the tuning",
                                                   raw["proof"]["ratio"])  # fmt: skip
    raw["proof"] |= {"kept": False, "reason": "The losses differ."}
    first, lost = key_figures("tune", raw)
    assert first.name == "throughput"
    assert (lost.name, lost.title) == ("not_kept", "Measured and not kept")
    fix = key_figures("diagnose", past_runs.document("diagnose"))[-1]
    assert (fix.name, fix.title) == ("not_kept", "Measured and not kept")


def test_a_gain_against_what_changes_from_run_to_run_is_neither_better_nor_worse() -> None:
    bench = past_runs.document("bench") | {"comparison": {"ratio": 2.0, "interval": [1.9, 2.1]}}
    found = [*key_figures("tune", past_runs.document("tune")), *key_figures("bench", bench),
             *key_figures("export", past_runs.document("export")),
             *key_figures("diagnose", past_runs.document("diagnose"))]  # fmt: skip
    ratios = [one for one in found if one.unit == "times"]
    assert {one.name for one in ratios} == {"proof", "not_kept", "against", "speedup"}
    assert {one.better for one in ratios} == {""}


def load(**plan: Any) -> dict[str, KeyFigure]:
    raw = past_runs.document("load") | {"knee_rate_per_s": None, "p99_limit_s": 0.0}
    stage = raw["stages"][0]
    stage["run"]["plan"] |= plan
    raw["stages"] = [stage]
    return {one.name: one for one in key_figures("load", raw)}


def test_figures_of_a_load_test_say_under_which_load_they_hold() -> None:
    assert load()["p99"].terms == "64 clients, 1 row a request"
    assert load(clients=1)["accepted"].terms == "1 client, 1 row a request"
    open_loop = load(kind="open", rate_per_s=800.0)
    assert open_loop["p50"].terms == "800 requests/s offered, 1 row a request"
    knee = {one.name: one for one in key_figures("load", past_runs.document("load"))}
    assert knee["knee"].terms == "p99 within 50 ms, 1 row a request"
    assert knee["p99"].terms == "925 requests/s offered, 1 row a request"


def test_p99_under_fewer_clients_is_no_gain() -> None:
    found = gained("load", load()["p99"], replace(load(clients=2)["p99"], value=1e-3, low=9e-4))
    assert (found.verdict, found.ratio) == ("not_compared", 0.0)
    assert "64 clients, 1 row a request and 2 clients, 1 row a request" in found.reason


@pytest.mark.parametrize(
    ("url", "processes", "place"),
    [
        ("http://127.0.0.1:8501/v1/models/a", [], "2 CPUs (Xeon), triton 2"),
        ("http://desk:8501/v1/models/a", ["1@2.0"], "2 CPUs (Xeon), triton 2"),
        ("http://far.org:8501/v1", [], "far.org, triton 2, asked from 2 CPUs (Xeon)"),
        ("http://[far", [], "triton 2, asked from 2 CPUs (Xeon)"),
    ],
)
def test_a_server_is_where_it_is_not_where_it_is_asked_from(
    url: str, processes: list[str], place: str
) -> None:
    raw = past_runs.document("load") | {"url": url, "machine": "2 CPUs (Xeon)"}
    raw["server"] |= {"processes": processes, "platform": "triton 2"}
    assert {one.place for one in key_figures("load", raw)} == {place}


@given(st.sampled_from(list(KINDS)), st.data())
def test_a_document_with_anything_in_it_is_read_as_far_as_it_can_be(
    name: str, data: st.DataObject
) -> None:
    raw = past_runs.document(name)
    for key in data.draw(st.sets(st.sampled_from(list(raw)), max_size=4)):
        raw[key] = data.draw(JSON)
    for one in key_figures(kind_of(past_runs.STEPS.get(name, (name,))[0], raw), raw):
        assert one.value == one.value  # no NaN


def test_a_path_that_is_not_there_gives_nothing() -> None:
    raw = {"a": [{"b": 1.5}, 7], "c": {"d": True}, "picks": {"cheapest": {"gpu": "l4"}}}
    assert number(raw, "a", 0, "b") == 1.5
    assert number(raw, "a", 4) is None
    assert number(raw, "c", "d") is None
    assert number({"x": float("inf")}, "x") is None
    assert list(each(raw, "a")) == [{"b": 1.5}]
    assert part(raw, "a") == {}
    assert picked(raw) == {"gpu": "l4"}
