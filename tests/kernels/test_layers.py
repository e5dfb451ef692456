from __future__ import annotations

import pytest

from tfdyno.kernels.layers import layer_of, operation_of, phase_of


@pytest.mark.parametrize(
    ("location", "layer", "phase"),
    [
        ("jit(step)/jvp(conv1_conv)/conv_general_dilated", "conv1_conv", "forward"),
        ("jit(step)/transpose(jvp(conv1_conv))/transpose", "conv1_conv", "backward"),
        ("jit(step)/jvp(mha)/key/abc,cde->abde/dot_general", "mha/key", "forward"),
        ("jit(step)/jvp(relu)/jit(relu)/max", "relu", "forward"),
        ("jit(step)/jvp()/convert_element_type", "", "forward"),
        ("jit(step)/cond/branch_1_fun/sgd/mul", "sgd", "update"),
        ("tfdyno_recompute_3/conv2_1/convolution", "conv2_1", "recompute"),
        (
            "jit(step)/transpose(jvp(jvp()))/block/checkpoint/rematted_computation/dense/tanh",
            "block/dense",
            "recompute",
        ),
        ("jit(step)/transpose(jvp(jvp()))/block/checkpoint/dense/mul", "block/dense", "backward"),
        ("gradient_tape/tfdyno_recompute/conv2_1/Conv2DBackpropInput", "conv2_1", "backward"),
        ("jit(step)/jvp(lstm)/while/body/closed_call/dot_general", "lstm", "forward"),
        ("", "", "forward"),
    ],
)
def test_a_location_names_its_layer_and_phase(location: str, layer: str, phase: str) -> None:
    assert layer_of(location) == layer
    assert phase_of(location) == phase


@pytest.mark.parametrize(
    ("location", "operation"),
    [
        ("jit(step)/jvp(dense)/dot_general", "dense"),
        ("jit(step)/jvp(dense)/jit(relu)/max", "dense/relu"),
        ("jit(step)/transpose(jvp(dense))/dot_general", "dense"),
        ("jit(step)/transpose(jvp(dense))/transpose(jvp(jit(relu)))/select_n", "dense/relu"),
        ("jit(step)/jvp(mha)/softmax/jit(softmax)/exp", "mha/softmax/softmax"),
        ("jit(step)/jvp(act)/jit(silu)/jit(sigmoid)/logistic", "act/sigmoid"),
        ("jit(step)/jvp(norm)/jit(_where)/select_n", "norm"),  # no operation that a model names
        ("jit(step)/mul", ""),
        ("", ""),
    ],
)
def test_an_operation_is_a_layer_or_an_activation_inside_one(location: str, operation: str) -> None:
    assert operation_of(location) == operation
