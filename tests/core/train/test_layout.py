"""core/layout: what a device has of a weight, rules and their faults, and the file of them."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.train import layout as own
from tfdyno.core.train.device_mesh import DeviceMesh
from tfdyno.core.train.layout import Layout, Placed, Rule

if TYPE_CHECKING:
    from pathlib import Path

MESH = DeviceMesh(names=("data", "model"), sizes=(2, 2))
QUERY = Placed(path="a/query/kernel", shape=(64, 4, 16), width_bytes=4, axes=("", "model", ""),
               rule=".*query.*")  # fmt: skip
HEAD = Placed(path="head/kernel", shape=(64, 100), width_bytes=4)
BIAS = Placed(path="head/bias", shape=(100,), width_bytes=4)


def test_a_device_has_its_part_of_each_split_dimension() -> None:
    assert own.shard_shape((64, 4, 16), ("", "model", ""), MESH) == (64, 2, 16)
    assert own.shard_shape((64, 4, 16), (), MESH) == (64, 4, 16)
    assert own.bytes_per_device(QUERY, MESH) == 64 * 2 * 16 * 4
    assert own.is_split(QUERY, MESH)
    assert not own.is_split(HEAD, MESH)


def test_bytes_are_those_of_a_device_against_the_whole() -> None:
    layout = Layout(mesh=MESH, weights=(QUERY, HEAD, BIAS))
    assert own.whole_bytes(layout) == 16384 + 25600 + 400
    assert own.device_bytes(layout) == 8192 + 25600 + 400


def test_kernels_without_a_rule_are_named_and_small_things_are_not() -> None:
    assert own.unmatched(Layout(mesh=MESH, weights=(QUERY, HEAD, BIAS))) == (HEAD,)


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=3), size=st.integers(1, 4),
    at=st.integers(0, 2),
)  # fmt: skip
def test_the_parts_of_all_devices_are_the_whole(lengths: list[int], size: int, at: int) -> None:
    mesh = DeviceMesh(names=("model",), sizes=(size,))
    at %= len(lengths)
    shape = tuple(n * size if i == at else n for i, n in enumerate(lengths))
    axes = tuple("model" if i == at else "" for i in range(len(shape)))
    one = Placed(path="w", shape=shape, width_bytes=2, axes=axes)
    assert own.bytes_per_device(one, mesh) * size == one.bytes


def test_a_rule_matches_the_whole_path() -> None:
    assert Rule(pattern=".*/kernel", axes=("", "model")).matches("dense/kernel")
    assert not Rule(pattern="dense", axes=("", "model")).matches("dense/kernel")
    with pytest.raises(UsageError, match="is no regular expression"):
        Rule(pattern="(", axes=())


def test_two_rules_for_one_weight_are_told() -> None:
    rules = (Rule(pattern=".*kernel", axes=("", "model")), Rule(pattern="d.*", axes=("model", "")))
    with pytest.raises(UsageError, match=r"two rules of the layout match dense/kernel: '.*' and"):
        own.rule_for("dense/kernel", rules)
    assert own.rule_for("head/bias", rules) is None


def test_a_rule_of_another_rank_or_size_is_told() -> None:
    rule = Rule(pattern=".*", axes=("", "model"))
    assert own.checked_axes("w", (3, 4), rule, MESH) == ("", "model")
    with pytest.raises(UsageError, match=r"names 2 dimensions, and w has 1: \(4\)"):
        own.checked_axes("w", (4,), rule, MESH)
    with pytest.raises(UsageError, match=r"cannot split w \(4, 3\): 3 is not divisible by model=2"):
        own.checked_axes("w", (4, 3), rule, MESH)


def test_the_file_of_rules_is_read_as_it_was_written(tmp_path: Path) -> None:
    rules = (
        Rule(pattern=r"dense(_\d+)?/kernel", axes=("", "model")),
        Rule(pattern="it's", axes=("model",)),
    )
    (tmp_path / "layout.toml").write_text(own.to_toml(rules))
    assert own.read_rules(tmp_path / "layout.toml") == rules


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"has no table \[rules\]"),
        ("[rule]\na = ['']", "it has 'rule'"),
        ("[rules]\na = 3", "cannot be read; give a list of axes"),
        ("[rules]\n'(' = ['']", "is no regular expression"),
    ],
)
def test_a_file_that_is_no_layout_is_told(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        own.rules_from(tomllib.loads(text), "x.toml")


def test_a_rule_is_one_word_of_a_command() -> None:
    rule = Rule(pattern=".*a=b/kernel", axes=("", "model"))
    assert own.rule_word(rule) == ".*a=b/kernel=-,model"
    assert own.read_rule_word(own.rule_word(rule)) == rule
    with pytest.raises(UsageError, match="--rule x cannot be read"):
        own.read_rule_word("x")


def test_an_axis_that_the_mesh_has_not_is_told() -> None:
    with pytest.raises(UsageError, match=r"axis of the rule 'a' 'modl' .*mean model\?"):
        own.check_rules([Rule(pattern="a", axes=("modl",))], MESH)
