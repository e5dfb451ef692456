"""rules/jax/data/operations.csv: what Keras computes on JAX is what TensorFlow computes."""

from __future__ import annotations

import ast
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.rules.jax import operation_pairs

from tfdyno.rules.jax.calls import CannotRewriteError, call_patches
from tfdyno.rules.jax.tables import DROPPED, REST, operations, random_operations
from tfdyno.rules.rewrite.script import Script
from tfdyno.rules.rewrite.source_text import patched

EXAMPLES = Path(__file__).parent / "data" / "operations.csv"
CLOSE = 2e-5


def examples() -> list[tuple[str, str]]:
    with EXAMPLES.open(newline="") as lines:
        return [(row["tensorflow"], row["arguments"]) for row in csv.DictReader(lines)]


def for_keras(name: str, arguments: str) -> str:
    script = Script(f"{name}{arguments}")
    (statement,) = script.tree.body
    assert isinstance(statement, ast.Expr)
    node = statement.value
    assert isinstance(node, ast.Call)
    return patched(script.source, call_patches(node, operations()[name], script))


def computed(rows: list[tuple[str, str]], backend: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, operation_pairs.__file__],
        input=json.dumps(rows), capture_output=True, text=True, check=False,
        env={
            **os.environ, "KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1",
            "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(line) for line in done.stdout.splitlines())


def test_every_row_has_an_example() -> None:
    assert set(operations()) == {name for name, _ in examples()}


@pytest.mark.tf
def test_keras_on_jax_computes_what_tensorflow_computes() -> None:
    pairs = {f"{name}{given}": (name, given) for name, given in examples()}
    tensorflow = computed([(key, key) for key in pairs], "tensorflow")
    keras = computed([(key, for_keras(*pair)) for key, pair in pairs.items()], "jax")
    assert len(tensorflow) == len(keras) == len(pairs)
    wrong = {
        key: (for_keras(*pairs[key]), numbers, keras[key])
        for key, numbers in tensorflow.items()
        if isinstance(numbers, str) or not is_close(numbers, keras[key])
    }
    assert wrong == {}


@pytest.mark.tf
def test_arguments_by_place_are_those_of_both_frameworks() -> None:
    rows = [*operations().values(), *random_operations().values()]
    asked = {one.tensorflow for one in rows} | {one.keras for one in rows if not one.is_expression}
    told = computed([(name, f"names({name})") for name in sorted(asked)], "tensorflow")
    wrong = []
    for row in rows:
        known, own = told[row.tensorflow], told.get(row.keras, [])
        assert isinstance(known, list), known
        assert isinstance(own, list), own
        for place, one in enumerate(row.arguments):
            is_rest = one.name == REST or (place and row.arguments[0].name == REST)
            if not one.is_word and not is_rest and known[place] != one.name:
                wrong.append((row.tensorflow, one.name, known))
            if one.is_word and one.name not in known:
                wrong.append((row.tensorflow, one.name, known))
            if row.is_expression or one.keras == DROPPED or is_rest:
                continue
            if one.keras not in own or (not one.by_name and own[place] != one.keras):
                wrong.append((row.tensorflow, one.keras, own))
        if row.adds and row.adds.partition("=")[0] not in own:
            wrong.append((row.tensorflow, row.adds, own))
    assert wrong == []


def is_close(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_close, one, other))
    if isinstance(one, str) or isinstance(other, str):
        return False
    return one == pytest.approx(other, rel=CLOSE, abs=CLOSE)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("tf.split(A, [1, 2], axis=0)", "num_or_size_splits=.* means another thing"),
        ("tf.matmul(a, b, adjoint_a=True)", "no adjoint_a="),
        ("tf.matmul(a, b, transpose_b=flag)", "not known before"),
        ("tf.concat(*parts)", "from a list"),
        ("tf.concat(**parts)", "from a dictionary"),
        ("tf.nn.l2_normalize(A)", "without axis="),
        ("tf.pad(A, p, mode=how)", "no plain word"),
        ("tf.math.squared_difference(y=A, x=B)", "another order"),
        ("tf.nn.relu(A, 'n', 3)", "more arguments"),
        ("tf.constant(1.0, tf.float32, (2, 3))", "more arguments"),
        ("tf.one_hot(J, 4, 2.0)", "more arguments"),
        ("tf.where(M)", "without x="),
        ("tf.norm(A, 'euclidean')", "a word of TensorFlow"),
    ],
)
def test_what_keras_means_otherwise_is_not_rewritten(call: str, why: str) -> None:
    name, _, arguments = call.partition("(")
    with pytest.raises(CannotRewriteError, match=why):
        for_keras(name, f"({arguments}")


@pytest.mark.parametrize(
    ("call", "written"),
    [
        ("tf.nn.relu(features=x, name='n')", "keras.ops.relu(x=x)"),
        ("tf.gather(t, i)", "keras.ops.take(t, i, axis=0)"),
        ("tf.gather(t, i,)", "keras.ops.take(t, i, axis=0)"),
        ("tf.matmul(q, k, transpose_b=True)", "keras.ops.matmul(q, keras.ops.swapaxes(k, -1, -2))"),
        ("tf.concat( [a, # one\n b], 1 )", "keras.ops.concatenate( [a, # one\n b], 1 )"),
        ("tf.math.squared_difference(a + b, c)", "keras.ops.square((a + b) - c)"),
        ("tf.nn.conv2d(x, w, 1, 'SAME')",
         'keras.ops.conv(x, w, strides=1, padding="same")'),
        ("tf.cast(x, tf.float32)", 'keras.ops.cast(x, "float32")'),
    ],
)  # fmt: skip
def test_the_text_of_arguments_stays(call: str, written: str) -> None:
    name, _, arguments = call.partition("(")
    assert for_keras(name, f"({arguments}") == written
