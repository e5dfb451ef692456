"""jobs/data_bench: a child measures a pipeline, an estimate says what a card needs of it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.feeds import feed, round_
from tests.jobs import feed_child

from tfdyno.catalog.gpus import parse_list
from tfdyno.core.base.codec import to_builtins, to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.dataset import ConvertSettings, Dataset, Shard, Source
from tfdyno.core.measure.feed_document import data_bench_document
from tfdyno.core.messages.data import MeasuredData, Plan
from tfdyno.core.messages.wire import decode
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.data import bench as data_bench
from tfdyno.jobs.data.bench import (
    DataBenchRequest,
    check,
    measured,
    needs,
    placed,
    read_feed,
    reference_of,
    told,
)

ROOT = Path(__file__).parents[3]
MODEL = f"{ROOT / 'tests/data/models/small.py'}:convnet"
SCRIPT = """
import keras, numpy as np, tensorflow as tf
def load(number):
    return tf.random.stateless_uniform([16, 16, 3], [0, number]), number % 10
data = (tf.data.Dataset.range(200, output_type=tf.int32).shuffle(50)
        .map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(20).prefetch(2))
model = keras.Sequential([keras.Input((16, 16, 3)), keras.layers.Flatten(), keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=2)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "src"))))
    Path("train.py").write_text(SCRIPT)
    return tmp_path


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child hands over a feed of a few numbers."""
    monkeypatch.setattr(data_bench, "DATA", feed_child.MADE_UP)
    Path("feed.json").write_text(json.dumps(to_builtins(replace(feed(), measured_on=""))))


def question(**fields: object) -> DataBenchRequest:
    base = DataBenchRequest(workload=parse_reference("train.py"))
    return replace(base, **fields)  # type: ignore[arg-type]


@pytest.mark.tf
def test_a_script_is_measured_and_says_what_a_card_needs() -> None:
    asked = question(rounds=2, seconds_s=0.2, gpus=parse_list("t4"))
    said: list[str] = []
    seen = measured(asked, progress=said.append)
    assert (seen.kind, seen.batch_size, seen.samples_per_epoch) == ("dataset", 20, 200)
    assert {one.kind for one in seen.rounds} == {"warm"}
    assert [one.title for one in seen.looks[0]] == [
        "range", "shuffle", "map(load)", "batch", "prefetch",
    ]  # fmt: skip
    assert seen.looks[0][2].place == "train.py:6"
    assert seen.environment
    assert seen.environment.tensorflow
    assert seen.measured_on
    assert "round 1 of 2, 1 CPU" in said
    (need,) = needs(seen, asked)
    assert (need.gpu, need.batch_size) == ("t4", 20)
    assert need.needed_per_s.best == pytest.approx(20 / need.step_s.best)
    rate = told(seen).alone_per_s.best
    assert need.fed_ratio == pytest.approx(rate / need.needed_per_s.best)


@pytest.mark.usefixtures("made_up")
def test_the_child_is_asked_for_what_was_asked() -> None:
    seen = measured(question(batch_size=64, rounds=3, seconds_s=0.5, cold=False))
    asked = json.loads(Path("asked.json").read_text())
    assert decode(asked["plan"], Plan) == Plan(rounds=3, seconds_s=0.5, cold=False)
    assert (asked["batch_size"], asked["backend"]) == (64, "tensorflow")
    assert asked["workload"]["reference"] == "train.py"
    assert seen.environment
    assert seen.environment.tensorflow == "2.21.0"
    assert len(seen.measured_on) == len("2026-11-20")


@pytest.mark.usefixtures("made_up")
def test_what_fails_in_the_child_is_one_sentence() -> None:
    Path("feed.json").write_text(json.dumps({"fail": "line 3: ValueError: no"}))
    with pytest.raises(UsageError, match=r"train\.py failed: line 3: ValueError: no"):
        measured(question())


@pytest.mark.parametrize("reference", ["keras:ResNet50", "model.keras"])
def test_a_model_alone_has_no_data(reference: str) -> None:
    Path("model.keras").write_bytes(b"")
    with pytest.raises(UsageError, match="brings no data: there is no input pipeline"):
        check(question(workload=parse_reference(reference)))


def test_too_many_rounds_are_refused() -> None:
    with pytest.raises(UsageError, match="101 rounds are too many; 100 at most"):
        check(question(rounds=101))


def test_a_card_that_is_no_card_of_ours_is_refused_before_any_work() -> None:
    with pytest.raises(UsageError, match=r"AMD|vendor|NVIDIA"):
        check(question(gpus=parse_list("mi300x")))


def test_the_folder_of_a_converted_data_set_is_read_by_its_own_function(tmp_path: Path) -> None:
    made = Dataset(
        tfdyno="0", records=1, features=(),
        shards=(Shard(file="a.tfrecord", records=1, size_bytes=1, sha256=""),),
        source=Source(path="x", sha256="", files=1, size_bytes=1),
        settings=ConvertSettings(kind="images", shards=1),
    )  # fmt: skip
    (tmp_path / "set").mkdir()
    (tmp_path / "set/dataset.json").write_bytes(to_json(made))
    assert reference_of(str(tmp_path / "set")) == f"{tmp_path}/set/read_dataset.py:read"
    assert reference_of("train.py") == "train.py"
    odd = (tmp_path / "set").rename(tmp_path / "9:30")
    with pytest.raises(UsageError, match=r"9:30 has a colon: .* go into it, and give \. as"):
        reference_of(str(odd))


def test_a_converted_data_set_is_called_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "birds").mkdir()
    monkeypatch.chdir(tmp_path / "birds")
    for reference in ("read_dataset.py:read", f"{tmp_path}/birds/read_dataset.py:read"):
        made = feed(reference=reference, title="read")
        found = MeasuredData(feed=made, software=feed_child.SOFTWARE)
        assert placed(found).title == "birds"
    made = feed(reference="mine.py:read", title="read")
    assert placed(replace(found, feed=made)).title == "read"


def test_a_folder_without_a_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is no converted data set: there is no dataset\.json"):
        reference_of(str(tmp_path))


def test_a_need_is_that_of_the_quick_estimate() -> None:
    asked = question(workload=parse_reference(MODEL), gpus=parse_list("a100-sxm4-80gb,t4"),
                     batch_size=64)  # fmt: skip
    fast, slow = needs(feed(), asked)
    assert fast.needed_per_s.best > slow.needed_per_s.best
    assert fast.cpus[1] is None or slow.cpus[1] is None or fast.cpus[1] > slow.cpus[1]
    assert needs(feed(), question()) == ()


def test_figures_are_those_of_the_rounds() -> None:
    # by hand: 200 samples/s on two full CPUs, 110 on one; cold 40/s with half from the disk
    cold = round_(40.0, kind="cold", disk_bytes=20_000)
    seen = told(feed(rounds=(*feed().rounds, cold)))
    assert seen.rate_per_s.best == pytest.approx(200.0)
    assert (seen.pace, seen.cpus) == ("cpu", 2.0)
    assert seen.cold_per_s
    assert seen.cold_per_s.best == pytest.approx(40.0)
    assert seen.cold_disk_ratio == 0.5
    assert seen.first_per_s is None
    assert seen.grows == pytest.approx(0.8625, abs=1e-3)  # log2(200 / 110)


def test_a_feed_without_rounds_tells_nothing() -> None:
    with pytest.raises(UsageError, match="no round with samples"):
        told(feed(rounds=()))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "feed.json"
    path.write_bytes(to_json(data_bench_document(told(feed()))))
    assert read_feed(path) == feed()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot read .*: No such file"),
        ("nothing", "is not JSON; make it with tfdyno data bench"),
        ("{}", "holds no measured input pipeline; make it with"),
        ("[1]", "holds no measured input pipeline"),
        ('{"feed": {"title": 3}}', "has a wrong value"),
        (json.dumps({"feed": to_builtins(feed(rounds=()))}), "holds no round with samples"),
        (json.dumps({"feed": to_builtins(feed()) | {"colour": 1}}), "key that tfdyno does not"),
    ],
)
def test_another_file_is_refused(content: str | None, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "feed.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=sentence):
        read_feed(path)
