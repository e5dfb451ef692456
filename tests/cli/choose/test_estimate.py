from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfdyno.core.base.settings import EXECUTIONS

MODEL = f"{Path(__file__).parents[1].parent / 'data' / 'models' / 'small.py'}:convnet"
KEYS = {
    *("gpu replicas batch_size step_s peak_memory_bytes memory_parts_bytes fits").split(),
    *("max_batch_size bound_by terms_s made_by context_bytes device_memory_bytes").split(),
}


def tfdyno(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tfdyno", *words],
        capture_output=True, text=True, check=False, cwd=cwd, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def estimates(*words: str) -> list[dict[str, Any]]:
    done = tfdyno("estimate", MODEL, "--route", "quick", "--json", *words)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: list[dict[str, Any]] = json.loads(done.stdout)["estimates"]
    return found


def test_json_has_the_documented_keys_in_the_order_asked() -> None:
    found = estimates("--batch-size", "8", "--gpu", "t4,rtx-4090", "--replicas", "1,2")
    assert [(one["gpu"], one["replicas"]) for one in found] == [
        ("t4", 1),
        ("t4", 2),
        ("rtx-4090", 1),
        ("rtx-4090", 2),
    ]
    for one in found:
        assert set(one) >= KEYS
        assert one["batch_size"] == 8
        assert 0 < one["step_s"]["low"] <= one["step_s"]["best"] <= one["step_s"]["high"]
        assert one["made_by"] == {"time": "quick", "memory": "quick"}


def test_every_setting_of_the_scorer_is_answered() -> None:
    for execution in EXECUTIONS:
        for mode, precision in (
            ("train", "mixed_float16"),
            ("infer", "tf32"),
            ("infer", "float16"),
        ):
            found = estimates("--batch-size", "8", "--gpu", "t4,p4,b200-sxm-180gb",
                              "--precision", precision, "--mode", mode, "--execution", execution,
                              "--replicas", "8")  # fmt: skip
            assert [one["execution"] for one in found] == [execution] * 3


def test_text_begins_with_the_answer_and_fits_80_columns() -> None:
    done = tfdyno("estimate", MODEL, "--route", "quick", "--gpu", "t4", "--batch-size", "8")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("small at batch 8 on T4: about ")
    assert "Fits: " in done.stdout
    assert max(map(len, lines)) <= 80


def test_a_table_of_cards_begins_with_the_quickest() -> None:
    done = tfdyno("estimate", MODEL, "--route", "quick", "--gpu", "t4,h100", "--batch-size", "64")
    assert done.returncode == 2  # H100 alone is several cards
    words = ("--gpu", "t4,h100-sxm5-80gb", "--batch-size", "64")
    lines = tfdyno("estimate", MODEL, "--route", "quick", *words).stdout.splitlines()
    assert lines[0].startswith("small at batch 64: H100 SXM5 80 GB is the quickest, about ")
    assert max(map(len, lines)) <= 80


def test_explain_takes_every_card_apart_down_to_the_step() -> None:
    for one in estimates("--batch-size", "64", "--gpu", "t4,l4", "--replicas", "1,2", "--explain"):
        why = one["explanation"]
        kernels = [*why["kernels"], *why["others"]]
        rest_s = (
            why["waiting_s"] + why["fixed_s"] + (why["exchange"] or {"exposed_s": 0})["exposed_s"]
        )
        assert sum(each["time_s"] for each in kernels) + rest_s == pytest.approx(
            one["step_s"]["best"]
        )
        assert sum(each["share_ratio"] for each in why["kernels"]) + rest_s / why["step_s"] >= 0.9
        named = {"xla": {"e_loop", "t_kernel"}, "graph": {"e_primitive", "t_primitive"}}
        assert {each["name"] for each in why["constants"]} >= named[one["execution"]]


def test_nothing_is_explained_unasked() -> None:
    assert estimates("--batch-size", "8", "--gpu", "t4")[0]["explanation"] is None


def test_the_explanation_follows_the_answer_and_fits_80_columns() -> None:
    words = ("--route", "quick", "--gpu", "t4,l4", "--batch-size", "64", "--explain")
    done = tfdyno("estimate", MODEL, *words)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("small at batch 64: ")
    assert [line.split(" on ")[1] for line in lines if line.startswith("Why ")] == ["T4", "L4"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--gpu", "t44"), "there is no GPU 't44'"),
        (("--gpu", "t4", "--batch-size", "nan"), "batch size nan is not possible"),
        (("--gpu", "t4", "--batch-size", "inf"), "batch size inf is not possible"),
        (("--gpu", "t4", "--batch-size", "0"), "batch size 0 is not possible"),
        (("--gpu", "t4", "--batch-size", "-8"), "batch size -8 is not possible"),
        (("--gpu", "t4", "--batch-size", "1.5"), "batch size 1.5 is not possible"),
        (("--gpu", "t4", "--batch-size", "many"), "batch size 'many' is not a number"),
        (("--gpu", "t4", "--batch-size", "99999999999"), "is not possible: the largest that is"),
        (("--gpu", "t4", "--replicas", "1,x"), "replicas 'x' is not a number"),
        (("--gpu", "t4", "--replicas", "2", "--link", "nvlnk"), "there is no link 'nvlnk'"),
        (
            ("--gpu", "t4", "--replicas", "2", "--nodes", "2"),
            "give --replicas or --nodes, not both",
        ),
        (("--gpu", "t4", "--nodes", "2"), "2 nodes need a network between them"),
        (("--gpu", "t4", "--gpus-per-node", "4"), "--gpus-per-node has no use alone"),
        (("--gpu", "t4", "--nodes", "0"), "nodes 0 is not possible"),
        (("--gpu", "t4", "--nodes", "2", "--network", "pcie4-x16"), "pcie4-x16 is no network"),
        (("--gpu", "t4", "--replicas", "12", "--network", "eth-25g"), "do not fill nodes of 8 x"),
        (
            ("--gpu", "t4", "--nodes", "999999", "--network", "eth-25g"),
            "999,999 nodes of 8 are not",
        ),
        (
            ("--gpu", "t4", "--replicas", "16", "--link", "eth-25g", "--network", "ib-hdr-200"),
            "name the network once",
        ),
        (("--gpu", "t4", "--input-shape", "0,3"), "input size 0 is not possible"),
        (("--gpu", "t4", "--fit", "0"), "call of fit 0 is not possible"),
        (("--gpu", "t4", "--precision", "float8"), "float8"),
        (("--gpu", "t4", "--python", "/no/python"), "--python /no/python cannot be run"),
        (("--gpu", "a100-sxm4-80gb:3g.40gb", "--replicas", "2"), "cannot train with other slices"),
        (("--gpu", "all", "--explain"), "--explain answers for 8 rows at most, not for "),
        (("--gpu", "t4,l4,p4", "--replicas", "1,2,4", "--explain"), "at most, not for 9"),
        (("--gpu", "t4", "--", "--lr", "3"), "takes no arguments"),
        ((), "--gpu"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(words: tuple[str, ...], sentence: str) -> None:
    reference = MODEL if "--" not in words else "keras:ResNet50"
    done = tfdyno("estimate", reference, "--route", "quick", *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_several_numbers_of_cards_give_a_table_of_what_they_gain() -> None:
    words = ("--route", "quick", "--gpu", "rtx-3090", "--batch-size", "64", "--replicas", "2,8")
    done = tfdyno("estimate", MODEL, *words)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("A second RTX 3090 gains ")
    assert max(map(len, lines)) <= 80
    (series,) = json.loads(tfdyno("estimate", MODEL, *words, "--json").stdout)["scaling"]
    assert [row["replicas"] for row in series["rows"]] == [1, 2, 8]
    assert series["rows"][0]["gain_ratio"] == {"low": 1.0, "best": 1.0, "high": 1.0}
    assert all(0.0 < row["efficiency_ratio"]["best"] <= 1.0 for row in series["rows"])


def test_nodes_are_joined_by_the_network_that_is_named() -> None:
    words = ("--route", "quick", "--gpu", "h100-sxm5-80gb", "--batch-size", "64", "--nodes", "1,4",
             "--network", "ib-ndr-400")  # fmt: skip
    found = json.loads(tfdyno("estimate", MODEL, *words, "--json").stdout)["estimates"]
    assert [(one["replicas"], one["nodes"], one["network"]) for one in found] == [
        (8, 1, ""),
        (32, 4, "8xib-ndr-400"),
    ]
    slow = (*words[:-1], "eth-10g")
    slower = json.loads(tfdyno("estimate", MODEL, *slow, "--json").stdout)["estimates"]
    assert slower[1]["exposed_s"] > found[1]["exposed_s"]


def test_a_missing_file_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    done = tfdyno("estimate", "trian.py", "--gpu", "t4", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean train.py" in done.stderr
