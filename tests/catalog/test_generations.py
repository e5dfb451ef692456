"""Which law and lowering a release gets, and what is said of releases that nobody measured."""

from __future__ import annotations

import pytest

from tfdyno.catalog.generations import (
    generations,
    lowering_of,
    newest,
    software,
    software_from,
)
from tfdyno.catalog.software import NEWEST
from tfdyno.catalog.time_model import kernel_tables, time_model, with_generation
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.generation import release_of


@pytest.mark.parametrize(
    ("asked", "generation", "lowering"),
    [
        ("1.15", "2020", "before"),
        ("tensorflow 2.4.1", "2020", "before"),
        ("2.12", "2023", "tensorflow"),
        ("2.15", "2023", "tensorflow"),
        ("2.16", "2026", "tensorflow"),
        ("tensorflow 2.21", "2026", "tensorflow"),
        ("jax", "2026", "jax"),
        ("jax 0.4.4", "2023", "jax"),
        ("jax 0.10.2", "2026", "jax"),
    ],
)
def test_a_release_belongs_to_one_generation(asked: str, generation: str, lowering: str) -> None:
    found = software_from(asked)
    assert found
    assert (found.generation, lowering_of(found), found.note) == (generation, lowering, "")


def test_without_a_wish_nothing_is_asked_and_the_newest_is_at_hand() -> None:
    assert software_from("") is None
    assert newest().version == NEWEST
    assert newest().generation == generations()[-1].name


def test_a_release_that_nobody_measured_takes_the_nearest_and_says_so() -> None:
    later = software("tensorflow", "2.99", "asked")
    assert later.generation == "2026"
    assert "No measured step is of TensorFlow 2.99" in later.note
    assert "2.16 to 2.21" in later.note
    older = software("tensorflow", "1.2", "asked")
    assert older.generation == "2020"
    assert "the oldest known" in older.note


@pytest.mark.parametrize("asked", ["foo", "tensorflow x", "jax new", "2.15 now"])
def test_what_is_no_release_is_refused_with_an_example(asked: str) -> None:
    with pytest.raises(UsageError, match=r"is no release of TensorFlow or JAX.*2\.") as raised:
        software_from(asked)
    assert raised.value.exit_code == 2


def test_generations_stand_oldest_first() -> None:
    firsts = [release_of(one.tensorflow) for one in generations()]
    assert firsts == sorted(firsts)


def test_a_generation_shares_silicon_and_has_software_of_its_own() -> None:
    old, new = time_model("2023"), time_model("2026")
    shared = set(kernel_tables()["parameters"])
    assert all(old[name] == new[name] for name in shared)
    assert old["t_kernel"] > new["t_kernel"]  # no CUDA graphs
    assert new.kernel_executions == {"xla", "graph"}
    assert old.kernel_executions == {"xla"}
    assert time_model("2020").kernel_executions == frozenset()
    assert time_model("2020").parameters == time_model().parameters


def test_every_constant_of_a_law_has_a_value_within_its_range_and_a_source() -> None:
    for name in ("2023", "2026"):
        for one in time_model(name).parameters.values():
            assert one.low <= one.value <= one.high
            assert one.source


def test_a_generation_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="no generation of software '1999'"):
        with_generation(time_model(), kernel_tables(), "1999")
