"""view.key_figures: what each kind of document stands for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import past_runs

from tfdyno.view.key_figures import each, key_figures, kind_of, number, part, picked

KINDS = {
    "advise": "advise", "estimate": "estimate", "train": "train", "bench": "bench",
    "diagnose": "diagnose", "export": "export", "models": "models", "edge": "edge",
    "size": "size", "load": "load",
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
    assert first.place == "desk, Intel(R) Xeon(R) Processor"


def test_an_unknown_command_has_no_figures() -> None:
    assert kind_of("doctor", {"findings": []}) == "other"
    assert kind_of("", {}) == "other"
    assert key_figures("other", {"a": 1.0}) == ()


def test_a_document_says_by_itself_what_it_is() -> None:
    assert kind_of("serve", past_runs.document("load")) == "load"
    assert kind_of("bench --serve", {}) == "load"
    assert kind_of("advise --scenario serve", {}) == "size"
    assert kind_of("advise", {}) == "advise"


def test_a_failed_load_test_has_no_figures() -> None:
    assert key_figures("load", past_runs.document("load") | {"verdict": "failed"}) == ()


@pytest.mark.parametrize("proof", [{"ratio": 1.4, "low": 1.3, "high": 1.5},
                                   {"ratio": 1.4, "interval": [1.3, 1.5]}])  # fmt: skip
def test_the_proof_of_a_tuning_is_read_in_either_form(proof: dict[str, Any]) -> None:
    found = key_figures("tune", {"best": {"samples_per_s": 140.0}, "proof": proof})
    assert (found[0].value, found[0].low, found[0].high) == (1.4, 1.3, 1.5)
    assert found[1].value == 140.0


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
