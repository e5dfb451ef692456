"""Which pipelines give the order of a later epoch without the elements of the earlier ones."""

from __future__ import annotations

import pytest
from tests.runtime.pipelines import epochs, resumed

NEEDED = {
    "shuffle_shuffle", "shuffle_repeat", "shuffle_cache", "concatenate", "generator",
    "py_dataset", "numpy_draws", "tf_generator", "keras_layer", "counter", "captured", "snapshot",
    "python_pure",
}  # fmt: skip
ONLY_CAREFUL = {"python_pure", "snapshot", "captured"}
"""What cannot be looked into is run through, though these would come out right here."""
NEVER_THE_SAME = {"parallel_draws"}

pytestmark = pytest.mark.tf


def test_the_need_of_a_full_replay_is_told_for_each_pipeline() -> None:
    found = {name for name, facts in resumed().items() if facts["why"]}
    assert {name for name in found if not name.startswith("chain")} == NEEDED


def test_iterators_alone_reach_the_third_epoch_where_it_says_so() -> None:
    free = [n for n, f in resumed().items() if not f["why"] and n not in NEVER_THE_SAME]
    assert len([name for name in free if name.startswith("chain")]) >= 5
    assert len(free) >= 25
    assert [n for n in free if resumed()[n]["after"] != epochs()[n][2]] == []
    # It says something only if most of these orders change from epoch to epoch.
    assert len([n for n in free if epochs()[n][1] != epochs()[n][2]]) >= 15


def test_they_do_not_where_it_says_that_the_epochs_must_be_run_through() -> None:
    for name in NEEDED - ONLY_CAREFUL:
        assert resumed()[name]["after"] != epochs()[name][2], name


def test_a_full_replay_reaches_it() -> None:
    wrong = [n for n, facts in resumed().items() if facts["replayed"] != epochs()[n][2]]
    assert set(wrong) <= NEVER_THE_SAME


@pytest.mark.parametrize(("name", "words"), [
    ("shuffle_repeat", "repeat starts the shuffle before it only when it needs elements"),
    ("generator", "from_generator runs Python code, which may keep a state of its own"),
    ("counter", "map(add) keeps a state from epoch to epoch (AssignAddVariableOp)"),
    ("captured", "uses a dataset made outside of it"),
])  # fmt: skip
def test_the_stage_in_the_way_is_named(name: str, words: str) -> None:
    assert words in resumed()[name]["why"]


def test_what_no_seed_repeats_is_named() -> None:
    told = {name: facts["not_repeatable"] for name, facts in resumed().items()}
    assert [name for name, sentences in told.items() if sentences] == ["parallel_draws"]
    assert told["parallel_draws"][0].startswith(
        "map(draw) draws random numbers on several threads: a seed does not repeat them"
    )
