"""Layers are grouped by the names a person knows, and nothing is lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view import answers

from tfdyno.core.choose.estimate import LayerTime
from tfdyno.view.draw.layers import OTHER, UNNAMED, group_layers

NAMES = st.text("abc_/12", max_size=12)


def layer(name: str, step_s: float = 1.0) -> LayerTime:
    return LayerTime(
        layer=name,
        step_s=step_s,
        by_phase_s={"forward": step_s},
        by_class_s={"loop": step_s},
        flops=2.0,
        traffic_bytes=3.0,
    )


@given(st.lists(st.builds(layer, NAMES, st.floats(0, 10)), max_size=60), st.integers(2, 14))
def test_grouping_loses_no_second_no_flop_and_no_layer(layers: list[LayerTime], most: int) -> None:
    groups = group_layers(layers, most=most)
    assert len(groups) <= most
    assert sum(group.layers for group in groups) == len(layers)
    assert sum(g.step_s for g in groups) == pytest.approx(sum(one.step_s for one in layers))
    assert sum(g.flops for g in groups) == pytest.approx(2.0 * len(layers))


def test_resnet50_falls_into_its_stages() -> None:
    names = [group.name for group in group_layers(answers.layers(1.0))]
    assert {"conv1", "conv2", "conv3", "conv4", "conv5"} <= set(names)
    assert len(names) <= 12


def test_a_transformer_falls_into_its_blocks_or_into_one_name() -> None:
    few = [layer(f"encoder/layer_{k}/{part}") for k in range(6) for part in ("attention", "mlp")]
    assert [group.name for group in group_layers(few)] == [
        f"encoder/layer_{k}" for k in range(6)
    ] or (len(group_layers(few)) == 12)


def test_a_deep_stack_of_blocks_is_cut_into_ranges() -> None:
    parts = ("attention", "mlp", "norm")
    stack = [layer(f"block_{k}_{part}") for k in range(1, 17) for part in parts]
    ends = [layer(name, 9.0) for name in ("embedding", "final_norm", "head")]
    names = [group.name for group in group_layers([*stack, *ends], most=8)]
    assert names == [
        "block_1–4",
        "block_5–8",
        "block_9–12",
        "block_13–16",
        "embedding",
        "final_norm",
        "head",
    ]


def test_blocks_with_letters_fall_into_their_stage() -> None:
    stages = ["1a", "2a", "2b", "3a", "3b", "4a", "4b", "4c", "5a", "5b", "5c", "6a", "6b", "7a"]
    blocks = [layer(f"block{s}_{part}") for s in stages for part in ("conv", "bn")]
    names = [g.name for g in group_layers(blocks, most=9)]
    assert names == [f"block{k}" for k in range(1, 8)]


def test_a_group_of_one_layer_keeps_its_whole_name() -> None:
    assert [g.name for g in group_layers([layer("avg_pool"), layer("predictions")])] == [
        "avg_pool",
        "predictions",
    ]


def test_the_smallest_groups_are_added_up_last() -> None:
    layers = [layer(name, step) for name, step in zip("abcdef", (9, 1, 8, 1, 7, 1), strict=True)]
    groups = group_layers(layers, most=4)
    assert [group.name for group in groups] == ["a", "c", "e", OTHER]
    assert groups[-1].step_s == 3


def test_time_outside_any_layer_is_named() -> None:
    assert [group.name for group in group_layers([layer(""), layer("a")])] == [UNNAMED, "a"]
