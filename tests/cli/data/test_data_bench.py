"""``tfdyno data bench``: options become a question, the answer is told, what stops it is kept."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.feeds import feed
from tests.jobs import feed_child

from tfdyno.cli.main import INTERRUPTED, main
from tfdyno.core.base.codec import to_builtins, to_json
from tfdyno.core.deploy.dataset import ConvertSettings, Dataset, Shard, Source
from tfdyno.jobs.data.bench import read_feed

if TYPE_CHECKING:
    from tfdyno.core.measure.feed import Feed

ROOT = Path(__file__).parents[3]
MODEL = f"{ROOT / 'tests/data/models/small.py'}:convnet"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script, whose data is made up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "src"))))
    monkeypatch.setattr("tfdyno.jobs.data.bench.DATA", feed_child.MADE_UP)
    Path("train.py").write_text("model.fit(x)\n")
    hands_over(feed())
    return tmp_path


def hands_over(found: Feed) -> None:
    Path("feed.json").write_text(json.dumps(to_builtins(replace(found, measured_on=""))))


def bench(*words: str) -> int:
    return main(["data", "bench", *words, "-q"])


def test_text_begins_with_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("train.py") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "net gives 200 samples/s on 2 CPUs: they are full and set the pace."
    assert max(map(len, lines)) <= 80


def test_json_has_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("train.py", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["samples_per_s"]["best"] == pytest.approx(200.0)
    assert found["cpu_s_per_sample"]["best"] == pytest.approx(0.01)
    assert [stage["title"] for stage in found["stages"]][2] == "map(load)"
    assert found["needs"] == []


def test_a_card_is_set_against_the_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(MODEL, "--gpu", "t4", "--batch-size", "64", "--json") == 0
    (need,) = json.loads(capsys.readouterr().out)["needs"]
    assert (need["gpu"], need["batch_size"]) == ("t4", 64)
    assert need["samples_per_s"]["best"] == pytest.approx(64 / need["step_s"]["best"])
    assert need["fed_ratio"] == pytest.approx(200.0 / need["samples_per_s"]["best"])


def test_the_file_is_what_advise_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("train.py", "--output", "out.json") == 0
    assert capsys.readouterr().out.endswith("Next: tfdyno advise train.py --feed out.json\n")
    kept = read_feed(Path("out.json"))
    assert kept.rounds == feed().rounds
    words = ["--batch-size", "64", "--samples", "1000000", "--route", "quick", "--gpu", "t4"]
    assert main(["advise", MODEL, *words, "--feed", "out.json", "--json", "-q"]) == 0
    ranking = json.loads(capsys.readouterr().out)["ranking"]
    held = [one for one in ranking if one["feed"]]
    assert held
    for one in held:
        fed_s = one["count"] * 64 / one["feed"]["samples_per_s"]
        assert one["estimate"]["step_s"]["best"] >= fed_s * (1 - 1e-9)


def test_what_was_measured_until_ctrl_c_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    hands_over(feed(stopped=True, notes=("It was stopped.",)))
    assert bench("train.py", "--gpu", "t4", "--output", "out.json") == INTERRUPTED
    said = capsys.readouterr()
    assert "net gives 200 samples/s" in said.out
    assert "Note: It was stopped." in said.out
    assert "What was measured until then is printed." in said.err
    assert read_feed(Path("out.json")).stopped


def test_a_model_that_cannot_be_estimated_loses_no_measurement(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("alone.py").write_text("def data():\n    return 3\n")
    assert bench("alone.py:data", "--gpu", "t4") == 2
    said = capsys.readouterr()
    assert "net gives 200 samples/s" in said.out
    assert "does not return a Keras model" in said.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("tran.py",), "there is no file tran.py; did you mean train.py?"),
        (("train.py", "--gpu", "a1000"), "a1000"),
        (("train.py", "--rounds", "0"), "rounds"),
        (("train.py", "--rounds", "1000"), "1,000 rounds are too many; 100 at most."),
        (("train.py", "--seconds", "nan"), "seconds"),
        (("train.py", "--output", "missing/out.json"), "there is no folder missing"),
        (("keras:ResNet50",), "keras:ResNet50 brings no data"),
        ((".",), "is no converted data set"),
        (("train.py:data", "--", "3"), "takes no arguments"),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(*words) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.out == ""
    assert not Path("asked.json").exists()


def test_advise_refuses_a_file_that_is_no_feed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.json").write_text("{}")
    assert main(["advise", MODEL, "--feed", "other.json"]) == 2
    assert "other.json holds no measured input pipeline; make it with" in capsys.readouterr().err
    assert main(["advise", MODEL, "--feed", "none.json"]) == 2
    assert "cannot read none.json: No such file" in capsys.readouterr().err


def test_a_folder_has_no_model_for_a_card(capsys: pytest.CaptureFixture[str]) -> None:
    made = Dataset(
        tfdyno="0", records=1, features=(),
        shards=(Shard(file="a.tfrecord", records=1, size_bytes=1, sha256=""),),
        source=Source(path="x", sha256="", files=1, size_bytes=1),
        settings=ConvertSettings(kind="images", shards=1),
    )  # fmt: skip
    Path("set").mkdir()
    Path("set/dataset.json").write_bytes(to_json(made))
    assert bench("set", "--gpu", "t4") == 2
    assert "set holds no model to estimate on a GPU; leave --gpu out" in capsys.readouterr().err
