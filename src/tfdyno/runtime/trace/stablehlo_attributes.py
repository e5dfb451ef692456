"""The attributes of StableHLO operations that cost depends on, as plain tuples."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBER = re.compile(r"-?\d+")


def attributes_of(name: str, operation: ir.Operation) -> dict[str, Any]:
    """Return what the cost of an operation depends on besides its operands; empty for most."""
    reader = _READERS.get(name)
    return reader(operation.attributes) if reader else {}


def _integers(
    attributes: ir.OpAttributeMap, key: str, *, default: tuple[int, ...] = ()
) -> tuple[int, ...]:
    return tuple(attributes[key]) if key in attributes else default


def _convolution(attributes: ir.OpAttributeMap) -> dict[str, Any]:
    labels = stablehlo.ConvDimensionNumbers(attributes["dimension_numbers"])
    spatial = len(labels.input_spatial_dimensions)
    ones = (1,) * spatial
    return {
        "input": (
            labels.input_batch_dimension,
            labels.input_feature_dimension,
            *labels.input_spatial_dimensions,
        ),
        "kernel": (
            labels.kernel_input_feature_dimension,
            labels.kernel_output_feature_dimension,
            *labels.kernel_spatial_dimensions,
        ),
        "output": (
            labels.output_batch_dimension,
            labels.output_feature_dimension,
            *labels.output_spatial_dimensions,
        ),
        "stride": _integers(attributes, "window_strides", default=ones),
        "input_dilation": _integers(attributes, "lhs_dilation", default=ones),
        "kernel_dilation": _integers(attributes, "rhs_dilation", default=ones),
        "reversed": any(_integers(attributes, "window_reversal")),
        "feature_groups": ir.IntegerAttr(attributes["feature_group_count"]).value,
        "batch_groups": ir.IntegerAttr(attributes["batch_group_count"]).value,
    }


def _dot(attributes: ir.OpAttributeMap) -> dict[str, Any]:
    labels = stablehlo.DotDimensionNumbers(attributes["dot_dimension_numbers"])
    return {
        "batch": (tuple(labels.lhs_batching_dimensions), tuple(labels.rhs_batching_dimensions)),
        "contract": (
            tuple(labels.lhs_contracting_dimensions),
            tuple(labels.rhs_contracting_dimensions),
        ),
    }


def _window(attributes: ir.OpAttributeMap) -> dict[str, Any]:
    window = _integers(attributes, "window_dimensions")
    padding: tuple[int, ...] = ()
    if "padding" in attributes:
        text = str(attributes["padding"]).partition(":")[0]
        padding = tuple(int(number) for number in _NUMBER.findall(text))
    if len(padding) == 1:  # a splat: the same number everywhere
        padding *= 2 * len(window)
    return {
        "window": window,
        "stride": _integers(attributes, "window_strides", default=(1,) * len(window)),
        "padding": padding or (0,) * (2 * len(window)),
    }


def _constant(attributes: ir.OpAttributeMap) -> dict[str, Any]:
    value = attributes["value"]
    if not isinstance(value, ir.DenseIntElementsAttr) or value.type.rank != 0:
        return {}
    return {"scalar": int(value[0])}


def _custom_call(attributes: ir.OpAttributeMap) -> dict[str, Any]:
    return {"target": ir.StringAttr(attributes["call_target_name"]).value}


_READERS: dict[str, Callable[[ir.OpAttributeMap], dict[str, Any]]] = {
    "convolution": _convolution,
    "dot_general": _dot,
    "reduce_window": _window,
    "select_and_scatter": _window,
    "constant": _constant,
    "custom_call": _custom_call,
    "transpose": lambda attributes: {"permutation": _integers(attributes, "permutation")},
    "reduce": lambda attributes: {"dimensions": _integers(attributes, "dimensions")},
}
