from __future__ import annotations

import ast
import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.ui.settings import (
    APPLICATIONS,
    command_line,
    ranking_words,
    read_settings,
    run_words,
    step_words,
    workload_of,
)

PLAIN = {"workload": "keras:ResNet50", "gpu": "l4"}


def test_what_is_left_empty_is_left_to_the_workload() -> None:
    found = read_settings({**PLAIN, "batch_size": "", "precision": " ", "count": ""}.items())
    assert (found.batch_size, found.precision, found.count) == (0, "", 1)
    assert found.offers == "no-spot"


def test_a_card_is_known_by_any_of_its_names() -> None:
    assert read_settings({**PLAIN, "gpu": "NVIDIA L4"}.items()).gpu == "l4"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"gpu": ""}, "gpu is missing"),
        ({"workload": ""}, "workload is missing"),
        ({"gpu": "t44"}, "there is no GPU 't44'"),
        ({"gpu": "l4,t4"}, "there is no GPU"),
        ({"batch": "8"}, "did you mean batch_size?"),
        ({"batch_size": "nan"}, "batch size nan is not possible"),
        ({"batch_size": "-1"}, "batch size -1 is not possible"),
        ({"batch_size": str(10**9)}, "give at most 1,048,576"),
        ({"count": "2000"}, "give at most 1,024"),
        ({"precision": "float8"}, "precision 'float8' is not one of"),
        ({"execution": "eager-torch"}, "execution 'eager-torch' is not one of xla, graph"),
        ({"usd_per_h": "0"}, "give more than 0"),
        ({"usd_per_h": "inf"}, "give a finite number"),
        ({"offers": "cheap"}, "offers 'cheap' is not one of"),
    ],
)
def test_what_no_command_takes_is_refused_in_words(more: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError) as told:
        read_settings({**PLAIN, **more}.items())
    assert sentence in str(told.value)


def test_a_name_that_is_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="gpu is given twice"):
        read_settings([*PLAIN.items(), ("gpu", "t4")])


def test_commands_leave_out_what_is_not_set_and_quote_what_has_to_be(tmp_path: Path) -> None:
    script = tmp_path / "my model.py"
    script.write_text("")
    given = parse_reference(str(script), script_arguments=("--lr", "a b"), fit_number=2)
    asked = read_settings(
        {"workload": str(script), "gpu": "l4", "count": "2", "batch_size": "64", "epochs": "3",
         "precision": "tf32", "usd_per_h": "1.5"}.items()
    )  # fmt: skip
    workload = workload_of(asked, given)
    name = f"'{script}'"
    assert command_line(step_words(asked, workload)) == (
        f"tfdyno estimate {name} --gpu l4 --replicas 2 --batch-size 64 --precision tf32 --fit 2 "
        "-- --lr 'a b'"
    )
    assert command_line(run_words(asked, workload)) == (
        f"tfdyno advise {name} --gpu l4 --count 2 --usd-per-h 1.5 --epochs 3 --batch-size 64 "
        "--precision tf32 --route quick --fit 2 -- --lr 'a b'"
    )
    assert command_line(ranking_words(replace(asked, offers="every"), workload)) == (
        f"tfdyno advise {name} --epochs 3 --batch-size 64 --precision tf32 --route quick --fit 2 "
        "-- --lr 'a b'"
    )
    plain = read_settings(PLAIN.items())
    assert command_line(step_words(plain, workload_of(plain, None))) == (
        "tfdyno estimate keras:ResNet50 --gpu l4"
    )


def test_tf32_is_the_float32_policy_of_keras() -> None:
    asked = read_settings({**PLAIN, "precision": "tf32"}.items())
    assert workload_of(asked, None).precision == "float32"


@pytest.mark.parametrize(
    "name", ["evil.py", "os:system", "model.keras", "keras:Nothing", "task:nothing", "/etc/passwd"]
)
def test_an_address_runs_no_file_that_was_not_given(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for each in ("evil.py", "model.keras"):
        (tmp_path / each).write_text("raise SystemExit")
    given = parse_reference("keras:VGG16")
    with pytest.raises(UsageError):
        workload_of(read_settings({**PLAIN, "workload": name}.items()), given)


def test_the_models_of_keras_are_those_that_it_has() -> None:
    found = importlib.util.find_spec("keras")
    assert found
    assert found.origin
    file = Path(found.origin).parent / "applications" / "__init__.py"
    named = {
        name.asname or name.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert set(APPLICATIONS) == {name for name in named if name[:1].isupper()}
