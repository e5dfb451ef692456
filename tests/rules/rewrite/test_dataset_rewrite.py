"""rules/dataset_rewrite: settings of the input as changed calls of the user's own code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tfdyno.core.measure.step_facts import StageFacts
from tfdyno.rules.rewrite.dataset_rewrite import Edit, edits, place_of, rewritten

CHAIN = """\
import tensorflow as tf

ds = (
    tf.data.Dataset.from_tensor_slices(paths)
    .shuffle(1000)
    .map(decode)  # slow
    .batch(32)
)
"""
STAGES = (
    StageFacts(title="from_tensor_slices", kind="from_tensor_slices", place="train.py:4"),
    StageFacts(title="shuffle", kind="shuffle", place="train.py:5"),
    StageFacts(title="map(decode)", kind="map", place="train.py:6"),
    StageFacts(title="batch", kind="batch", place="train.py:7"),
)


def changed(source: str, *settings: str, stages: tuple[StageFacts, ...] = STAGES) -> str:
    found = edits(stages, settings)
    return rewritten(source, found.get("train.py", ()))


def argument(line: int) -> Edit:
    return Edit(line=line, method="map", kind="argument", position=1,
                text="num_parallel_calls=tf.data.AUTOTUNE")  # fmt: skip


def test_a_chain_with_a_call_a_line_gets_its_changes_in_its_own_style() -> None:
    text = changed(CHAIN, "input.parallel_calls", "input.prefetch")
    assert text == CHAIN.replace(
        "map(decode)", "map(decode, num_parallel_calls=tf.data.AUTOTUNE)"
    ).replace("    .batch(32)\n", "    .batch(32)\n    .prefetch(tf.data.AUTOTUNE)\n")


def test_a_line_more_ends_as_the_others_do() -> None:
    wide = CHAIN.replace("\n", "\r\n")
    assert changed(wide, "input.prefetch") == changed(CHAIN, "input.prefetch").replace("\n", "\r\n")


def test_calls_on_one_line_stay_on_it() -> None:
    stages = (StageFacts(title="map(f)", kind="map", place="train.py:1"),
              StageFacts(title="batch", kind="batch", place="train.py:1"))  # fmt: skip
    text = changed("ds = ds.map(f).batch(8)\n", "input.parallel_calls", "input.prefetch",
                   stages=stages)  # fmt: skip
    assert text == ("ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE).batch(8)"
                    ".prefetch(tf.data.AUTOTUNE)\n")  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ds.map(f)", "ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)"),
        ("ds.map((f))", "ds.map((f), num_parallel_calls=tf.data.AUTOTUNE)"),
        ("ds.map(lambda x: (x, 1),)", "ds.map(lambda x: (x, 1), num_parallel_calls="
                                      "tf.data.AUTOTUNE)"),
        ("ds.map(map_func=f)", "ds.map(map_func=f, num_parallel_calls=tf.data.AUTOTUNE)"),
        ("ds.map(f, num_parallel_calls=1)", "ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)"),
        ("ds.map(f, num_parallel_calls=None)", "ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)"),
        ("été = ds.map('é')", "été = ds.map('é', num_parallel_calls=tf.data.AUTOTUNE)"),
    ],
)  # fmt: skip
def test_an_argument_is_written_wherever_it_may_stand(before: str, after: str) -> None:
    assert rewritten(before, [argument(1)]) == after


@pytest.mark.parametrize(
    "source",
    ["ds.map(f, 1)", "ds.map(f, **how)", "ds.map(*how)", "ds.map(f, num_parallel_calls=calls)",
     "ds.filter(f)", "map(f, rows)", "ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)"],
)  # fmt: skip
def test_what_cannot_be_told_is_left_alone(source: str) -> None:
    assert rewritten(source, [argument(1)]) == source


def test_a_comment_behind_the_last_argument_stays_behind_it() -> None:
    source = "ds.map(\n    f  # the (slow) one\n)\n"
    assert rewritten(source, [argument(1)]) == (
        "ds.map(\n    f, num_parallel_calls=tf.data.AUTOTUNE  # the (slow) one\n)\n"
    )


def test_a_chain_that_has_it_already_is_not_changed() -> None:
    source = "ds = ds.batch(8).prefetch(2)\n"
    stages = (StageFacts(title="batch", kind="batch", place="train.py:1"),)
    assert changed(source, "input.prefetch", stages=stages) == source


def test_tensorflow_is_called_what_the_file_calls_it() -> None:
    source = "import tensorflow as t\nds = ds.map(f)\n"
    assert "num_parallel_calls=t.data.AUTOTUNE" in rewritten(source, [argument(2)])


def test_the_cache_stands_before_what_differs_between_epochs() -> None:
    stages = (
        StageFacts(title="map(read)", kind="map", place="train.py:1"),
        StageFacts(title="map(turn)", kind="map", place="train.py:2",
                   operations=("StatelessRandomUniformV2", "RandomUniform")),
        StageFacts(title="batch", kind="batch", place="train.py:3"),
    )  # fmt: skip
    source = "ds = ds.map(read)\nds = ds.map(turn)\nds = ds.batch(8)\n"
    assert changed(source, "input.cache", stages=stages) == source.replace(
        "map(read)", "map(read).cache()"
    )
    assert changed(CHAIN, "input.cache") == CHAIN  # its map stands behind the shuffle


def test_two_calls_behind_one_stage_stand_in_the_order_of_the_work() -> None:
    stages = (StageFacts(title="map(f)", kind="map", place="train.py:1"),)
    settings = ("input.prefetch", "input.cache")
    assert changed("ds = ds.map(f)\n", *settings, stages=stages) == (
        "ds = ds.map(f).cache().prefetch(tf.data.AUTOTUNE)\n"
    )


def test_only_stages_that_work_on_one_element_at_a_time_are_changed() -> None:
    stages = (StageFacts(title="map(f)", kind="map", place="train.py:1", parallel_calls=-1),
              StageFacts(title="map(g)", kind="map"))  # fmt: skip
    assert edits(stages, ["input.parallel_calls"]) == {}


def test_edits_are_told_by_file_in_the_order_of_lines() -> None:
    stages = (StageFacts(title="map(f)", kind="map", place="data/rows.py:9"), *STAGES)
    found = edits(stages, ["input.prefetch", "input.parallel_calls"])
    assert {file: [one.line for one in of] for file, of in found.items()} == {
        "data/rows.py": [9], "train.py": [6, 7],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place"),
    [("train.py:41", ("train.py", 41)), ("", ("", 0)), ("a.py", ("a.py", 0)),
     ("C:/a.py:3", ("C:/a.py", 3)), ("a.py:x", ("a.py:x", 0))],
)  # fmt: skip
def test_a_place_is_a_file_and_a_line(text: str, place: tuple[str, int]) -> None:
    assert place_of(text) == place


def test_what_comes_out_is_python() -> None:
    ast.parse(changed(CHAIN, "input.parallel_calls", "input.prefetch", "input.cache"))


def test_a_file_that_is_no_python_is_refused() -> None:
    with pytest.raises(SyntaxError):
        rewritten("ds = (", [argument(1)])


def scripts() -> list[Path]:
    return sorted((Path(__file__).parents[2] / "data" / "bottlenecks").glob("*.py"))


@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.name)
def test_whole_scripts_stay_python_and_nothing_else_is_touched(path: Path) -> None:
    source = path.read_text()
    methods = ("map", "batch", "interleave")
    stages = tuple(
        StageFacts(title=call.func.attr, kind=call.func.attr, place=f"train.py:{line}")
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        and call.func.attr in methods and (line := call.func.end_lineno)
    )  # fmt: skip
    text = changed(source, "input.parallel_calls", "input.prefetch", "input.cache", stages=stages)
    ast.parse(text)
    added = ("num_parallel_calls=tf.data.AUTOTUNE", ".cache()", ".prefetch(tf.data.AUTOTUNE)")
    assert len(text) >= len(source)
    if not stages:
        assert text == source
    elif text != source:
        assert any(words in text for words in added)
