"""model/proposed_layout: a transformer is split as by hand, and the rules say just that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.train.layout import Placed, rule_for
from tfdyno.model.time.proposed_layout import proposed_axes, rules_of


@pytest.mark.parametrize(
    ("path", "shape", "axes"),
    [
        # By hand, after Megatron-LM: heads; up by columns, down by rows; the larger of a table.
        ("a/query/kernel", (64, 4, 16), ("", "model", "")),
        ("a/query/bias", (4, 16), ("model", "")),
        ("a/attention_output/kernel", (4, 16, 64), ("model", "", "")),
        ("block/up/kernel", (64, 256), ("", "model")),
        ("block/down/kernel", (256, 64), ("model", "")),
        ("square/kernel", (64, 64), ("", "model")),
        ("embedding/embeddings", (1000, 64), ("model", "")),
        ("embedding/embeddings", (1001, 64), ("", "model")),
        ("conv/kernel", (3, 3, 64, 128), ("", "", "", "model")),
        ("conv/kernel", (3, 3, 64, 3), ("", "", "model", "")),
        ("norm/gamma", (64,), ("",)),
        ("up/bias", (256,), ("",)),
        ("head/kernel", (7, 5), ("", "")),
        ("a/query/kernel", (64, 3, 16), ("", "", "")),
        ("adam/iteration", (), ()),
    ],
)
def test_each_kind_of_weight(path: str, shape: tuple[int, ...], axes: tuple[str, ...]) -> None:
    assert proposed_axes(path, shape, "model", 2) == axes


def test_one_device_splits_nothing() -> None:
    assert proposed_axes("up/kernel", (64, 256), "model", 1) == ("", "")


@given(
    shape=st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple), size=st.integers(2, 6)
)
def test_what_is_split_can_be_divided(shape: tuple[int, ...], size: int) -> None:
    axes = proposed_axes("dense/kernel", shape, "model", size)
    assert len(axes) == len(shape)
    assert all(length % size == 0 for length, name in zip(shape, axes, strict=True) if name)
    assert sum(map(bool, axes)) <= 1


def placed(path: str, shape: tuple[int, ...]) -> Placed:
    axes = proposed_axes(path, shape, "model", 2)
    return Placed(path=path, shape=shape, width_bytes=4, axes=axes)


def test_layers_that_are_split_alike_share_a_rule() -> None:
    weights = [placed(f"block_{n}/up_{n}/kernel", (8, 32)) for n in range(12)]
    (rule,) = rules_of(weights)
    assert rule.pattern == r"block(_\d+)?/up(_\d+)?/kernel"


def test_layers_with_one_name_and_another_split_get_rules_of_their_own() -> None:
    weights = [placed("dense/kernel", (8, 32)), placed("dense_1/kernel", (32, 8))]
    rules = rules_of(weights)
    assert [rule.axes for rule in rules] == [("", "model"), ("model", "")]
    assert [rule.pattern for rule in rules] == ["dense/kernel", "dense_1/kernel"]


SHAPES = st.tuples(st.sampled_from([3, 4, 8]), st.sampled_from([3, 4, 8]))
PATHS = st.sampled_from(["dense", "dense_1", "dense_2", "a/b_3", "a/b", "x.y"])


@given(found=st.dictionaries(PATHS, SHAPES))
def test_the_rules_make_the_same_of_the_model_again(found: dict[str, tuple[int, int]]) -> None:
    weights = [placed(f"{path}/kernel", shape) for path, shape in found.items()]
    rules = rules_of(weights)
    for one in weights:
        rule = rule_for(one.path, rules)
        assert (rule.axes if rule else ("", "")) == one.axes
