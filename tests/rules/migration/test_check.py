from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from tests.rules.migration.code import KERAS_2, KERAS_3, found, found_in, notes
from tests.rules.migration.examples import EXAMPLES, KERAS, NOT_PYTHON, TF

from tfdyno.core.base.errors import ToolError
from tfdyno.rules.causes import cause, group
from tfdyno.rules.migration.check import check_code, legacy_values, with_keras
from tfdyno.rules.wording import finding

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", EXAMPLES)
def test_code_with_a_cause_is_found_and_code_much_like_it_is_not(name: str) -> None:
    wrong, right = EXAMPLES[name]
    assert name in found(wrong)
    assert name not in found(right)


@pytest.mark.parametrize("name", NOT_PYTHON)
def test_a_requirement_with_a_cause_is_found_and_one_much_like_it_is_not(name: str) -> None:
    file, wrong, right = NOT_PYTHON[name]
    assert name in found(wrong, name=file)
    assert not found(right, name=file)


def test_every_cause_has_an_example() -> None:
    assert {one.id.removeprefix("code.") for one in group("code")} == {*EXAMPLES, *NOT_PYTHON}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("values", [{}, KERAS_3, {"tensorflow": "2.20.0"}])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_example_can_be_put_into_words(
    name: str, values: dict[str, str], language: str
) -> None:
    match = found(EXAMPLES[name][0], values)[name]
    told = finding(cause(match.cause), match, values, "zh" if language == "zh" else "en")
    assert told.fix
    assert told.evidence
    assert not {"{", "}", "?"} & set(told.summary + told.why)


def test_evidence_names_file_and_line_and_shows_the_code_with_its_replacement() -> None:
    match = found("import tensorflow as tf\n\n\nx = tf.log(3.0)  # natural\n")["tf1_name"]
    assert match.basis == "code"
    assert match.evidence[0].source == "train.py:4"
    assert match.evidence[0].text == "x = tf.log(3.0)  # natural  →  tf.math.log"


def test_thirty_calls_of_one_cause_are_one_match_with_a_count() -> None:
    match = found(TF + "\n".join(f"a{n} = tf.placeholder(tf.float32)" for n in range(30)))[
        "tf1_graph"
    ]
    assert match.count == 30
    assert len(match.evidence) <= 8


def test_a_version_that_still_has_it_is_no_finding() -> None:
    source = (
        TF
        + KERAS
        + "tf.estimator.Estimator(f)\nkeras.optimizers.Adam(lr=1)\n"
        + "import keras.backend as K\nK.mean(1)"
    )
    assert not found(source, {"tensorflow": "2.10.0"})
    assert {"estimator", "lr_argument", "keras_backend"} <= found(source, KERAS_3).keys()
    assert not found(TF + "tf.Session()", {"tensorflow": "1.15.5"})


def test_strategy_rules_measured_with_keras_3_stay_silent_with_keras_2() -> None:
    names = ["multiworker_fit", "strategy_jit_compile", "keras_distribution", "horovod_keras3"]
    for name in names:
        assert name not in found(EXAMPLES[name][0], KERAS_2)


def test_a_finding_is_proven_only_where_the_version_is_known() -> None:
    source = TF + "tf.Session()"
    assert found(source, KERAS_3)["tf1_session"].verdict == "proven"
    assert found(source, {})["tf1_session"].verdict == "likely"


def test_keras_follows_from_tensorflow_and_from_the_legacy_switch() -> None:
    assert with_keras({"tensorflow": "2.15.1"})["keras"] == "2.15.1"
    assert with_keras({"tensorflow": "2.16.2"})["keras"] == "3"
    legacy = legacy_values({"tensorflow": "2.17.0", "keras": "3.15.1"})
    assert legacy
    assert legacy["keras"] == "2.17.0"
    assert legacy_values({"tensorflow": "2.15.1", "keras": "3.15.1"}) is None
    assert "keras" not in with_keras({})


SWITCH = 'import os\nos.environ["TF_USE_LEGACY_KERAS"] = "1"\n'
DIRECT = "import keras\nkeras.optimizers.legacy.Adam()\n"
BEHIND = TF + "tf.keras.optimizers.legacy.Adam()\n"


def test_a_file_that_asks_for_keras_2_is_judged_by_it() -> None:
    assert "optimizers_legacy" not in found(SWITCH + BEHIND, {"tensorflow": "2.17.0"})
    assert "optimizers_legacy" not in found(BEHIND, {**KERAS_3, "legacy_keras": "1"})
    assert "optimizers_legacy" not in found(
        "import tf_keras as keras\nkeras.optimizers.legacy.Adam()"
    )


@pytest.mark.parametrize(
    ("source", "values", "told"),
    [
        (SWITCH + DIRECT, KERAS_3, "direct"),
        (BEHIND + SWITCH, KERAS_3, "before"),
        ("import keras\n" + SWITCH + BEHIND, KERAS_3, "before"),
        (SWITCH + BEHIND, {"tensorflow": "2.15.1", "keras": "3.15.1"}, "old"),
    ],
)
def test_a_switch_without_effect_is_told_and_hides_nothing(
    source: str, values: dict[str, str], told: str
) -> None:
    matches = found(source, values)
    assert "optimizers_legacy" in matches
    match = matches["legacy_keras_ignored"]
    assert match.values[told]
    fix = finding(cause(match.cause), match, values).fix
    assert len(fix) == 1
    assert {"direct": "import tf_keras", "before": "TF_USE", "old": ""}[told] in fix[0].command


@pytest.mark.parametrize(
    "source",
    [
        SWITCH + BEHIND,
        SWITCH + TF + "from tensorflow import keras\nkeras.Model()",
        SWITCH + "import keras\nimport transformers\n",
        SWITCH.replace('"1"', '"0"') + DIRECT,
        SWITCH + "import keras\n" + BEHIND,
    ],
)
def test_a_switch_that_something_follows_is_no_finding(source: str) -> None:
    assert "legacy_keras_ignored" not in found(source)


def test_in_a_file_with_both_the_switch_counts_for_tf_keras_alone() -> None:
    matches = found(SWITCH + DIRECT + BEHIND)
    assert [one.source for one in matches["optimizers_legacy"].evidence] == ["train.py:4"]


@pytest.mark.parametrize(
    ("source", "values", "command"),
    [
        ("from keras.losses import MSLE", KERAS_3, "import tf_keras as keras"),
        (
            "from tensorflow.keras.layers.experimental import SyncBatchNormalization",
            KERAS_3,
            "TF_USE_LEGACY_KERAS=1 python train.py",
        ),
        (
            "from tensorflow.keras.layers.experimental import SyncBatchNormalization",
            {"tensorflow": "2.15.1", "tensorflow_minor": "2.15", "keras": "3.15.1"},
            'python -m pip install "keras==2.15.*"',
        ),
    ],
)
def test_the_way_to_keep_keras_2_is_one_that_has_an_effect(
    source: str, values: dict[str, str], command: str
) -> None:
    match = found(source, values)["keras2_name"]
    steps = finding(cause(match.cause), match, values).fix
    assert [step.command for step in steps] == ["", command]
    both = found(source + "\nfrom keras.losses import MSLE as other", values)
    told = finding(cause(match.cause), both["keras2_name"], values).fix[-1]
    switched = "TF_USE_LEGACY_KERAS" in told.command
    assert not switched or "import tf_keras as keras" in told.text


def test_a_name_that_the_last_keras_2_lacks_too_is_not_to_be_had_by_keeping_it() -> None:
    for holder in ("keras", "tensorflow.keras"):
        source = f"from {holder}.utils import multi_gpu_model\nfrom {holder}.losses import MSLE"
        match = found(source)["keras2_name"]
        steps = finding(cause(match.cause), match, KERAS_3).fix
        assert [step.command for step in steps] == [""]


def test_a_backend_named_elsewhere_in_the_project_silences_what_only_tensorflow_lacks() -> None:
    train = KERAS + "keras.distribution.set_distribution(d)"
    assert "keras_distribution" in found_in({"train.py": train})
    assert "keras_distribution" not in found_in(
        {"train.py": train, "Dockerfile": "ENV KERAS_BACKEND=jax"}
    )
    assert "keras_distribution" not in found(train, {"keras_backend": "jax"})


def test_the_projects_own_examples_have_no_error() -> None:
    files = [*ROOT.glob("examples/**/*.py"), *ROOT.glob("tests/data/models/*.py")]
    assert files
    matches, unread = check_code(
        map(str, files), lambda path: Path(path).read_text("utf-8"), KERAS_3
    )
    assert [one.cause for one in matches if cause(one.cause).severity == "error"] == []
    assert unread == ()


def test_keras_own_layers_and_optimizers_have_no_error() -> None:
    keras = next(ROOT.glob(".venv/lib/python*/site-packages/keras/src"), None)
    if keras is None:
        pytest.skip("Keras is not installed")
    folders = ("applications", "layers/attention", "optimizers", "distribution", "trainers")
    files = [path for folder in folders for path in keras.glob(f"{folder}/**/*.py")]
    assert len(files) > 50
    matches, unread = check_code(
        map(str, files), lambda path: Path(path).read_text("utf-8"), KERAS_3
    )
    assert [one.cause for one in matches if cause(one.cause).severity == "error"] == []
    assert unread == ()


def test_what_cannot_be_read_is_a_note_and_the_others_are_still_looked_at() -> None:
    def read(path: str) -> str:
        if path == "gone.py":
            raise FileNotFoundError(2, "No such file or directory")
        if path == "large.py":
            raise ToolError("large.py was not read", why="it has 9 MB")
        return TF + "tf.Session()"

    matches, said = check_code(["gone.py", "large.py", "a.py"], read, {})
    assert [one.cause for one in matches] == ["code.tf1_session"]
    assert said == (
        "gone.py was not read: No such file or directory.",
        "large.py was not read: it has 9 MB.",
    )


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("a.py", TF + "def f(:\n", "a.py was not read: line 2: invalid syntax."),
        ("a.py", TF + "\0", "a.py was not read: it is not text."),
        ("a.py", TF + "x = " + "(" * 300 + ")" * 300, "a.py was not read: line 2: too many nested"),
        ("a.ipynb", '{"cells": [ tensorflow', "a.ipynb was not read: it is not a notebook"),
        ("a.ipynb", '["tensorflow"]', "a.ipynb was not read: it is not a notebook (no cells)."),
        ("pyproject.toml", "[project\n", "pyproject.toml was not read: "),
        ("setup.cfg", "a = b\n", "setup.cfg was not read: "),
    ],
)  # fmt: skip
def test_a_file_that_does_not_parse_is_a_note(name: str, source: str, said: str) -> None:
    (note,) = notes(name, source)
    assert note.startswith(said)


@pytest.mark.parametrize("source", ["", "\n\n", "# tensorflow\n", '"""tensorflow"""'])
def test_an_empty_file_says_nothing(source: str) -> None:
    assert check_code(["a.py"], lambda _: source, KERAS_3) == ((), ())


def test_deep_nesting_is_a_note_and_not_a_traceback() -> None:
    deep = TF + "x = " + "-" * 50_000 + "1"
    chain = TF + "x = y" + ".a" * 20_000
    sums = TF + "x = " + "+".join(itertools.repeat("1", 20_000))
    for source in (deep, chain, sums):
        assert len(notes("a.py", source)) <= 1


def test_a_file_of_python_2_is_itself_a_finding() -> None:
    match = found(TF + "\nexcept_ = 1\nprint 'x'\n")["python2"]
    assert match.evidence[0].source == "train.py:4"
    assert match.values["where"] == "train.py:4"
