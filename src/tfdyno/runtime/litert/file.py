"""Read a .tflite file by its public schema; nothing is run."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.litert_graph import (
    LitertGraph,
    LitertOperator,
    LitertPort,
    LitertSubgraph,
    LitertTensor,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tfdyno.core.base.untyped import Value

_IDENTIFIER = b"TFL3"
_DTYPES = {
    "FLOAT32": ("float32", 32), "FLOAT16": ("float16", 16), "FLOAT64": ("float64", 64),
    "BFLOAT16": ("bfloat16", 16), "INT8": ("int8", 8), "UINT8": ("uint8", 8),
    "INT16": ("int16", 16), "UINT16": ("uint16", 16), "INT32": ("int32", 32),
    "UINT32": ("uint32", 32), "INT64": ("int64", 64), "UINT64": ("uint64", 64),
    "BOOL": ("bool", 8), "INT4": ("int4", 4), "UINT4": ("uint4", 4), "INT2": ("int2", 2),
    "COMPLEX64": ("complex64", 64), "COMPLEX128": ("complex128", 128), "STRING": ("string", 0),
    "RESOURCE": ("resource", 0), "VARIANT": ("variant", 0), "FLOAT8_E4M3FN": ("float8_e4m3fn", 8),
    "FLOAT8_E5M2": ("float8_e5m2", 8),
}  # fmt: skip
_FAULTS = (struct.error, IndexError, ValueError, TypeError, KeyError, AttributeError,
           UnicodeDecodeError, OverflowError, MemoryError)  # fmt: skip
"""What a flatbuffer with wrong offsets ends in."""
_MOVES = frozenset(
    "RESHAPE SHAPE STRIDED_SLICE SLICE CONCATENATION PACK UNPACK TRANSPOSE GATHER GATHER_ND SPLIT"
    " SPLIT_V SQUEEZE EXPAND_DIMS PAD PADV2 MIRROR_PAD TILE BROADCAST_TO FILL CAST SPACE_TO_DEPTH"
    " DEPTH_TO_SPACE SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND REVERSE_V2 EMBEDDING_LOOKUP WHILE IF"
    " CALL_ONCE DYNAMIC_UPDATE_SLICE RANK ZEROS_LIKE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE"
    .split()
)  # fmt: skip
"""They copy or name values, and compute none."""


def read(path: Path) -> LitertGraph:
    """Return the graph of a file, in the order in which it runs.

    Raises:
        UsageError: There is no such file, or it is no LiteRT model or a damaged one.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read", why=error.strerror or str(error)) from None
    if data[4:8] != _IDENTIFIER:
        raise UsageError(
            f"{path} is not a LiteRT model",
            why="it does not begin as a .tflite file does",
            remedy="export one with tfdyno export MODEL --to litert",
        )
    try:
        return _Reader(data).graph()
    except _FAULTS:
        why = "its tables point outside of it"
        raise UsageError(f"{path} is a damaged LiteRT model", why=why,
                         remedy="copy or export it again") from None  # fmt: skip


class _Reader:
    """Walks the tables of one file."""

    def __init__(self, data: bytes) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self.size_bytes = len(data)
        self.model = schema.ModelT.InitFromPackedBuf(data, 0)
        self.kinds = _names(schema.BuiltinOperator)
        self.dtypes = _names(schema.TensorType)

    def graph(self) -> LitertGraph:
        subgraphs = tuple(self._subgraph(one) for one in self.model.subgraphs)
        signature = self._signature()
        main = subgraphs[0]
        return LitertGraph(
            subgraphs=subgraphs,
            signature=_text(signature.signatureKey) if signature else "",
            inputs=_ports(signature.inputs if signature else None, main, main.inputs),
            outputs=_ports(signature.outputs if signature else None, main, main.outputs),
            size_bytes=self.size_bytes,
            description=_text(self.model.description),
        )

    def _signature(self) -> Value:
        """Return the one called ``serving_default`` if there is one, else the first."""
        of_main = [one for one in self.model.signatureDefs or [] if one.subgraphIndex == 0]
        usual = [one for one in of_main if _text(one.signatureKey) == "serving_default"]
        return next(iter([*usual, *of_main]), None)

    def _subgraph(self, raw: Value) -> LitertSubgraph:
        tensors = tuple(self._tensor(one) for one in _list(raw.tensors))
        operators = tuple(self._operator(one, tensors) for one in _list(raw.operators))
        return LitertSubgraph(
            tensors=tensors,
            operators=operators,
            inputs=_places(raw.inputs),
            outputs=_places(raw.outputs),
        )

    def _tensor(self, raw: Value) -> LitertTensor:
        shape = _places(raw.shape)
        signature = _places(raw.shapeSignature) or shape
        dtype, bits = _DTYPES[self.dtypes[raw.type]]
        data = self.model.buffers[raw.buffer]
        quantised = raw.quantization
        scales = _list(quantised.scale) if quantised else []
        points = _list(quantised.zeroPoint) if quantised else []
        one = len(scales) == 1
        return LitertTensor(
            name=_text(raw.name),
            dtype=dtype,
            shape=tuple(abs(size) for size in shape),
            open_axes=tuple(axis for axis, size in enumerate(signature) if size < 0),
            size_bytes=(math.prod(abs(size) for size in shape) * bits + 7) // 8,
            constant=bool(len(_list(data.data)) or data.size),
            variable=bool(raw.isVariable),
            scale=float(scales[0]) if one else 0.0,
            zero_point=int(points[0]) if one and len(points) else 0,
        )

    def _operator(self, raw: Value, tensors: tuple[LitertTensor, ...]) -> LitertOperator:
        code = self.model.operatorCodes[raw.opcodeIndex]
        # Files of before 2020 have the number in the old field only, which holds no more than 127.
        kind = self.kinds[max(code.builtinCode, code.deprecatedBuiltinCode)]
        custom = kind == "CUSTOM"
        inputs, outputs = _places(raw.inputs), _places(raw.outputs)
        calls = _calls(raw.builtinOptions)
        repeats = self._trips(raw.builtinOptions) if kind == "WHILE" else 1
        return LitertOperator(
            kind=_text(code.customCode) if custom else kind,
            version=int(code.version),
            custom=custom,
            inputs=inputs,
            outputs=outputs,
            arithmetic=arithmetic_of(kind, [tensors[i] for i in inputs if i >= 0],
                                     [tensors[i] for i in outputs]),
            calls=calls,
            repeats=repeats or 1,
            repeats_known=repeats > 0,
        )  # fmt: skip

    def _trips(self, options: Value) -> int:
        """Count a loop's trips up to a constant, as those of Keras have; 0: unknown."""
        condition = self.model.subgraphs[options.condSubgraphIndex]
        bounds = []
        for operator in _list(condition.operators):
            code = self.model.operatorCodes[operator.opcodeIndex]
            if self.kinds[max(code.builtinCode, code.deprecatedBuiltinCode)] != "LESS":
                continue
            for place in _places(operator.inputs):
                tensor = condition.tensors[place]
                data = bytes(_list(self.model.buffers[tensor.buffer].data))
                if len(data) == 4 and self.dtypes[tensor.type] == "INT32":
                    bounds.append(struct.unpack("<i", data)[0])
        return max(0, min(bounds, default=0))


def _ports(
    given: Value,
    main: LitertSubgraph,
    places: tuple[int, ...],
) -> tuple[LitertPort, ...]:
    if given:
        found = {int(one.tensorIndex): _text(one.name) for one in given}
        return tuple(
            LitertPort(name=found.get(place, main.tensors[place].name), tensor=place)
            for place in places
        )
    return tuple(LitertPort(name=main.tensors[place].name, tensor=place) for place in places)


def _calls(options: Value) -> tuple[int, ...]:
    names = ("condSubgraphIndex", "bodySubgraphIndex", "thenSubgraphIndex", "elseSubgraphIndex",
             "initSubgraphIndex", "subgraph")  # fmt: skip
    found = [getattr(options, name, None) for name in names]
    return tuple(int(one) for one in found if one is not None)


def _names(kind: Value) -> dict[int, str]:
    return {value: name for name, value in vars(kind).items() if not name.startswith("_")}


def _list(values: Value) -> Sequence[Any]:
    return [] if values is None else values


def _places(values: Value) -> tuple[int, ...]:
    return tuple(int(value) for value in _list(values))


def _text(value: Value) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else (value or "")


def arithmetic_of(
    kind: str, inputs: Sequence[LitertTensor], outputs: Sequence[LitertTensor]
) -> int:
    """Return operations of one run; a multiplication with its addition counts as two.

    Convolutions and matrix products by their definition, where the weights have the layout of the
    schema (output channels first; depthwise: output channels last). Everything else that computes
    counts one operation for each element that comes out or, where that is more, goes in.
    """
    if kind in _MOVES or not outputs:
        return 0
    made = _elements(outputs[0])
    if kind in {"CONV_2D", "CONV_3D", "FULLY_CONNECTED"}:
        weights = inputs[1].shape
        # CONV_3D keeps its output channels last.
        kept = weights[-1] if kind == "CONV_3D" else weights[0]
        return 2 * made * (math.prod(weights) // max(1, kept))
    if kind == "DEPTHWISE_CONV_2D":
        return 2 * made * math.prod(inputs[1].shape[1:3])
    if kind == "TRANSPOSE_CONV":
        return 2 * _elements(inputs[2]) * math.prod(inputs[1].shape[:3])
    if kind == "BATCH_MATMUL":
        # made = rows x columns of every product; what is summed over is left of the first input.
        rows = max(1, _elements(outputs[0]) // max(1, outputs[0].shape[-1]))
        return 2 * made * max(1, _elements(inputs[0]) // rows)
    if kind in {"AVERAGE_POOL_2D", "MAX_POOL_2D"}:
        return _elements(inputs[0])
    if kind == "UNIDIRECTIONAL_SEQUENCE_LSTM":
        steps = math.prod(inputs[0].shape[:-1])
        return 2 * steps * sum(_elements(one) for one in inputs[1:9])
    return max(made, *(_elements(one) for one in inputs if not one.constant), 0)


def _elements(tensor: LitertTensor) -> int:
    return math.prod(tensor.shape)
