from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tfdyno
from tfdyno.core.choose.advice import Advice
from tfdyno.core.choose.estimate import Estimate

MODEL = f"{Path(__file__).parent / 'data' / 'models' / 'small.py'}:convnet"


@pytest.fixture(scope="module")
def traced() -> tfdyno.Traced:
    return tfdyno.trace(MODEL)


def test_every_public_name_is_there_and_nothing_heavy_comes_with_the_package() -> None:
    heavy = {"numpy", "jax", "keras", "click", "msgspec"}
    code = f"import sys, tfdyno; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    for name in tfdyno.__all__:
        assert getattr(tfdyno, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tfdyno.nothing  # noqa: B018


def test_a_trace_serves_estimate_and_advise(traced: tfdyno.Traced) -> None:
    result = tfdyno.estimate(traced, gpu=["t4", "l4"], batch_size=64, route="quick")
    assert [one.gpu for one in result] == ["t4", "l4"]
    assert isinstance(result[0], Estimate)
    advice = tfdyno.advise(traced, batch_size=64, steps=1000, gpu="t4,l4", route="quick")
    assert isinstance(advice, Advice)
    why = tfdyno.estimate(traced, gpu="t4", batch_size=64, route="quick", explain=True)[0]
    assert why.explanation
    assert why.explanation.step_s == why.step_s.best
    assert result[0].explanation is None
    assert advice.ranking[0].estimate.step_s in [one.step_s for one in result] or (
        advice.ranking[0].count > 1
    )


def test_a_notebook_shows_the_answer_and_escapes_what_a_user_named(traced: tfdyno.Traced) -> None:
    shown = tfdyno.estimate(traced, gpu="t4", batch_size=64, route="quick")._repr_html_()
    assert shown.startswith("<p><strong>small at batch 64 on T4: about ")
    advice = tfdyno.advise(traced, batch_size=64, steps=1000, gpu="t4", route="quick")
    assert "<li><strong>cheapest</strong>: " in advice._repr_html_()
    assert advice.headline in advice.html()


def test_the_graph_of_another_precision_is_traced_anew(traced: tfdyno.Traced) -> None:
    result = tfdyno.estimate(traced, gpu="t4", precision="mixed_float16", route="quick")
    assert result.trace.policy == "mixed_float16"
    assert traced.trace.policy == "float32"


def test_what_is_no_model_is_refused_in_words() -> None:
    with pytest.raises(tfdyno.UsageError, match="int is neither a reference nor a Keras model"):
        tfdyno.trace(3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size 0 is not possible"),
        ({"batch_size": 64.5}, "batch_size 64.5 is not possible"),
        ({"batch_size": float("nan")}, "batch_size nan is not possible"),
        ({"replicas": 0}, "replicas 0 is not possible"),
        ({"route": "qick"}, "route 'qick' is not one of auto, quick, exact; did you mean quick"),
        ({"precision": "float8"}, "precision 'float8' is not one of"),
        ({"mode": "trian"}, "did you mean train"),
    ],
)
def test_estimate_refuses_what_the_command_line_refuses(
    settings: dict[str, Any], message: str, traced: tfdyno.Traced
) -> None:
    with pytest.raises(tfdyno.UsageError, match=message):
        tfdyno.estimate(traced, gpu="t4", **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": -1, "samples": 10}, "epochs -1 is not possible"),
        ({"budget_usd": float("nan")}, "budget_usd nan is not possible"),
        ({"deadline_h": 0}, "deadline_h 0 is not possible"),
        ({"scenario": "x"}, "scenario 'x' is not one of develop, research"),
    ],
)
def test_advise_refuses_what_the_command_line_refuses(
    settings: dict[str, Any], message: str, traced: tfdyno.Traced
) -> None:
    with pytest.raises(tfdyno.UsageError, match=message):
        tfdyno.advise(traced, batch_size=64, **settings)


def test_estimate_takes_a_keras_model_too() -> None:
    code = (
        "import keras, tfdyno\n"
        "m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])\n"
        "m.compile('adam', 'mse')\n"
        "print(tfdyno.estimate(m, gpu='t4', batch_size=32, route='quick')[0].gpu)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "t4", done.stderr[-500:]


def test_fit_trains_in_this_process_and_says_what_it_cannot_set(tmp_path: Path) -> None:
    code = (
        "import keras, numpy as np, tfdyno\n"
        "m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])\n"
        "m.compile('sgd', 'mse')\n"
        "x, y = np.ones((32, 8)), np.ones((32, 1))\n"
        "open('r.toml', 'w').write('clip_norm = 0.5')\n"
        "done = tfdyno.fit(m, (x, y), recipe='r.toml', output='run', epochs=2)\n"
        "print(isinstance(done, tfdyno.TrainResult), done.recipe == tfdyno.Recipe(clip_norm=0.5))\n"
        "print(len(done.history['loss']), done.steps, tfdyno.core.recipe.recipe_file.FILE_NAME)\n"
        "try:\n"
        "    tfdyno.fit(m, (x, y), recipe={'threads_intra': 3})\n"
        "except tfdyno.UsageError as error:\n"
        "    print(error)\n"
    )
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    first, second, refused = done.stdout.splitlines() or [done.stderr[-800:], "", ""]
    assert (first, second) == ("True True", "2 2 recipe.toml")
    assert refused.startswith("threads_intra cannot be set by fit in a process that runs already")
    assert "epoch 2/2  loss " in done.stderr
    assert {"recipe.toml", "checkpoints", "model.keras"} <= {p.name for p in tmp_path.glob("run/*")}
