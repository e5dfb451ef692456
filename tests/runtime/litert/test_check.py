"""The converter's words become an operation, its layer and what to do."""

from __future__ import annotations

from tfdyno.runtime.litert.check import refused, unknown_operations

SAID = """Could not translate MLIR to FlatBuffer.<unknown>:0: error: loc(callsite(fused\
["MatrixInverse:", "bad_1/inverse_1/MatrixInverse@__inference___call___6034"] at callsite(fused\
["StatefulPartitionedCall:", "StatefulPartitionedCall@__inference_signature_wrapper_6044"] at fused\
["StatefulPartitionedCall:", "StatefulPartitionedCall"]))): 'tf.MatrixInverse' op is neither a \
custom op nor a flex op
<unknown>:0: note: Error code: ERROR_NEEDS_FLEX_OPS
Some ops are not supported by the native TFLite runtime
TF Select ops: MatrixInverse, StringLower
Details:
"""


def test_what_is_refused_is_named_with_its_layer() -> None:
    first, second = refused(SAID, {"inverse", "fine"})
    assert (first.operation, first.layer) == ("MatrixInverse", "inverse")
    assert first.why.startswith("it exists only in TensorFlow itself")
    assert "outside of the model" in first.remedy
    assert (second.operation, second.layer) == ("StringLower", "")
    assert second.remedy.startswith("tokenise before the model")


def test_an_operation_of_no_table_gets_general_advice() -> None:
    (one,) = refused("TF Select ops: Unheard\n", set())
    assert one.remedy.startswith("build it from simpler operations")


def test_other_words_name_nothing() -> None:
    assert refused("out of memory", set()) == []


def test_usual_operations_are_known_to_convert() -> None:
    assert unknown_operations(["Conv2D", "MatMul", "Relu", "Svd", "Unheard"]) == ["Svd", "Unheard"]
