"""An export in words: nothing is rounded to what it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.exports import SIGNATURE, result, two, verification

from tfdyno.view.deploy.export_text import export_text
from tfdyno.words.deploy.export import (
    accuracy_lines,
    commands,
    detail_lines,
    difference_words,
    headline,
    percent_words,
    signature_words,
)


@pytest.mark.parametrize(
    ("ratio", "words"), [(1.0, "100 %"), (0.999999, "99.99 %"), (0.5, "50.00 %")]
)
def test_all_means_all(ratio: float, words: str) -> None:
    assert percent_words(ratio) == words


def test_equal_to_the_last_bit_is_0() -> None:
    assert [difference_words(value) for value in (0.0, 1.23e-7)] == ["0", "1.2e-07"]


def test_a_signature_names_the_open_batch() -> None:
    assert signature_words(SIGNATURE.inputs) == "image float32[batch,8,8,1]"


def test_formats_that_came_out_alike_are_told_together() -> None:
    same = result(("onnx", verification()), ("keras", verification()))
    assert accuracy_lines(same).endswith("(onnx and keras).")
    assert accuracy_lines(two()).count("Accuracy is") == 2


def test_where_nothing_passed_nothing_is_called_exported() -> None:
    assert headline(result(("onnx", verification(1.0)))) == (
        "digits: onnx did not pass and is not kept"
    )


def test_one_row_that_differs_is_not_told_as_all() -> None:
    found = verification()
    nearly = replace(found, differences=(replace(found.differences[0], top1_ratio=0.99999),))
    assert "100 %" not in export_text(result(("onnx", nearly)), width=120).split("Note")[0]


def test_outputs_that_say_nothing_are_told() -> None:
    found = verification()
    still = replace(found, differences=(replace(found.differences[0], varies=False),))
    assert "digit is the same for every row" in export_text(result(("onnx", still)))
    broken = replace(found, differences=(replace(found.differences[0], not_finite_ratio=0.5),))
    assert "50 % of the values of digit are NaN" in export_text(result(("onnx", broken)), width=200)


def test_adapters_and_whole_numbers_that_became_part_of_the_weights_are_told() -> None:
    one = replace(result(("huggingface", verification())).artefacts[0],
                  details={"merged_adapters": 4, "made_floats": ["int8"]})  # fmt: skip
    assert detail_lines(one) == [
        "huggingface: the adapters of 4 layers are in their weights.",
        "huggingface: weights in int8 became floats, which take more memory; a server can "
        "quantize them as it loads.",
    ]
    assert detail_lines(replace(one, details={"merged_adapters": 0, "made_floats": []})) == []


def test_a_folder_of_hugging_face_leads_to_the_files_of_a_server() -> None:
    found = result(("huggingface", verification()))
    place = found.artefacts[0].path
    said = f"tfdyno serve {place} --render vllm --card NAME --output DIR"
    assert said in [line for line, _ in commands(found)]
