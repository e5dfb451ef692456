"""``tfdyno compare`` prints the verdict first; what does not compare is exit code 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.exports import two
from tests.jobs.choose.test_gap import measured_on_t4
from tests.loads import result, search, stage, stretch

from tfdyno.cli.main import main
from tfdyno.core.base.codec import to_json
from tfdyno.core.measure.measurement_document import bench_document
from tfdyno.model.measure.summary import summary
from tfdyno.view.bench.load_text import load_document
from tfdyno.view.deploy.export_text import export_document

if TYPE_CHECKING:
    from tfdyno.core.measure.load import LoadResult

DATA = Path(__file__).parents[1].parent / "data" / "measurements"
A, B = str(DATA / "a.json"), str(DATA / "b.json")


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["compare", *words])
    return code, *capsys.readouterr()


def test_the_answer_is_the_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = called(capsys, A, B)
    assert (code, err) == (0, "")
    assert out.startswith("B is 1.24x as fast as A (1.21–1.28, 99 %).")
    assert "recipe.precision  none  mixed_float16" in out


def test_a_chinese_locale_is_answered_in_chinese_and_json_in_english(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TFDYNO_LANG")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    _, out, _ = called(capsys, A, B)
    assert out.startswith("B 的速度为 A 的 1.24 倍（1.21–1.28，99%）。")
    assert "recipe.precision  无  mixed_float16" in out
    assert "目录中只有 GPU 的价格" in out
    _, out, _ = called(capsys, A, B, "--json")
    assert json.loads(out)["reason"].startswith("The interval of ")
    _, out, _ = called(capsys, A, B, "--json", "--lang", "zh")
    found: dict[str, Any] = json.loads(out)
    assert (found["verdict"], found["reason"][:2]) == ("faster", "区间")


def test_json_has_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, A, B, A, "--json")
    found: dict[str, Any] = json.loads(out)
    assert code == 0
    assert found["verdict"] == "faster"
    assert found["interval"][0] < found["ratio"] < found["interval"][1]
    assert [one["verdict"] for one in found["comparisons"]] == ["faster", "no_difference"]
    assert found["measurements"][0]["price_reason"].startswith("It was measured without a GPU")
    assert found["measurements"][0]["gap"] is None


def test_what_does_not_compare_is_exit_code_two(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    document = json.loads(Path(B).read_text())
    document["protocol"]["version"] = 99
    other = tmp_path / "other.json"
    other.write_text(json.dumps(document))
    code, out, _ = called(capsys, A, str(other))
    assert code == 2
    assert out.startswith("B does not compare with A: protocol.version differs: 1 and 99.")
    assert called(capsys, A, str(other), B)[0] == 0  # one of the two does


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "missing argument"),
        ((A,), "nothing to compare with"),
        ((A, str(DATA / "c.json")), "did you mean"),
        ((A, __file__), "is not valid JSON"),
        ((A, B, "--recalibrate"), "was measured on a CPU"),
        ((A, B, "--estimate"), "was measured on a CPU"),
    ],
)
def test_wrong_use_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    code, out, err = called(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("tfdyno: ")
    assert told in err
    assert err.count("\n") == 1


def test_a_recalibration_says_how_far_off_the_estimate_was_and_keeps_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))
    one = measured_on_t4(0.5)
    place = tmp_path / "t4.json"
    place.write_bytes(to_json(bench_document(one, summary(one))))
    code, out, err = called(capsys, str(place), "--recalibrate", "--quiet")
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert "measured 500 ms" in words
    assert "outside its interval" in words
    assert f"Kept: estimates of {one.task.title} start from A from now on." in out
    assert (tmp_path / "recalibration.json").exists()
    _, out, _ = called(capsys, A, str(place), "--estimate", "--json", "--quiet")
    first, second = json.loads(out)["measurements"]
    assert first["gap"] is None
    assert second["gap"]["ratio"] == pytest.approx(0.5 / second["gap"]["estimated_s"]["best"])
    assert second["price_performance"][0]["offer"]["gpu_slug"] == "t4"


ONLY_BENCH = "; compare takes what tfdyno bench wrote of training steps.\n"


@pytest.mark.parametrize("found", [search(), result(stage(stretch([0.1])), faults=("an error",))])
def test_a_load_test_is_called_one_and_the_command_that_shows_it_is_named(
    found: LoadResult, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "load.json"
    path.write_bytes(to_json(load_document(found)))
    for places in ((A, str(path)), (str(path), A)):
        assert called(capsys, *places) == (2, "", (
            f"tfdyno: {path} is a load test of a server: tfdyno bench --serve {found.url} "
            f"--html PAGE measures one and shows it{ONLY_BENCH}"
        ))  # fmt: skip


@pytest.mark.parametrize("content", [two(), export_document(two())])
def test_the_record_of_an_export_is_called_one_and_the_command_that_shows_it_is_named(
    content: object, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(to_json(content))
    assert called(capsys, A, str(path)) == (2, "", (
        f"tfdyno: {path} is the record of an export: tfdyno models add exports/onnx keeps the "
        f"model with it, and tfdyno models show NAME shows it{ONLY_BENCH}"
    ))  # fmt: skip
