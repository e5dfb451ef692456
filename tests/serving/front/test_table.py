from __future__ import annotations

from dataclasses import replace

import pytest
from tests.runtime.fronts import ALONE, LINEAR, MIXING, TEXT, at, models, signature, table, tensor

from tfdyno.core.messages.serve import ModelFacts, VersionFacts
from tfdyno.serving.front.table import Refused, read_table, signature_of


def test_names_and_sizes_of_the_table_are_those_of_tensorflow() -> None:
    read = signature(replace(TEXT, inputs=(tensor("s", "bytes", -1, 2),)))
    assert (read.inputs[0].dtype, read.inputs[0].datatype) == ("string", "BYTES")
    assert read.inputs[0].shape == (None, 2)


def test_rows_can_be_joined_where_every_tensor_begins_with_any_number() -> None:
    assert signature(LINEAR).rows
    assert not signature(ALONE).rows


def test_what_the_model_process_found_unfit_to_be_joined_is_not_joined() -> None:
    assert not signature(MIXING).rows


def test_a_version_is_found_by_number_label_or_as_the_default() -> None:
    read = read_table({"m": replace(models()["m"], labels={"stable": "3"})})
    for wanted in ({}, {"version": "3"}, {"label": "stable"}):
        assert read.find("m", **wanted).number == "3"


@pytest.mark.parametrize(
    ("name", "wanted", "code"),
    [("n", {}, 404), ("m", {"version": "4"}, 404), ("m", {"label": "x"}, 404)],
)
def test_what_is_not_there_is_404(name: str, wanted: dict[str, str], code: int) -> None:
    with pytest.raises(Refused) as error:
        table().find(name, **wanted)
    assert error.value.code == code


def test_between_versions_and_without_models_it_is_503() -> None:
    none = replace(models()["m"], versions={})
    for read in (read_table({"m": none}), read_table({})):
        with pytest.raises(Refused) as error:
            read.find("m")
        assert (error.value.code, error.value.retry_after_s) == (503, 1)


def test_a_single_signature_needs_no_name() -> None:
    entry = VersionFacts(address=at(1), signatures={"other": LINEAR})
    facts = ModelFacts(default="3", versions={"3": entry})
    version = read_table({"m": facts}).find("m")
    assert signature_of(version, None).model == "linear"
    with pytest.raises(Refused, match="there is other"):
        signature_of(version, "serving_default")
