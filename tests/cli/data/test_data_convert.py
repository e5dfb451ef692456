"""cli/data_convert: options become a question, the answer is text or JSON, the code tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.cli.main import main
from tfdyno.core.deploy.dataset import MANIFEST, READER
from tfdyno.jobs.data import convert as job

if TYPE_CHECKING:
    from tfdyno.jobs.data.convert import ConvertRequest


def question(monkeypatch: pytest.MonkeyPatch, *words: str) -> ConvertRequest:
    """What the options of a command become."""
    found: list[ConvertRequest] = []

    def ask(asked: ConvertRequest, **_more: object) -> None:
        found.append(asked)
        raise KeyboardInterrupt

    monkeypatch.setattr(job, "convert", ask)
    assert main(["data", "convert", *words]) == 130
    return found[0]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["data", "convert", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_options_become_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    found = question(
        monkeypatch, "pics", "out", "--shards", "4", "--image-size", "12x10", "--compression",
        "gzip", "--shuffle-seed", "7", "--skip-bad", "--no-measure", "--python", "py",
    )  # fmt: skip
    assert found == job.ConvertRequest(
        source=Path("pics"), destination=Path("out"), shards=4, image_size=(12, 10),
        compression="gzip", shuffle_seed=7, skip_bad=True, measure=False, python="py",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ((), "measure", True),
        (("--image-size", "224"), "image_size", (224, 224)),
        (("--image-size", "224×300"), "image_size", (224, 300)),
        (("--shard-bytes", "100MiB"), "shard_bytes", 100 * 2**20),
        (("--shuffle-seed", "none"), "keep_order", True),
        (("--shuffle-seed", "0"), "shuffle_seed", 0),
        (("--label", "y"), "label", "y"),
        ((), "delimiter", ","),
        (("--delimiter", "tab"), "delimiter", "\t"),
        (("--delimiter", "\\t"), "delimiter", "\t"),
        (("--delimiter", ";"), "delimiter", ";"),
    ],
)
def test_each_option_is_read(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], field: str, value: object
) -> None:
    assert getattr(question(monkeypatch, "a", "b", *words), field) == value


def test_a_file_of_tabs_has_tabs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert question(monkeypatch, "a.tsv", "b").delimiter == "\t"
    assert question(monkeypatch, "a.tsv", "b", "--delimiter", ",").delimiter == ","


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--image-size", "0"), "--image-size 0 is not possible; write height and width"),
        (("--image-size", "axb"), "--image-size axb is not possible"),
        (("--image-size", "20000"), "--image-size 20000 is not possible"),
        (("--shard-bytes", "much"), "'much' is not an amount of memory"),
        (("--shard-bytes", "0"), "--shard-bytes 0 is not possible"),
        (("--shards", "100000"), "give at most 99,999"),
        (("--shuffle-seed", "-1"), "--shuffle-seed -1 is not possible; give a whole number, or"),
        (("--shuffle-seed", "1.5"), "--shuffle-seed 1.5 is not possible"),
        (("--delimiter", "ab"), "--delimiter 'ab' is not possible"),
        (("--delimiter", '"'), "is not possible; give one sign, or tab"),
        (("--compression", "gzp"), "did you mean gzip?"),
        (("--verify", "--shards", "3"), "--shards does not go with --verify"),
        (("--verify", "--shuffle-seed", "3"), "--shuffle-seed does not go with --verify"),
        (("--verify", "--compression", "gzip"), "--compression does not go with --verify"),
        (("--verify", "--delimiter", "tab"), "--delimiter does not go with --verify"),
    ],
)
def test_impossible_options_are_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    text = refused(capsys, "a", "b", *words)
    assert said in text
    assert text.count("\n") == 1


def test_a_destination_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no DESTINATION; name a new folder" in refused(capsys, "a")


@pytest.mark.tf
def test_a_table_is_converted_checked_and_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("x,kind\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(40)))
    words = ["data", "convert", "table.csv", "out", "--label", "kind", "--no-measure", "-q"]
    assert main([*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["records"], found["shards"], found["classes"]) == (40, 8, ["a", "b"])
    assert found["not_measured"] == "--no-measure"
    assert Path("out", READER).exists()
    assert json.loads(Path("out", MANIFEST).read_text())["records"] == 40

    check = ["data", "convert", "--verify", "table.csv", "out", "-q"]
    assert main(check) == 0
    out = capsys.readouterr().out
    assert "8 shards, 40 records" in out
    assert "The source has not changed since." in out

    next(Path("out").glob("*.tfrecord")).write_bytes(b"")
    assert main(["data", "convert", "--verify", "out", "-q", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert len(told["damaged"]) == 1
    assert told["source_changed"] is None
    assert main(words) == 0
    assert "1 shard in" in capsys.readouterr().out
    assert main(check) == 0


def test_the_check_of_what_is_no_data_set_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = refused(capsys, "--verify", str(tmp_path))
    assert "is no converted data set: there is no dataset.json in it." in text
