"""A resumed training goes on with the very next batch, whatever gives the data."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.pipelines import epochs, resumed
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
NAMES = ("no_length", "generator", "part_of_epoch")
"""What `test_train_kill` does not kill: it has arrays, a pipeline of a known length, a sequence."""


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_data_goes_on(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dataset", "sequence"])
def test_the_order_of_other_data_goes_on(name: str) -> None:
    check(name, "slow")


def check(name: str, *words: str) -> None:
    found = case("training_single", f"resumed_{name}", *words)["step"]
    assert found["stopped"] == "SIGTERM"
    assert found["at"] == 14
    assert found["from"]
    assert found["history"]
    assert found["apart"] == 0.0
    assert found["counts"]


def test_why_earlier_epochs_are_read_again_is_told() -> None:
    assert case("training_single", "resumed_generator")["step"]["read"] == [
        "reading the data of epoch 1 again: from_generator runs Python code, which may keep a "
        "state of its own"
    ]
    assert case("training_single", "resumed_no_length")["step"]["read"] == []


seen = functools.partial(case, "training_around", "order")


def test_each_epoch_has_an_order_of_its_own() -> None:
    first, second, third = seen()["ours"]
    assert first != second != third != first
    assert sorted(first) == sorted(second) == list(range(40))


def test_a_later_epoch_is_reached_without_the_earlier_ones() -> None:
    assert seen()["again"] == [seen()["ours"][2]]


def test_keras_draws_one_order_for_all_epochs_when_a_seed_is_set() -> None:
    first, second = seen()["keras"]
    assert first == second
    assert first != list(range(40))


def test_a_seed_that_the_users_code_has_set_holds() -> None:
    assert seen()["of_user"]
    assert seen()["unshuffled"]
    assert seen()["repeats"] == [True, False]


def test_a_drawn_seed_reorders_and_a_given_one_is_as_keras_has_it() -> None:
    found = case("training_around", "drawn_seed")
    assert found["as_keras"]
    assert found["anew"]
    assert found["notes"] == ["Keras gives arrays the same order in each epoch: a seed is set."]
    assert found["anew_notes"] == []


NEEDED = {
    "shuffle_shuffle", "shuffle_repeat", "shuffle_cache", "concatenate", "generator",
    "py_dataset", "numpy_draws", "tf_generator", "keras_layer", "counter", "captured", "snapshot",
    "python_pure",
}  # fmt: skip
ONLY_CAREFUL = {"python_pure", "snapshot", "captured"}
"""What cannot be looked into is run through, though these would come out right here."""
NEVER_THE_SAME = {"parallel_draws"}


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
