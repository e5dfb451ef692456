"""``tfdyno recipe``: shown as TOML that reads back, compared with the answer first."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tfdyno.cli.main import main
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.core.recipe.recipe_file import read_recipe
from tfdyno.view.base.text import shown_width

MODEL = Path(__file__).parents[1].parent / "data" / "models" / "small.py"
A = 'precision = "mixed_bfloat16"\nbatch_size = 64\n[input]\nprefetch = "auto"\n'


def called(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["recipe", *map(str, words)])
    return code, *capsys.readouterr()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.toml"
    path.write_text(A)
    return path


def test_what_is_shown_is_a_recipe(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, out, err = called(capsys, "show", file, "--set", "ema=true", "--set", "batch_size=8")
    assert (code, err) == (0, "")
    expected = from_settings({"ema": True, "batch_size": 8}, read_recipe(file))
    assert from_settings(tomllib.loads(out)) == expected
    assert "4 settings (recipe " in out.replace("\n# ", " ")
    full = called(capsys, "show", "--full")[1]
    assert from_settings(tomllib.loads(full)) == Recipe()
    assert "threads_inter = 0" in full


def test_a_shown_recipe_is_written(
    capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path
) -> None:
    written = tmp_path / "b.toml"
    assert called(capsys, "show", file, "--set", "seed=3", "-o", written, "--json")[0] == 0
    assert read_recipe(written) == from_settings({"seed": 3}, read_recipe(file))
    code, _, err = called(capsys, "show", file, "-o", tmp_path / "none" / "b.toml")
    assert (code, "there is no folder" in err) == (2, True)


def test_json_tells_the_settings_that_are_set(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    found = json.loads(called(capsys, "show", file, "--json")[1])
    assert found["set"] == ["precision", "batch_size", "input.prefetch"]
    assert found["settings"]["input.prefetch"] == -1


def test_two_recipes_differ_in_so_many_settings(
    capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"  # a run's folder stands for its recipe
    run.mkdir()
    (run / "recipe.toml").write_text('precision = "mixed_bfloat16"\nseed = 1\n')
    code, out, err = called(capsys, "diff", file, run)
    assert (code, err) == (0, "")
    first, _, table = out.partition("\n\n")
    assert "differ in 3 settings." in " ".join(first.split())
    assert [line.split()[0] for line in table.splitlines()[1:]] == [
        "batch_size", "seed", "input.prefetch",
    ]  # fmt: skip
    found = json.loads(called(capsys, "diff", file, run, "--json")[1])
    assert {"setting": "batch_size", "a": 64, "b": 0, "unit": "samples"} in found["differences"]


def test_the_same_recipe_says_so(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, out, _ = called(capsys, "diff", file, file)
    assert (code, "are the same recipe" in " ".join(out.split())) == (0, True)
    assert json.loads(called(capsys, "diff", file, file, "--json")[1])["differences"] == []


def test_without_a_card_the_recipe_is_for_the_cpu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    written = tmp_path / "auto.toml"
    code, out, err = called(capsys, "auto", "keras:MobileNetV2", "-o", written)
    assert (code, err) == (0, "")
    assert out.startswith("For the CPU of this machine: 2 settings; nothing was estimated.")
    assert read_recipe(written) == Recipe(precision="float32", execution="graph")


def test_a_recipe_for_a_named_card_has_a_reason_for_each_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("auto", f"{MODEL}:convnet", "--gpu", "gtx-1060-6gb", "-q", "--json")
    code, out, err = called(capsys, *words)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["gpu"] == "gtx-1060-6gb"
    assert list(found["reasons"]) == found["recipe"]["set"]
    assert found["chosen"]["update_s"]["best"] > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "nothing.toml"), "nothing.toml does not exist"),
        (("show", "--set", "batchsize=3"), "did you mean batch_size?"),
        (("show", "--set", "strategy=ps", "--set", "execution=xla"), "do not go together"),
        (("show", "-o", "-"), "does not write to standard output"),
        (("diff", "one.toml"), "missing argument"),
        (("diff", "one.toml", "two.toml"), "one.toml does not exist"),
        (("auto", "keras:MobileNetV2", "--count", "2"), "--count goes with --gpu"),
        (("auto", "keras:MobileNetV2", "--gpu", "l44"), "did you mean"),
        (("auto", "nothing.py"), "there is no file nothing.py"),
        (("auto",), "missing argument"),
        (("shw",), "no such command"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_exit_code_two(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    code, out, err = called(capsys, *words)
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1


def test_a_recipe_in_chinese_reads_back_the_same(
    capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path
) -> None:
    written = tmp_path / "b.toml"
    out = called(capsys, "show", file, "--full", "-o", written, "--lang", "zh")[1]
    assert "3 项设置（配方 " in "".join(out.splitlines()[:3]).replace("# ", "")
    assert "# 每次更新权重所用的批数。" in out
    assert [line for line in out.splitlines()[2:] if shown_width(line) > 80] == []
    assert from_settings(tomllib.loads(out)) == read_recipe(written) == read_recipe(file)
    assert written.read_text().startswith("# tfdyno 配方。")
    again = called(capsys, "diff", file, written, "--lang", "zh")[1]
    assert "是同一配方" in "".join(again.splitlines())


def test_a_chosen_recipe_is_explained_in_chinese(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TFDYNO_LANG")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    out = called(capsys, "auto", f"{MODEL}:convnet", "--gpu", "l4", "-q")[1]
    assert out.startswith("L4：")
    assert "数据输入、随机种子和确定性与脚本一致" in out
    english = called(capsys, "auto", f"{MODEL}:convnet", "--gpu", "l4", "-q", "--lang", "en")[1]
    assert english.startswith("For L4: ")
    rows = r"(\w+) +(xla|graph) +(\d+) +(\d+) +(\d+ [µm]s)"
    assert re.findall(rows, out) == re.findall(rows, english) != []
