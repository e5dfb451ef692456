"""runtime/jax_values: a split weight is read and set as a whole, by checkpoints and by Keras."""

from __future__ import annotations

from tests.runtime.jaxes import looked


def test_a_split_weight_is_set_and_read_as_a_whole() -> None:
    found = looked("values")
    assert found["whole"]
    assert found["read"]
    assert found["part"] == [4, 4]
    assert found["described"] == [[4, 8], "float32", True]


def test_keras_reads_it_as_a_whole_while_the_block_lasts() -> None:
    found = looked("values")
    assert found["keras"]
    assert found["restored"] == "keras.src.backend.common.variables"
