from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.foretold import foretold, without_xla
from tfdyno.jobs.choose.predict import predictor_for
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.lookup.can_run import can_run

MODELS = """
import keras

def made(head):
    model = keras.Sequential([
        keras.Input((28, 28, 1)), keras.layers.Conv2D(8, 3), keras.layers.Conv2D(8, 3),
        head, keras.layers.Dense(16), keras.layers.Dense(10)])
    model.compile("adam", "sparse_categorical_crossentropy")
    return model

def flat():
    return made(keras.layers.Flatten())

def pooled():
    return made(keras.layers.GlobalAveragePooling2D())
"""


@pytest.mark.tf
def test_a_cnn_that_flattens_is_warned_on_the_card_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("models.py").write_text(MODELS)
    flat, pooled = (
        predictor_for(
            replace(parse_reference(f"models.py:{name}"), software="tensorflow 2.21"),
            progress=silent,
        )
        for name in ("flat", "pooled")
    )
    hopper, ampere = find("h200-sxm"), find("a100-sxm4-80gb")
    (said,) = foretold(flat, [ampere, hopper, hopper])
    assert "on compute capability 9.0: Triton finds no tile" in said
    assert foretold(flat, [ampere]) == ()
    assert foretold(pooled, [hopper]) == ()
    blackwell = [find("b200-sxm-180gb"), find("rtx-5060"), find("rtx-5070"), find("rtx-5090")]
    (left,) = without_xla(pooled, [hopper, *blackwell, blackwell[0]])
    assert left.startswith("4 cards (B200 SXM, GeForce RTX 5060, GeForce RTX 5070, …) are answered")
    assert "compute capability 10.0, 12.0 with" in left
    assert without_xla(pooled, [hopper, ampere]) == ()
    (warned,) = without_xla(replace(pooled, execution="xla"), [hopper, blackwell[-1]])
    assert "fails with the wheel of TensorFlow 2.21" in warned


def test_can_run_tells_the_faults_of_the_pair() -> None:
    found = {
        (gpu.slug, support.tensorflow): support.known_faults
        for gpu, support in can_run([find("h200-sxm"), find("t4")], ["2.20", "2.21"])
    }
    faults = found.pop((find("h200-sxm").slug, "2.21"))
    assert len(faults) == 1
    assert "jax-ml/jax#40237" in faults[0]
    assert set(found.values()) == {()}
