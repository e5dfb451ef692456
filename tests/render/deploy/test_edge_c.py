"""The C array holds the model's bytes; the program names operators as tflite-micro does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.render.deploy.edge_c import bytes_of, model_source, resolver_name


@given(data=st.binary(max_size=200))
def test_an_array_reads_back_as_it_was(data: bytes) -> None:
    source = model_source(data)
    assert bytes_of(source) == data
    assert f"g_model_data_len = {len(data)};" in source


@pytest.mark.parametrize(
    ("kind", "name"),
    [  # from tensorflow/tflite-micro, micro_mutable_op_resolver.h at 90b983c2b
        ("CONV_2D", "Conv2D"), ("DEPTHWISE_CONV_2D", "DepthwiseConv2D"), ("ADD", "Add"),
        ("FULLY_CONNECTED", "FullyConnected"), ("L2_POOL_2D", "L2Pool2D"), ("RELU6", "Relu6"),
        ("BATCH_MATMUL", "BatchMatMul"), ("PADV2", "PadV2"), ("SPLIT_V", "SplitV"),
        ("SPACE_TO_BATCH_ND", "SpaceToBatchNd"), ("SELECT_V2", "SelectV2"), ("CUMSUM", "CumSum"),
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTM"),
    ],
)  # fmt: skip
def test_operators_have_the_names_of_the_resolver(kind: str, name: str) -> None:
    assert resolver_name(kind) == name
