"""Pipelines made again stage by stage: nothing that comes out of them changes."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.pipelines import asked, epochs

REBUILT = """
def again(dataset):
    # Every source becomes another stage, so every stage after it has to be made again.
    same = lambda stage, inputs: None if inputs else stage.take(10 ** 6)
    return input_rebuild.changed(dataset, same)

result = {}
for name in [*MADE, *CHAINS]:
    try:
        dataset = again(made(name))
        kinds = [type(stage).__name__ for stage in input_stages.walk(dataset)]
        old = [type(stage).__name__ for stage in input_stages.walk(made(name))]
        spec = repr(dataset.element_spec) == repr(made(name).element_spec)
        dataset = again(made(name))
        result[name] = {"rows": [flat(dataset) for _ in range(3)], "spec": spec,
                        "kinds": [kind for kind in kinds if kind != "_TakeDataset"],
                        "old": [kind for kind in old if kind != "_TakeDataset"]}
    except TfdynoError as error:
        result[name] = {"refused": str(error)}
shuffled = input_rebuild.changed(numbers().shuffle(4), lambda s, i: None)
counted = again(made("counted"))
result["counts"] = [int(made("counted").cardinality()), int(counted.cardinality())]
miscounted = again(numbers().apply(tf.data.experimental.assert_cardinality(13)).batch(4))
try:
    result["miscounted"] = len(flat(miscounted))
except tf.errors.FailedPreconditionError as error:
    result["miscounted"] = str(error)
base = numbers()
dag = D.zip((base.map(double), base.map(parity)))
again_dag = again(dag)
result["dag"] = len({id(s) for s in input_stages.walk(again_dag)})
result["dag_was"] = len({id(s) for s in input_stages.walk(dag)})
"""
REFUSED = {"scan", "snapshot"}
pytestmark = pytest.mark.tf


@functools.cache
def rebuilt() -> dict[str, Any]:
    return dict(asked(REBUILT))


def test_every_epoch_comes_out_as_before() -> None:
    names = [name for name in epochs() if name not in REFUSED | {"parallel_draws"}]
    assert [name for name in names if rebuilt()[name]["rows"] != epochs()[name]] == []


def test_stages_keep_their_class_and_what_they_give() -> None:
    for name in set(epochs()) - REFUSED:
        assert rebuilt()[name]["spec"], name
        assert rebuilt()[name]["kinds"] == rebuilt()[name]["old"], name


def test_a_stage_that_cannot_be_made_again_is_named() -> None:
    assert {name for name in epochs() if "refused" in rebuilt()[name]} == REFUSED
    assert rebuilt()["scan"]["refused"].startswith(
        "the input options cannot reach what comes before scan(lambda of <string>, line "
    )


def test_a_dataset_that_is_used_twice_is_made_once() -> None:
    assert rebuilt()["dag"] == rebuilt()["dag_was"] + 1  # the take after the one source


def test_the_number_of_elements_that_a_script_asserts_stays_and_is_checked() -> None:
    assert rebuilt()["counts"] == [2, 2]  # six numbers in batches of four
    assert "contain 13 elements but contained only 12" in rebuilt()["miscounted"]
