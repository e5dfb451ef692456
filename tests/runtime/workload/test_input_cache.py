"""Where a pipeline keeps its elements, and that it is read only once then."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.pipelines import asked

CACHED = """
from tfdyno.runtime.workload.input_cache import with_cache
calls = tf.Variable(0)

def decode(v):
    tf.print("decoded", v, output_stream=LOG)
    return tf.fill([4, 4], tf.cast(v, tf.float32))

def augment(v):
    return v + tf.random.uniform([4, 4])

def scaled(v):
    return v * tf.cast(calls, tf.float32)

def tried(dataset):
    try:
        notes = []
        cached = with_cache(dataset, notes)
        open(LOG[7:], "w").close()
        rows = [len(flat(cached)) for _ in range(3)]
        titles = [input_stages.title(stage) for stage in input_stages.walk(cached)]
        return {"notes": notes, "titles": titles, "decoded": len(open(LOG[7:]).readlines()),
                "rows": rows}
    except TfdynoError as error:
        return {"refused": str(error)}

LOG = "file://" + tempfile.mkstemp()[1]
six, loose = D.range(6), tf.data.Options()
loose.deterministic = False
result = {
    "augmented": tried(six.map(decode).map(augment).shuffle(6).batch(2).prefetch(1)),
    "whole": tried(six.map(decode).batch(2).prefetch(1)),
    "zipped": tried(D.zip((six.map(decode).shuffle(6), six))),
    "repeated": tried(six.map(decode).repeat(2)),
    "taken": tried(six.map(decode).shuffle(6).take(3)),
    "shuffled_first": tried(six.shuffle(6).map(decode)),
    "loose": tried(six.map(decode, num_parallel_calls=2).with_options(loose)),
    "loose_one": tried(six.map(decode, num_parallel_calls=2, deterministic=False).shuffle(3)),
    "variable": tried(six.map(decode).map(scaled)),
    "arrays": tried(of_keras(True)), "own": tried(six.map(decode).cache().shuffle(6)),
    "plain": tried(six.shuffle(6).batch(2)),
}
"""
pytestmark = pytest.mark.tf


@functools.cache
def found() -> dict[str, dict[str, Any]]:
    return dict(asked(CACHED))


@pytest.mark.parametrize(("case", "titles"), [
    ("augmented", [
        "range", "map(decode)", "cache", "map(augment)", "shuffle", "batch", "prefetch",
    ]),
    ("whole", ["range", "map(decode)", "batch", "cache", "prefetch"]),
    ("zipped", ["range", "map(decode)", "cache", "shuffle", "range", "zip"]),
    ("repeated", ["range", "map(decode)", "cache", "repeat"]),
    ("variable", ["range", "map(decode)", "cache", "map(scaled)"]),
])  # fmt: skip
def test_it_stands_after_the_last_stage_that_is_always_the_same(
    case: str, titles: list[str]
) -> None:
    assert found()[case]["titles"] == titles


def test_the_work_before_it_is_done_once() -> None:
    for case in ("augmented", "whole", "zipped", "repeated", "variable"):
        assert found()[case]["decoded"] == 6, case
        assert len(set(found()[case]["rows"])) == 1


def test_its_size_is_told_where_shapes_tell_it() -> None:
    # 6 elements x 16 float32.
    assert found()["augmented"]["notes"] == ["cache stands after map(decode), 384 B of memory."]
    assert found()["whole"]["notes"] == ["cache stands after batch."]


def test_a_cache_that_is_not_read_to_its_end_is_told() -> None:
    assert found()["taken"]["notes"][1] == "cache is of use only if take takes all that is in it."


@pytest.mark.parametrize(("case", "words"), [
    ("shuffled_first", "shuffle gives another order in each epoch, and what comes before is in"),
    ("loose", "map(decode) gives its elements in no fixed order"),
    ("loose_one", "map(decode) gives its elements in no fixed order"),
])  # fmt: skip
def test_no_safe_place_is_refused_with_the_stage_in_the_way(case: str, words: str) -> None:
    refused = found()[case]["refused"]
    assert refused.startswith("cache has no place where it changes nothing that is learned: ")
    assert words in refused


def test_where_it_is_of_no_use_nothing_changes() -> None:
    in_memory = ["cache changes nothing: the data are in memory already."]
    assert found()["arrays"]["notes"] == found()["plain"]["notes"] == in_memory
    assert found()["own"]["notes"] == ["cache changes nothing: the pipeline has one of its own."]
    assert found()["own"]["titles"].count("cache") == 1
