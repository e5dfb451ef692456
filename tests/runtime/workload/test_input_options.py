"""The input options of a recipe on small pipelines: the same elements, and what cannot be."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
from tests.core.deploy.test_dataset import DATASET
from tests.runtime.pipelines import asked, epochs

from tfdyno.core.base.codec import to_json
from tfdyno.core.deploy.dataset import Feature
from tfdyno.render.data.dataset_reader import dataset_reader

OPTIONED = """
OPTIONS = {
    "prefetch": InputOptions(prefetch=3), "calls": InputOptions(parallel_calls=4),
    "cache": InputOptions(cache=True), "order": InputOptions(deterministic=True),
    "all": InputOptions(prefetch=-1, parallel_calls=-1, cache=True, private_threads=2),
    "buffer": InputOptions(shuffle_buffer=3),
}
result = {}
for name in [*MADE, *CHAINS]:
    for said, options in OPTIONS.items():
        try:
            dataset, notes = input_options.with_input_options(made(name), options)
            rows = [flat(dataset) for _ in range(3)]
            result[f"{name}/{said}"] = {"rows": rows, "notes": notes}
        except TfdynoError as error:
            result[f"{name}/{said}"] = {"refused": str(error)}
"""
TIMED = """
import threading
cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
under_way, lock, counts = [], threading.Lock(), []
def doze(w):
    with lock:
        under_way.append(w)
        counts.append(len(under_way))
    time.sleep(0.05)
    with lock:
        under_way.remove(w)
    return w

def slow(v):
    return tf.py_function(lambda w: doze(int(w)), [v], tf.int64)

def read(dataset):
    counts.clear()
    rows = [int(row) for row in dataset]
    return rows, max(counts, default=0)

def tried(dataset, **how):
    made, notes = input_options.with_input_options(dataset, InputOptions(**how))
    found = made.options()
    kinds = [type(stage).__name__ for stage in input_stages.walk(made)]
    return {"read": read(made), "again": read(made), "notes": notes, "kinds": kinds,
            "order": found.deterministic, "threads": found.threading.private_threadpool_size,
            "same": made is dataset}

def refused(dataset, **how):
    try:
        tried(dataset, **how)
    except TfdynoError as error:
        return str(error)

def uneven(v):
    wait = lambda w: (time.sleep(0.2 if w == 0 else 0.0), w)[1]
    return tf.py_function(wait, [v], tf.int64)

eight, numbered = D.range(8).map(slow), D.range(8).map(uneven, num_parallel_calls=8)
loose = D.range(8).map(uneven, num_parallel_calls=8, deterministic=False)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
def drawing():
    keras.utils.set_random_seed(1)
    return D.range(8).map(draw)
result = {
    "nothing": tried(eight), "one": read(eight), "four": tried(eight, parallel_calls=4),
    "chosen": tried(eight, parallel_calls=-1), "kept": tried(D.range(8).map(slow).prefetch(1)),
    "ahead": tried(D.range(4).prefetch(1).with_options(tf.data.Options()), prefetch=5),
    "threads": tried(D.range(4), private_threads=3, deterministic=True),
    "made_loose": tried(numbered, deterministic=False), "made_strict": tried(loose,
        deterministic=True), "loose": read(loose),
    "draws_loose": tried(drawing(), parallel_calls=4, deterministic=False),
    "distributed": refused(strategy.experimental_distribute_dataset(D.range(8).batch(4)),
                           prefetch=1),
    "generator": [refused(made("generator"), cache=True),
        input_options.with_input_options(made("py_dataset"), InputOptions(prefetch=2,
            parallel_calls=2, shuffle_buffer=5))[1]],
}
"""
CONVERTED = """
import sys, tempfile
from pathlib import Path
from tfdyno.runtime.train import epochs

folder = Path(tempfile.mkdtemp())
for file, numbers_of in (("a", range(7)), ("b", range(7, 12))):
    with tf.io.TFRecordWriter(str(folder / file)) as shard:
        for number in numbers_of:
            value = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
            features = tf.train.Features(feature={"n": value})
            shard.write(tf.train.Example(features=features).SerializeToString())
(folder / "dataset.json").write_text(MANIFEST)
(folder / "read_dataset.py").write_text(READER)
sys.path.insert(0, str(folder))
from read_dataset import read

def tried(shuffle, **how):
    keras.utils.set_random_seed(3)
    dataset = read(5, shuffle, 3)
    try:
        dataset, _ = input_options.with_input_options(dataset, InputOptions(**how))
    except TfdynoError as error:
        return {"refused": str(error)}
    titles = [input_stages.title(stage) for stage in input_stages.walk(dataset)]
    return {"rows": [flat(dataset) for _ in range(2)], "titles": titles,
            "count": int(dataset.cardinality()), "why": epochs.why_full_replay(dataset)}

OPTIONS = {
    "plain": {}, "prefetch": {"prefetch": 3}, "calls": {"parallel_calls": 2},
    "order": {"deterministic": True}, "cache": {"cache": True}, "buffer": {"shuffle_buffer": 3},
    "several": {"prefetch": -1, "parallel_calls": -1, "private_threads": 2},
}
result = {f"{said}/{shuffle}": tried(shuffle, **how)
          for said, how in OPTIONS.items() for shuffle in (0, 100)}
"""
NUMBERS = replace(
    DATASET,
    records=12,
    features=(Feature(name="n", dtype="int64", role="column"),),
    settings=replace(DATASET.settings, kind="csv"),
)
DRAWN = {"parallel_draws", "numpy_draws"}
"""Random on several threads, from the start or as it is told in a note: no two runs are equal."""
pytestmark = pytest.mark.tf


@functools.cache
def optioned() -> dict[str, dict[str, Any]]:
    return dict(asked(OPTIONED))


@functools.cache
def timed() -> dict[str, Any]:
    return dict(asked(TIMED))


@functools.cache
def converted() -> dict[str, Any]:
    texts = {"READER": dataset_reader(NUMBERS), "MANIFEST": to_json(NUMBERS).decode()}
    return dict(asked("".join(f"{name} = {text!r}\n" for name, text in texts.items()) + CONVERTED))


@pytest.mark.parametrize("option", ["prefetch", "calls", "cache", "order", "all"])
def test_elements_and_order_stay_in_every_epoch(option: str) -> None:
    tried = {name: optioned()[f"{name}/{option}"] for name in epochs() if name not in DRAWN}
    rows = {name: each["rows"] for name, each in tried.items() if "rows" in each}
    assert len(rows) >= 18
    assert [name for name, each in rows.items() if each != epochs()[name]] == []


def test_another_buffer_gives_the_same_elements_in_another_order() -> None:
    plain, other = epochs()["parallel_map"][0], optioned()["parallel_map/buffer"]
    assert sorted(other["rows"][0]) == sorted(plain)
    assert other["rows"][0] != plain
    # The first element comes from the three first ones now.
    assert other["rows"][0][0] in (0, 2, 4)
    assert other["notes"] == ["shuffle_buffer: shuffle draws from 3 elements (it had 12)."]


@pytest.mark.parametrize(("case", "words"), [
    ("keras_arrays/buffer", "shuffle_buffer changes nothing: Keras shuffles arrays as a whole."),
    ("take_skip/calls", "parallel_calls: 4 elements at once in map(double)."),
    ("keras_arrays/calls", "parallel_calls: 4 elements at once in map(grab_batch)."),
    ("random_map/calls", "map(draw) still works on one element at a time: it draws random numbers"),
    ("counter/calls", "map(add) still works on one element at a time: each element changes"),
    ("python_pure/calls", "runs Python code on several threads: if it draws random numbers"),
    ("numpy_draws/calls", "runs Python code on several threads: if it draws random numbers"),
    ("shuffle/calls", "parallel_calls changes nothing: the pipeline has no map and no interleave"),
    ("random_dataset/buffer", "shuffle_buffer changes nothing: the pipeline does not shuffle."),
    ("files/all", "cache has no place"),
    ("scan/calls", "the input options cannot reach what comes before scan("),
])  # fmt: skip
def test_it_says_what_was_done_with_which_stage(case: str, words: str) -> None:
    found = optioned()[case]
    assert words in " ".join(found.get("notes", [found.get("refused", "")]))


def test_a_slow_map_really_works_on_several_elements_at_once() -> None:
    assert timed()["nothing"]["same"]
    rows, alone = timed()["one"]
    four, at_once = timed()["four"]["read"]
    assert rows == four == timed()["chosen"]["read"][0] == list(range(8))
    assert alone == 1
    assert 2 <= at_once <= 4
    assert timed()["chosen"]["read"][1] >= 2


def test_the_last_prefetch_is_replaced() -> None:
    ahead = timed()["ahead"]
    assert ahead["kinds"] == ["_RangeDataset", "_PrefetchDataset", "_OptionsDataset"]
    assert ahead["notes"] == ["prefetch: 5 batches are made ready ahead."]


def test_threads_and_order_are_options_of_the_pipeline() -> None:
    assert (timed()["threads"]["threads"], timed()["threads"]["order"]) == (3, True)


def test_what_a_stage_was_told_itself_gives_way() -> None:
    # The first element is slow: it comes last where the order is free.
    assert timed()["loose"][0][0] != 0
    assert timed()["made_strict"]["read"][0] == list(range(8))
    assert timed()["made_loose"]["read"][0][0] != 0


def test_a_free_order_lets_random_maps_run_in_parallel() -> None:
    assert timed()["draws_loose"]["kinds"][1] == "_ParallelMapDataset"


def test_what_cannot_be_applied_is_refused_with_the_stage() -> None:
    assert timed()["distributed"].startswith(
        "the input options cannot be set for a DistributedDataset; give fit"
    )
    refused, notes = timed()["generator"]
    assert "from_generator runs Python code" in refused
    assert notes == [
        "shuffle_buffer changes nothing: the pipeline does not shuffle.",
        "parallel_calls changes nothing: the pipeline has no map and no interleave.",
        "prefetch: 2 batches are made ready ahead.",
    ]


@pytest.mark.parametrize("shuffle", [0, 100])
@pytest.mark.parametrize("option", ["prefetch", "calls", "order", "several"])
def test_data_that_tfdyno_converted_takes_the_options(option: str, shuffle: int) -> None:
    plain, found = (converted()[f"{said}/{shuffle}"] for said in ("plain", option))
    assert found["rows"] == plain["rows"]
    assert found["count"] == plain["count"] == 3  # twelve records in batches of five
    assert found["titles"].index("assert_cardinality") == plain["titles"].index(
        "assert_cardinality"
    )


def test_converted_data_is_cached_unless_it_is_shuffled_first() -> None:
    found = converted()["cache/0"]
    assert found["titles"][-3:] == ["map(decode)", "cache", "prefetch"]
    assert (found["rows"], found["count"]) == (converted()["plain/0"]["rows"], 3)
    assert "shuffle gives another order in each epoch" in converted()["cache/100"]["refused"]


def test_another_buffer_reaches_the_shuffles_on_both_sides_of_the_count() -> None:
    plain, found = converted()["plain/100"], converted()["buffer/100"]
    numbers = [sorted(number for batch in epoch for number in batch) for epoch in found["rows"]]
    assert numbers == [list(range(12))] * 2
    assert found["rows"] != plain["rows"]
    assert found["count"] == 3


def test_a_resumed_training_can_look_into_converted_data() -> None:
    assert converted()["plain/0"]["why"] == ""
    assert "cannot be looked into" not in converted()["plain/100"]["why"]
