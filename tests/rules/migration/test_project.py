"""A file that takes its names from another file of the project is looked at with them."""

from __future__ import annotations

import builtins

import pytest
from tests.rules.migration.code import found, found_in

from tfdyno.rules.migration.bindings import starred
from tfdyno.rules.tables import read_rows

NETWORK = """
    from keras.models import *
    from keras.layers import *
    from keras.optimizers import *
    from keras.callbacks import *

    def network():
        inputs = Input((16,))
        model = Model(input=inputs, output=Dense(1)(inputs))
        model.compile(optimizer=Adam(lr=1e-4))
        return model
"""
MAIN = """
    from network import *

    model = network()
    keep = ModelCheckpoint("best.hdf5")
    model.fit_generator(pairs(), callbacks=[keep])
"""


def places(files: dict[str, str]) -> dict[str, list[str]]:
    matches = found_in(files)
    return {cause: [seen.source for seen in one.evidence] for cause, one in matches.items()}


def test_names_that_come_by_a_star_are_those_of_keras() -> None:
    assert places({"network.py": NETWORK}) == {
        "keras2_argument": ["network.py:9"],
        "lr_argument": ["network.py:10"],
    }


def test_a_file_without_a_word_of_keras_is_read_with_what_it_imports() -> None:
    assert places({"main.py": MAIN, "network.py": NETWORK}) == {
        "generator_methods": ["main.py:6"],
        "keras2_argument": ["network.py:9"],
        "lr_argument": ["network.py:10"],
        "model_name": ["main.py:5"],
    }
    assert places({"main.py": MAIN}) == {}  # whose network it is, nobody knows


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("pkg/train.py", "from .network import Adam"),
        ("pkg/sub/train.py", "from ..network import Adam"),
        ("pkg/train.py", "from pkg.network import Adam"),
        ("pkg/train.py", "from network import Adam"),
        ("train.py", "from pkg.network import Adam"),
        ("train.py", "from pkg import Adam"),
    ],
)
def test_a_name_is_found_by_every_way_of_importing_it(path: str, line: str) -> None:
    files = {
        "pkg/network.py": "from keras.optimizers import Adam",
        "pkg/__init__.py": "from .network import Adam",
        path: f"{line}\nAdam(lr=1)\n",
    }
    assert places(files) == {"lr_argument": [f"{path}:2"]}


def test_files_that_import_each_other_end() -> None:
    files = {
        "a.py": "from b import *\nfrom keras.optimizers import *\nAdam(lr=1)\n",
        "b.py": "from a import *\nimport keras\nkeras.optimizers.SGD(lr=1)\n",
    }
    assert places(files) == {"lr_argument": ["a.py:3", "b.py:3"]}


def test_a_function_of_the_same_name_is_the_files_own() -> None:
    wrong = "from keras.layers import *\nfrom keras.optimizers import *\nAdam(lr=1)\n"
    assert "lr_argument" in found(wrong)
    assert not found(wrong.replace("Adam(lr=1)", "def Adam(lr): ...\nAdam(lr=1)"))


def test_a_star_gives_only_names_that_the_package_has() -> None:
    stars = ["keras.layers", "tf.keras.callbacks"]
    assert starred("Dense", stars) == "keras.layers.Dense"
    assert starred("EarlyStopping", stars) == "tf.keras.callbacks.EarlyStopping"
    assert starred("Adam", stars) == ""
    assert starred("MyNet", stars) == ""


def test_no_star_hides_a_function_of_python() -> None:
    rows = read_rows("code_star_names.csv", ("package", "names", "source"))
    names = {name for row in rows for name in row["names"].split()}
    assert not names & set(dir(builtins))


def test_only_a_checkpoint_refuses_the_longer_name_of_hdf5() -> None:
    source = "from keras.callbacks import ModelCheckpoint\nModelCheckpoint('{}')\n"
    assert "model_name" in found(source.format("best.hdf5"))
    assert "model_name" not in found(source.format("best.h5"))
    saved = "import keras\nm = keras.Sequential()\nm.save('best.hdf5')\n"
    assert set(found(saved)) == {"h5_saving"}
