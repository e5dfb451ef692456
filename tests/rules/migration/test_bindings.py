from __future__ import annotations

import pytest
from tests.rules.migration.code import found

from tfdyno.rules.migration.bindings import canonical

SESSION = [
    "import tensorflow as tf\ntf.Session()",
    "import tensorflow\ntensorflow.Session()",
    "from tensorflow import Session\nSession()",
    "from tensorflow import Session as S\ns = S()",
    "import tensorflow.compat.v2 as tf\ntf.Session()",
    "import tensorflow as tf\nt = tf\nt.Session()",
    "def main():\n    import tensorflow as tf\n    return tf.Session()",
    "import tensorflow as tf\nclass A:\n    def __init__(self):\n"
    "        self.session = tf.Session()",
    "import tensorflow as tf\ndef f():\n    with tf.Session() as s, open('f') as g:\n        pass",
    "import tensorflow as tf\nx = [tf.Session() for _ in range(3)]",
    "import tensorflow as tf\nx = lambda: tf.Session()",
    "import tensorflow as tf\nif (s := tf.Session()):\n    pass",
    "import tensorflow as tf\nasync def f():\n    async with tf.Session() as s:\n        pass",
    "import tensorflow as tf\nmatch x:\n    case 1:\n        tf.Session()",
]
NOT_SESSION = [
    "import tensorflow\nimport requests as tf\ntf.Session()",
    "import tensorflow as tf\ndef f(tf):\n    return tf.Session()",
    "import tensorflow as tf\nf = lambda tf: tf.Session()",
    "import tensorflow as tf\nfor tf in frameworks:\n    tf.Session()",
    "from . import tensorflow as tf\ntf.Session()",
    "import tensorflow as tf\ns = 'tf.Session()'  # tf.Session()",
    "import tensorflow as tf\ntf.Session = tf.compat.v1.Session\ntf.Session()",
    "import tensorflow as tf\nif tf.__version__ < '2':\n    tf.Session()",
    "import tensorflow as tf\nif hasattr(tf, 'Session'):\n    tf.Session()",
    "import tensorflow as tf\ntry:\n    s = tf.Session()\nexcept AttributeError:\n    s = None",
    "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n"
    "    import tensorflow as tf\ntf.Session()",
]  # fmt: skip


@pytest.mark.parametrize("source", SESSION)
def test_a_name_is_followed_through_imports_assignments_and_scopes(source: str) -> None:
    assert "tf1_session" in found(source)


@pytest.mark.parametrize("source", NOT_SESSION)
def test_a_name_that_is_something_else_or_guarded_is_left_alone(source: str) -> None:
    assert "tf1_session" not in found(source)


def test_a_model_is_followed_through_functions_classes_and_self() -> None:
    base = "import keras\n"
    for source in (
        "def build():\n    m = keras.Sequential()\n    return m\nmodel = build()\nmodel.save('d')",
        "class M(keras.Model):\n    pass\nmodel = M()\nmodel.save('d')",
        "class T:\n    def a(self):\n        self.m = keras.Model()\n    def b(self):\n"
        "        self.m.save('d')",
        "def f(model: keras.Model):\n    model.save('d')",
        "model = keras.Sequential() if x else None\nmodel.save('d')",
    ):
        assert "model_name" in found(base + source), source
    assert "model_name" not in found(
        base + "model = keras.Sequential()\nmodel = other()\nmodel.save('d')"
    )


def test_other_names_of_tensorflow_become_one() -> None:
    assert canonical("tensorflow.keras.Model") == "tf.keras.Model"
    assert canonical("tensorflow.compat.v2.keras") == "tf.keras"
    assert canonical("tensorflow.compat.v1.keras.Model") == "tf.keras.Model"
    assert canonical("tensorflow.compat.v1.Session") == "tf.compat.v1.Session"
    assert canonical("tensorflow_probability.x") == "tensorflow_probability.x"
    assert canonical("keras_hub.models") == "keras_hub.models"
