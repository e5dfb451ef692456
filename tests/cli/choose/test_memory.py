"""``tfdyno memory``: the answer first, files whole or not at all, one sentence for a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfdyno.cli.main import main
from tfdyno.core.recipe.recipe_file import read_recipe

DATA = Path(__file__).parents[2] / "data"
MODELS = DATA / "models" / "tower.py"
TOWER, WIDE = f"{MODELS}:tower", f"{MODELS}:wide"


def called(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["memory", *map(str, words)])
    return code, *capsys.readouterr()


@pytest.mark.tf
def test_a_plan_is_told_and_written_as_a_recipe_and_a_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recipe, page = tmp_path / "fit.toml", tmp_path / "fit.html"
    code, out, _ = called(
        capsys, TOWER, "--gpu", "gtx-1050", "--batch-size", 256, "--plan", "-o", recipe,
        "--html", page, "-q",
    )  # fmt: skip
    assert code == 0
    assert out.startswith("tower: ")
    assert f"--recipe {recipe}" in " ".join(out.split())
    found = read_recipe(recipe)
    assert found.batch_size * found.accumulation == 256
    assert "time per sample" in recipe.read_text()
    assert page.read_text().startswith("<!doctype html>")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fit.html", "fit.toml"]


@pytest.mark.tf
def test_where_nothing_fits_nothing_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recipe = tmp_path / "fit.toml"
    code, out, err = called(
        capsys, WIDE, "--gpu", "gtx-1050", "--batch-size", 8, "--plan", "--optimizer", "none",
        "-o", recipe, "--json", "-q",
    )  # fmt: skip
    assert (code, err) == (1, "")
    document = json.loads(out)
    assert document["plan"][0]["fits"] is False
    assert document["findings"][0]["cause"] == "mem.nothing_fits"
    assert not recipe.exists()


@pytest.mark.tf
def test_without_a_plan_the_json_has_the_course_of_the_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (TOWER, "--gpu", "gtx-1050,t4", "--batch-size", 64, "--execution", "graph", "--json")
    code, out, _ = called(capsys, *words, "-q")
    assert code == 0
    cards = json.loads(out)["memory"]
    assert [one["gpu"] for one in cards] == ["gtx-1050", "t4"]
    assert cards[0]["execution"] == "graph"
    assert max(m["live_bytes"] for m in cards[0]["timeline"]) == cards[0]["peak"]["live_bytes"]


def test_a_log_alone_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = called(capsys, "--log", DATA / "oom" / "tf2_gpu.log")
    assert (code, err) == (1, "")
    assert "mem.oom_model" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "name a workload, or a log with --log"),
        ((TOWER,), "name the card with --gpu"),
        ((TOWER, "--gpu", "t5"), "there is no GPU 't5'"),
        ((TOWER, "--gpu", "t4", "-o", "x.toml"), "--output goes with --plan"),
        ((TOWER, "--gpu", "t4", "--optimizer", "sgd"), "--optimizer goes with --plan"),
        ((TOWER, "--gpu", "t4", "--plan", "--optimizer", "adma"), "'adma' is not one of"),
        ((TOWER, "--gpu", "t4,l4", "--plan", "-o", "x.toml"), "the plan of one card"),
        ((TOWER, "--gpu", "t4", "--plan", "-o", "none/x.toml"), "there is no folder none"),
        ((TOWER, "--gpu", "t4", "--batch-size", "nan"), "batch size"),
        ((TOWER, "--gpu", "t4", "--execution", "eager-torch"), "not one of xla, graph"),
        (("nothing.py", "--gpu", "t4"), "nothing.py"),
        (("--log", "nothing.log"), "there is no file nothing.log"),
        (("--log", str(MODELS)), "shows no exhausted memory"),
        (("--log", str(DATA / "oom" / "tf2_gpu.log"), "--html", "x.html"), "--html goes with"),
        (("--log", str(DATA / "oom" / "tf2_gpu.log"), "--plan"), "go with a workload"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    words: tuple[object, ...], sentence: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    code, out, err = called(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("tfdyno: ")
    assert err.count("\n") == 1
    assert sentence in err
    assert list(tmp_path.iterdir()) == []
