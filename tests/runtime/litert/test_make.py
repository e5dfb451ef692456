"""What is no model is told before anything is converted; a .keras file becomes a .tflite file."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest
from tests.runtime.benches import in_tensorflow

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
CODE = """
import keras
from pathlib import Path
from tfdyno.core.base.errors import UsageError
from tfdyno.core.messages.litert import MakeLitert
from tfdyno.runtime.litert.file import read
from tfdyno.runtime.litert.make import handle
here = Path(FOLDER)
keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(2)]).save(here / "good.keras")
keras.Sequential([keras.Input((4,)), keras.layers.Lambda(lambda v: v * 2)]).save(here / "l.keras")
def told(reference, unsafe=False):
    request = MakeLitert(reference=reference, target=here / "made.tflite", unsafe=unsafe)
    try:
        handle(request, lambda line: None)
    except UsageError as error:
        return str(error)
result = {name: told(str(here / name)) for name in ("bad.keras", "l.keras")}
result["left"] = (here / "made.tflite").exists()
for name in ("words", "raises", "nothing"):
    result[name] = told(f"{here}/net.py:{name}")
told(str(here / "good.keras"))
result["good"] = [one.kind for one in read(here / "made.tflite").main.operators]
"""


def test_models_are_loaded_or_refused_in_words(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bad.keras", "w") as archive:
        archive.writestr("config.json", "{")
    (tmp_path / "net.py").write_text(
        "def words():\n    return 'no model'\ndef raises():\n    return 1 / 0\n"
    )
    found = in_tensorflow(CODE.replace("FOLDER", repr(str(tmp_path))))
    assert "bad.keras is not a Keras 3 model file" in found["bad.keras"]
    assert "holds a lambda: loading it runs code from the file" in found["l.keras"]
    assert found["left"] is False
    assert "words returned a str; let it return the model" in found["words"]
    assert "net.py, line 4: ZeroDivisionError" in found["raises"]
    assert "has no function 'nothing'" in found["nothing"]
    assert found["good"] == ["FULLY_CONNECTED"]
