from __future__ import annotations

from dataclasses import replace

from tests.runtime.fronts import at, models, table

from tfdyno.core.messages.serve import ModelFacts
from tfdyno.serving.front.status import metadata, status
from tfdyno.serving.front.table import read_table


def test_the_status_names_all_versions_newest_first() -> None:
    (entry,) = models()["m"].versions.values()
    facts = ModelFacts(versions={"3": entry, "12": replace(entry, address=at(2))})
    told = status(read_table({"m": facts}), "m")["model_version_status"]
    assert [each["version"] for each in told] == ["12", "3"]
    fine = {"error_code": "OK", "error_message": ""}
    assert told[0] == {"version": "12", "state": "AVAILABLE", "status": fine}


def test_metadata_is_a_signature_def_in_json() -> None:
    told = metadata(table().find("m"))
    assert told["model_spec"] == {"name": "m", "signature_name": "", "version": "3"}
    signatures = told["metadata"]["signature_def"]["signature_def"]
    assert signatures["serving_default"]["inputs"]["x"] == {
        "dtype": "DT_FLOAT",
        "tensor_shape": {
            "dim": [{"size": "-1", "name": ""}, {"size": "3", "name": ""}],
            "unknown_rank": False,
        },
        "name": "x",
    }
    assert signatures["text"]["inputs"]["s"]["dtype"] == "DT_STRING"
    assert signatures["pair"]["method_name"] == "tensorflow/serving/predict"
