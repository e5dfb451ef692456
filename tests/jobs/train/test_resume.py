"""Whether a folder holds the run that is asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tfdyno.core.choose.workload import FineTune, Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.train.resume import differences_from
from tfdyno.store.run_folder import RunRecord

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def preset(name: str, **chosen: int) -> Workload:
    return parse_reference(f"keras_hub:{name}", fine_tune=FineTune(**chosen))  # type: ignore[arg-type]


def differences(there: Workload, here: Workload, *, folder: str = "", data: str = "") -> list[str]:
    record = RunRecord(workload=there, folder=folder, data="texts.csv")
    return differences_from(record, Recipe(), here, given=None, data=data)


def test_the_same_is_no_other_run() -> None:
    one = preset("gpt2_base_en", lora_rank=4)
    assert differences(one, one, data="texts.csv") == []


def test_another_way_of_training_a_preset_is_told_as_it_is_typed() -> None:
    there, here = preset("gpt2_base_en", lora_rank=4, sequence_length=64), preset("gpt2_base_en")
    assert differences(there, here) == ["it is trained by --seq 64 --lora 4, not by no option"]


def test_another_preset_and_other_data_are_another_run() -> None:
    found = differences(preset("gpt2_base_en"), preset("bert_tiny_en_uncased"), data="b.csv")
    assert found[0] == (
        "its reference is keras_hub:gpt2_base_en, not keras_hub:bert_tiny_en_uncased"
    )
    assert found[-1] == "its data is texts.csv, not b.csv"


def test_a_folder_is_the_same_from_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tuned").mkdir()
    told = {"registered_name": "keras_hub>GPT2Backbone", "config": {"hidden_dim": 16}}
    (tmp_path / "tuned" / "config.json").write_text(json.dumps(told))
    monkeypatch.chdir(tmp_path)
    there = preset("./tuned")
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert differences(there, preset("../tuned"), folder=str(tmp_path)) == []
    found = differences(there, preset("../tuned"), folder=str(tmp_path / "inner"))
    assert found == ["its reference is keras_hub:./tuned, not keras_hub:../tuned"]
