from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.measurements import measurement

from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement_document import MeasurementReport, bench_document, document_of
from tfdyno.jobs.bench.measured_files import measurements_at
from tfdyno.model.measure.comparison import compare
from tfdyno.model.measure.summary import summary
from tfdyno.store.results import FILE, Results

if TYPE_CHECKING:
    from pathlib import Path

ONE = measurement([[0.1, 0.11]] * 5, id="aa11")
TWO = measurement([[0.2, 0.21]] * 5, id="bb22")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    results = Results(folder=tmp_path / "results")
    for one in (ONE, TWO):
        results.start(one, key=one.id)
    return results.folder


def written(path: Path, **changes: Any) -> str:
    document = json.loads(to_json(bench_document(ONE, summary(ONE)))) | changes
    path.write_text(json.dumps(document))
    return str(path)


def test_a_json_file_is_the_measurement_that_it_was_made_of(tmp_path: Path) -> None:
    assert measurements_at(written(tmp_path / "a.json")) == (ONE,)


def test_a_file_of_two_sides_holds_both(tmp_path: Path) -> None:
    path = tmp_path / "pair.json"
    told = [
        MeasurementReport(measurement=one, summary=summary(one), medians_s=()) for one in (ONE, TWO)
    ]
    path.write_bytes(to_json(document_of(told, compare(ONE, TWO))))
    assert measurements_at(str(path)) == (ONE, TWO)


def test_a_folder_stands_for_its_newest_and_an_id_for_itself(folder: Path) -> None:
    assert measurements_at(str(folder)) == (TWO,)
    assert measurements_at(str(folder / FILE)) == (TWO,)
    assert measurements_at(f"{folder}:aa") == (ONE,)


def test_a_name_that_is_nearly_right_is_told(tmp_path: Path) -> None:
    written(tmp_path / "fast.json")
    with pytest.raises(UsageError, match=r"did you mean .*fast\.json\?"):
        measurements_at(str(tmp_path / "fst.json"))


@pytest.mark.parametrize("place", ["", "no.json", "nowhere:12", "/no/such/folder/x.json"])
def test_nothing_there_is_one_sentence(place: str) -> None:
    with pytest.raises(UsageError, match="there is no"):
        measurements_at(place)


def test_an_unknown_id_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="no measurement cc"):
        measurements_at(f"{folder}:cc")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not valid JSON"), ("run,step\n1,0.1", "not valid JSON"), ("\x00", "not valid JSON"),
        ("[]", "not a result of tfdyno bench"), ("{}", "not a result of tfdyno bench"),
        ('{"format": "tfdyno bench 1"}', "not a whole result"),
    ],
)  # fmt: skip
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=told):
        measurements_at(str(path))


def edited_run(**changes: object) -> dict[str, object]:
    run: dict[str, object] = json.loads(to_json(ONE.runs[0]))
    return {"runs": [run | changes]}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"runs": []}, "holds no run"),
        (edited_run(samples_s=[0.1, 0.0]), "no time above 0 s in run 1"),
        (edited_run(samples_s=[0.1, -1.0]), "no time above 0 s in run 1"),
        (edited_run(steps_per_sample=[1]), "steps_per_sample"),
        (edited_run(steps_per_sample=[1, 0]), "steps_per_sample"),
        (edited_run(steady_from=3), "steady_from"),
        (edited_run(samples_s=[], steps_per_sample=[]), "no samples"),
        (edited_run(telemetry={"at_s": [1.0], "cpu_ratio": [0.1, 0.2]}), "equally long"),
    ],
)
def test_an_edited_file_is_refused_before_any_arithmetic(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        measurements_at(written(tmp_path / "x.json", **changes))


def test_a_batch_below_nothing_is_refused(tmp_path: Path) -> None:
    task = json.loads(to_json(ONE.task)) | {"batch_size": -1}
    with pytest.raises(UsageError, match="a batch or replicas below 1"):
        measurements_at(written(tmp_path / "x.json", task=task))
